"""A personality as a text for an editor: lines with its properties, then its system prompt."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

import msgspec

from errand.cli.arguments import UsageError
from errand.protocol.agents import Personality
from errand.protocol.base import JsonObject
from errand.text.translation import tr

_RULE = "---"
_HELP = tr(
    "# Lines that start with # are ignored. An empty value is the default; separate tools "
    "with commas, empty for all.\n# thinking is off, minimal, low, medium, high or xhigh; "
    "color is blue, teal, green, amber, orange, red, pink, violet\n# or gray. The system "
    "prompt follows below the line of dashes; empty for the default prompt."
)
_FIELDS = {
    "name": "name",
    "model": "model",
    "tools": "tools",
    "thinking": "thinking_level",
    "temperature": "temperature",
    "color": "color",
}


def as_text(personality: Personality) -> str:
    temperature = "" if personality.temperature is None else f"{personality.temperature:g}"
    values = {
        "name": personality.name,
        "model": personality.model,
        "tools": ", ".join(personality.tools),
        "thinking": personality.thinking_level,
        "temperature": temperature,
        "color": personality.color,
    }
    lines = [_HELP, *(f"{name}: {value}".rstrip() for name, value in values.items()), _RULE]
    return "\n".join(lines) + f"\n{personality.system_prompt}\n"


def from_text(text: str, before: Personality) -> Personality:
    """Return the personality with what the text says; raises `UsageError` that names the line."""
    head, rule, prompt = text.replace("\r\n", "\n").partition(f"\n{_RULE}\n")
    if not rule:
        raise UsageError(
            tr("The line {_RULE} above the system prompt is missing, so nothing was changed.").format(_RULE=_RULE)
        )
    changes: dict[str, object] = {"system_prompt": prompt.strip("\n")}
    for line in head.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        field = _FIELDS.get(name.strip().lower())
        if not colon or field is None:
            raise UsageError(
                tr("The line {line!r} is none of {names}, so nothing was changed.").format(
                    line=line[:80], names=", ".join(_FIELDS)
                )
            )
        changes[field] = _value(field, value.strip())
    return changed(before, changes)


def _value(field: str, text: str) -> object:
    match field:
        case "tools":
            return names_in(text)
        case "thinking_level":
            return text or "off"
        case "temperature":
            return number(text) if text else None
        case _:
            return text


def names_in(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(tr("The temperature {text!r} is not a number.").format(text=text[:20])) from error


def changed(before: Personality, changes: dict[str, object]) -> Personality:
    """Return the personality with other values; raises `UsageError` for one that is not valid."""
    names = {field.name: field.encode_name for field in msgspec.structs.fields(Personality)}
    fields: JsonObject = msgspec.to_builtins(before)
    try:
        return msgspec.convert({**fields, **{names[name]: value for name, value in changes.items()}}, Personality)
    except msgspec.ValidationError as error:
        reason, _, position = str(error).replace("`", "").partition(" - at $.")
        raise UsageError(
            tr("{place}: {reason}. Nothing was changed.").format(place=position or tr("the text"), reason=reason)
        ) from error


def check_tools(personality: Personality, known: Collection[str]) -> None:
    unknown = [name for name in personality.tools if name not in known]
    if unknown:
        raise UsageError(
            tr("There is no tool {unknown!r}. Tools are: {names}.").format(unknown=unknown[0], names=", ".join(known))
        )


def edit_text(text: str) -> str:
    """Let the person change the text in $VISUAL or $EDITOR; raises `UsageError` if the editor does not work.

    Blocks until the editor has ended.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        with tempfile.TemporaryDirectory(prefix="errand-") as folder:
            file = Path(folder) / "personality.md"
            file.write_text(text, encoding="utf-8")
            done = subprocess.run([*shlex.split(command), str(file)], check=False)
            if done.returncode:
                raise UsageError(
                    tr("{command} ended with {returncode}, so nothing was changed.").format(
                        command=command, returncode=done.returncode
                    )
                )
            return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            tr(
                "{command!r} cannot be used as an editor ({reason}). Set EDITOR, or use options: "
                "errand personalities --help"
            ).format(command=command, reason=reason)
        ) from error


def keep_text(text: str) -> str:
    """Write a text that was refused to a new file and return its name."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="errand-personality-", suffix=".md", delete=False
    ) as file:
        file.write(text)
    return file.name

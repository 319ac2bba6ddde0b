"""What Claude Code writes into messages of the user that no person wrote as a message: commands and interruptions."""

import re
from dataclasses import dataclass

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_INTERRUPTED = "[Request interrupted by user"
_LONGEST = 4_000
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_OUTPUTS = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")


@dataclass(frozen=True, slots=True)
class Remark:
    """`text` says what was done and is empty for what says nothing; `interrupts` ends the reply before."""

    text: str = ""
    interrupts: bool = False


def remark_of(text: str) -> Remark | None:
    """None for a text that a person wrote."""
    beginning = text.lstrip()
    if beginning.startswith(_INTERRUPTED):
        return Remark(interrupts=True)
    if beginning.startswith(("<command-name>", "<command-message>")):
        name, arguments = _found(_COMMAND, text), _found(_ARGUMENTS, text)
        return Remark(f"The person used {' '.join(part for part in (name, arguments) if part)}")
    if beginning.startswith("<bash-input>"):
        return Remark(f"The person ran `{_inside('bash-input', text)}`")
    if beginning.startswith("<local-command-caveat>"):
        return Remark()
    if beginning.startswith(tuple(f"<{tag}>" for tag in _OUTPUTS)):
        said = [_inside(tag, text) for tag in _OUTPUTS]
        output = "\n".join(part for part in said if part)
        return Remark(f"Output of the person's command:\n{output}" if output else "")
    return None


def _inside(tag: str, text: str) -> str:
    return _found(re.compile(rf"<{tag}>(.*?)</{tag}>", re.DOTALL), text)


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return _ANSI.sub("", match[1]).strip()[:_LONGEST] if match is not None else ""

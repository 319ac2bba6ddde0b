"""Tool calls in words: what runs, and on what."""

import json
from dataclasses import dataclass

from app.protocol.json import JsonObject

_ACTIONS = {
    "read": ("reading", "read", "file-text"),
    "write": ("writing", "wrote", "file-plus"),
    "patch": ("changing", "changed", "file-pen"),
    "list": ("listing", "listed", "folder"),
    "create_dir": ("making", "made", "folder"),
    "search": ("searching for", "searched for", "text-search"),
}
_CONTROL = {
    "task_complete": ("finishing", "finished", "flag"),
    "ask_user": ("asking you", "asked you", "circle-question-mark"),
    "send_update": ("telling you", "told you", "message-square"),
}


@dataclass(frozen=True, slots=True)
class CallWords:
    """`doing` is for while it runs, `done` for afterwards, `object` is the command, path or pattern, maybe empty."""

    doing: str
    done: str
    object: str
    icon: str


def words_of(tool: str, arguments: JsonObject) -> CallWords:
    """The words for a call of `tool`; a tool that is not known here is named as it is."""
    if tool == "shell":
        return CallWords("running", "ran", _line(arguments, "command"), "terminal")
    if tool == "code":
        action = _line(arguments, "action")
        doing, done, icon = _ACTIONS.get(action, (f"code {action}", f"code {action}", "file"))
        return CallWords(doing, done, _line(arguments, "pattern" if action == "search" else "path") or ".", icon)
    doing, done, icon = _CONTROL.get(tool, (f"using {tool}", f"used {tool}", "wrench"))
    return CallWords(doing, done, "", icon)


def arguments_text(tool: str, arguments: JsonObject, invalid: str | None) -> tuple[str, str]:
    """What the call was given, whole, and the language it is in."""
    if invalid is not None:
        return invalid, ""
    if tool == "shell" and set(arguments) == {"command"}:
        return _text(arguments, "command"), "bash"
    return json.dumps(arguments, indent=2, ensure_ascii=False), "json"


def _line(arguments: JsonObject, key: str) -> str:
    return " ".join(_text(arguments, key).split())


def _text(arguments: JsonObject, key: str) -> str:
    value = arguments.get(key)
    return value if isinstance(value, str) else ""

"""Tool calls in words, for every face: what runs, and on what."""

from dataclasses import dataclass

from app.client.characters import exact, exact_line
from app.protocol.asks import Approval, UnknownCall
from app.protocol.json import JsonObject

_ACTIONS = {
    "read": ("reading", "read"),
    "write": ("writing", "wrote"),
    "patch": ("changing", "changed"),
    "list": ("listing", "listed"),
    "create_dir": ("making", "made"),
    "search": ("searching for", "searched for"),
}
_CONTROL = {
    "task_complete": ("finishing", "finished"),
    "ask_user": ("asking you", "asked you"),
    "send_update": ("telling you", "told you"),
    "unreadable_call": ("reading a call", "read a call"),
}


@dataclass(frozen=True, slots=True)
class CallWords:
    """`doing` is for while it runs, `done` for afterwards, `object` is the command, path or pattern, maybe empty.

    `action` is the tool's name, or for the code tool which of its actions it was.
    """

    action: str
    doing: str
    done: str
    object: str = ""


def words_of(tool: str, arguments: JsonObject) -> CallWords:
    """The words for a call of `tool`; a tool that is not known here is named as it is."""
    if tool == "shell":
        return CallWords(tool, "running", "ran", exact_line(text_of(arguments, "command")))
    if tool == "code":
        action = exact_line(text_of(arguments, "action"))
        doing, done = _ACTIONS.get(action, (f"code {action}", f"code {action}"))
        about = exact_line(text_of(arguments, "pattern" if action == "search" else "path"))
        return CallWords(action, doing, done, about or ".")
    name = exact_line(tool)
    return CallWords(name, *_CONTROL.get(tool, (f"using {name}", f"used {name}")))


def exactly(asked: Approval | UnknownCall) -> str:
    """What a person is asked about: the very command, or what the call does where it runs none."""
    return exact(asked.text if asked.command is None else asked.command)


def text_of(arguments: JsonObject, key: str) -> str:
    """An argument that is a text; empty if it is missing or something else."""
    value = arguments.get(key)
    return value if isinstance(value, str) else ""


def without_file_names(diff: str) -> str:
    """A change without the two lines at its top: further down, a line that looks like them is a change."""
    lines = diff.split("\n", 2)
    return lines[2] if len(lines) == 3 and lines[0].startswith("--- ") and lines[1].startswith("+++ ") else diff

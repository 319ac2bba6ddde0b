"""What the cards of tool calls add to the words for them: an icon, and the arguments whole."""

import json

from app.client.call_words import CallWords, text_of
from app.client.characters import exact
from app.protocol.json import JsonObject

_ICONS = {
    "shell": "terminal",
    "read": "file-text",
    "write": "file-plus",
    "patch": "file-pen",
    "list": "folder",
    "create_dir": "folder",
    "search": "text-search",
    "task_complete": "flag",
    "ask_user": "circle-question-mark",
    "send_update": "message-square",
}


def icon_of(words: CallWords) -> str:
    return _ICONS.get(words.action, "wrench")


def arguments_text(tool: str, arguments: JsonObject, invalid: str | None) -> tuple[str, str]:
    """What the call was given, whole, and the language it is in."""
    if invalid is not None:
        return exact(invalid), ""
    if tool == "shell" and set(arguments) == {"command"}:
        return exact(text_of(arguments, "command")), "bash"
    return exact(json.dumps(arguments, indent=2, ensure_ascii=False)), "json"

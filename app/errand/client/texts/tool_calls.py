"""What clients show of a tool call: the text of its arguments, and its diff."""

from errand.protocol.base import JsonObject
from errand.protocol.blocks import ToolCallBlock


def text_of(arguments: JsonObject, key: str) -> str:
    """Return a text argument; empty if it is missing or has another type."""
    value = arguments.get(key)
    return value if isinstance(value, str) else ""


def content_of(call: ToolCallBlock) -> str:
    """Return the text of a message or question, or the code of a call; empty if the tool names none."""
    return text_of(call.arguments, call.display.content)


def without_file_names(diff: str) -> str:
    """Remove the two header lines of a diff. Similar lines further down are changes and stay."""
    lines = diff.split("\n", 2)
    return lines[2] if len(lines) == 3 and lines[0].startswith("--- ") and lines[1].startswith("+++ ") else diff

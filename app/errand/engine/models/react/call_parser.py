"""Finds the end of one XML call while it streams and reads its name and arguments."""

import html
import re
from dataclasses import dataclass

import msgspec

from errand.engine.core.json_input.lenient_json import read_object, read_strict_object
from errand.engine.core.messages import UNREADABLE_CALL
from errand.protocol.base import JsonObject

OPEN, CLOSE = "<tool_code>", "</tool_code>"

# How a model continues if it does not wait for the result of its call.
INVENTED = (OPEN, "<observation>")
# The end of a call: its closing tag, or without one any text that can only follow a call.
_ENDS = (CLOSE, *INVENTED)
_OUTSIDE = re.compile(r'["<{]')
_IN_STRING = re.compile(r'["\\]')
# A tool's name, also with a namespace.
_TOOL = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")
_FENCE = re.compile(r"```[\w+-]*")


@dataclass(frozen=True, slots=True)
class ToolCallText:
    """`raw` is JSON if the arguments could be parsed, else the original text."""

    name: str
    raw: str


class CallScanner:
    """Collects the text of a call after its opening tag. A tag inside a JSON string does not end it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._tail = ""
        self._in_json = False
        self._in_string = False

    @property
    def text(self) -> str:
        return "".join(self._pieces) + self._tail

    def feed(self, delta: str) -> str | None:
        """Return the text after the call once it has ended; the closing tag is part of `text`, other ends are not."""
        text, at = self._tail + delta, 0
        self._tail = ""
        while match := (_IN_STRING if self._in_string else _OUTSIDE).search(text, at):
            at = match.start()
            step = self._step(text, at)
            if step is None:
                self._pieces.append(text[:at])
                self._tail = text[at:]
                return None
            if step == 0:
                end = at + len(CLOSE) if text.startswith(CLOSE, at) else at
                self._pieces.append(text[:end])
                return text[end:]
            at += step
        self._pieces.append(text)
        return None

    def _step(self, text: str, at: int) -> int | None:
        """Return the distance to skip from this token; 0 at the end of the call, None if more text is needed."""
        sign = text[at]
        if sign == "\\":
            return 2 if at + 1 < len(text) else None
        if sign == "{":
            self._in_json = True
        elif sign == '"':
            self._in_string = self._in_json and not self._in_string
        elif text.startswith(_ENDS, at):
            return 0
        elif any(end.startswith(text[at : at + len(end)]) for end in _ENDS):
            return None
        return 1


def read_call(text: str) -> ToolCallText | None:
    """Parse a call; None for an unclosed text without a tool name, which is not a call."""
    body = text.removesuffix(CLOSE)
    head, _, rest = body.partition("<parameters>")
    inside, closed, after = rest.rpartition("</parameters>")
    name = _name(head) or _name(after)
    if _TOOL.fullmatch(name):
        return _with_arguments(name, _unwrapped(inside if closed else rest))
    call = _object(_unwrapped(body))
    if call is not None and isinstance(tool_name := call.get("name"), str) and _TOOL.fullmatch(tool_name):
        arguments = call.get("parameters", call.get("arguments", {}))
        return _with_arguments(tool_name, msgspec.json.encode(arguments).decode())
    return ToolCallText(UNREADABLE_CALL, body.strip()) if text.endswith(CLOSE) else None


def _name(text: str) -> str:
    inside, closed, _ = text.partition("<name>")[2].partition("</name>")
    return html.unescape(_unwrapped(inside)) if closed else ""


def _with_arguments(name: str, raw: str) -> ToolCallText:
    if not raw.strip() or read_strict_object(raw) is not None:
        return ToolCallText(name, raw)
    arguments = _object(raw)
    if arguments is None:
        return ToolCallText(name, raw)
    return ToolCallText(name, msgspec.json.encode(arguments).decode())


def _unwrapped(text: str) -> str:
    """Return the text without a surrounding CDATA section or Markdown fence."""
    text = text.strip()
    if text.startswith("<![CDATA["):
        text = text.removeprefix("<![CDATA[").removesuffix("]]>").strip()
    if fence := _FENCE.match(text):
        text = text[fence.end() :].removesuffix("```").strip()
    return text


def _object(raw: str) -> JsonObject | None:
    """Parse a JSON object, tolerating common mistakes, also XML escapes."""
    value = read_object(raw)
    return read_object(html.unescape(raw)) if value is None else value

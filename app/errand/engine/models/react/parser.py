"""Splits a streaming reply into text, one tool call and hidden markup; tags inside code are text."""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.engine.models.react.call_parser import CLOSE, INVENTED, OPEN, CallScanner, ToolCallText, read_call

_FENCE = "```"

# Whitespace before a tag, and a fence opened right before it, belong to the tag. Everything is bounded, so that little
# text is ever held back.
_BLANK_LIMIT = 64
_BLANK = rf"\s{{0,{_BLANK_LIMIT}}}+"
_FENCE_LINE = r"```[\w+-]{0,20}+[ \t]{0,8}+\r?"
_LEAD = rf"{_BLANK}(?:{_FENCE_LINE}\n{_BLANK})?"
_TAG = re.compile(rf"(?P<lead>{_LEAD})(?P<tag><tool_code>|<final_answer>|</final_answer>)")
_MAX_TAG = 200  # longer than the longest prefix and tag
_STRIDE = 4096  # of a large text, so that the held text stays small
# The first characters of a call. Other text after the tag, in the middle of a line, means that the tag is only
# mentioned.
_BEGINNINGS = ("<name>", "<parameters>", "{", "<![CDATA[", _FENCE)


class MarkdownPosition:
    """Tracks code fences and inline code; fed with pieces of text, split anywhere."""

    def __init__(self) -> None:
        self._in_fence = False
        self._head = ""  # the first characters of the current line, as many as identify a fence
        self._ticks = 0

    @property
    def in_fence(self) -> bool:
        return self._in_fence

    @property
    def in_code(self) -> bool:
        """Inside inline code: the line has an odd number of backticks before this position."""
        return self._ticks % 2 == 1 and not self._in_fence and self._head != _FENCE

    @property
    def at_line_start(self) -> bool:
        return not self._head

    def move(self, text: str) -> None:
        first, *others = text.split("\n")
        self._extend(first)
        for line in others:
            self._in_fence ^= self._head == _FENCE
            self._head, self._ticks = "", 0
            self._extend(line)

    def _extend(self, text: str) -> None:
        if len(self._head) < len(_FENCE):
            self._head = (self._head + text).lstrip()[: len(_FENCE)]
        self._ticks += text.count("`")


def _beginnings(tag: str) -> str:
    """Return a pattern that matches each proper prefix of the tag."""
    pattern = ""
    for sign in reversed(tag):
        pattern = f"(?:{re.escape(sign)}{pattern})?"
    return pattern


# Where a model continues on its own: its next call, or the result it invents for the first one.
_INVENTED = re.compile("|".join(INVENTED))
_INVENTED_START = re.compile(rf"(?:{'|'.join(map(_beginnings, INVENTED))})\Z")
_PARTS = "|".join(_beginnings(tag) for tag in (OPEN, "<final_answer>", "</final_answer>"))
_HELD = re.compile(rf"{_BLANK}(?:`{{1,2}}|{_FENCE_LINE})\Z|{_LEAD}(?:{_PARTS})\Z")


@dataclass(frozen=True, slots=True)
class ShownText:
    """Text to show."""

    source: str


@dataclass(frozen=True, slots=True)
class HiddenMarkup:
    """Tags and the whitespace that belongs to them: not shown."""

    source: str


@dataclass(frozen=True, slots=True)
class InventedResult:
    """Text that the model wrote after its call, as if it had seen the result: a thought, not a reply."""

    source: str


@dataclass(frozen=True, slots=True)
class ParsedCall:
    source: str
    call: ToolCallText


ParsedPiece: TypeAlias = ShownText | HiddenMarkup | InventedResult | ParsedCall


class ReActParser:
    """Feed it text; the sources of all returned pieces, joined, equal the fed text. `finish` returns the rest."""

    def __init__(self) -> None:
        self.has_answer = False  # a final answer was opened
        self._state: Literal["text", "opening", "call", "after_call", "rest", "invented"] = "text"
        self._buffer = ""
        self._position = MarkdownPosition()
        self._has_text = False
        self._in_answer = False
        self._skips_blank = False
        self._opening = _Opening("", at_line_start=False)
        self._call = CallScanner()

    def feed(self, delta: str) -> list[ParsedPiece]:
        pieces: list[ParsedPiece] = []
        for at in range(0, len(delta), _STRIDE):
            self._buffer += delta[at : at + _STRIDE]
            pieces += self._take(is_end=False)
        return pieces

    def finish(self) -> list[ParsedPiece]:
        """Return the reply has ended: returns the held text, and an unclosed call as far as it can be parsed."""
        pieces = self._take(is_end=True)
        while self._state == "call":
            pieces += [self._end_call(is_closed=False), *self._take(is_end=True)]
        return pieces

    def _take(self, *, is_end: bool) -> list[ParsedPiece]:
        pieces: list[ParsedPiece] = []
        while self._buffer or (is_end and self._state == "opening"):
            step = self._step(is_end)
            if step is None:
                break
            pieces += step
        return pieces

    def _step(self, is_end: bool) -> list[ParsedPiece] | None:
        """Return the next piece of the held text; None if more text is needed."""
        match self._state:
            case "text":
                return self._blank() if self._skips_blank else self._text(is_end)
            case "opening":
                return self._open(is_end)
            case "call":
                return self._grow()
            case "after_call":
                return self._follow(is_end)
            case "rest":
                return self._rest(is_end)
            case "invented":
                return [InventedResult(self._cut(len(self._buffer)))]

    def _text(self, is_end: bool) -> list[ParsedPiece] | None:
        tag = _TAG.search(self._buffer)
        if tag is not None:
            before = self._cut(tag.start())
            events = [self._show_text(before)] if before else []
            return [*events, *self._tag(self._cut(len(tag["lead"])), self._cut(len(tag["tag"])))]
        tail = max(0, len(self._buffer) - _MAX_TAG)
        held = None if is_end else _HELD.search(self._buffer, tail)
        text = self._cut(held.start() if held else len(self._buffer))
        return [self._show_text(text)] if text else None

    def _tag(self, lead: str, tag: str) -> list[ParsedPiece]:
        pieces: list[ParsedPiece] = []
        fence = lead.find(_FENCE)
        if fence >= 0 and (self._position.in_fence or tag != OPEN):  # it closes an earlier block, or is not our tag
            end = lead.index("\n", fence)
            pieces.append(self._show_text(lead[:end]))
            lead = lead[end:]
        if self._in_answer != (tag == "</final_answer>") or (self._position.in_code and "\n" not in lead):
            return [*pieces, self._show_text(lead + tag)]
        if tag == OPEN:
            self._opening = _Opening(lead + tag, self._position.at_line_start or "\n" in lead)
            self._state = "opening"
            return pieces
        self._in_answer, self.has_answer = not self._in_answer, True
        self._skips_blank = self._in_answer
        if self._in_answer and self._has_text and lead:
            pieces.append(self._show_text(lead))
            lead = ""
        return [*pieces, HiddenMarkup(lead + tag)]

    def _blank(self) -> list[ParsedPiece]:
        blank = self._cut(len(self._buffer) - len(self._buffer.lstrip()))
        self._skips_blank = not self._buffer
        return [HiddenMarkup(blank)] if blank else []

    def _open(self, is_end: bool) -> list[ParsedPiece] | None:
        text = self._buffer.lstrip()
        is_near = len(self._buffer) - len(text) <= _BLANK_LIMIT
        if not (is_near and text.startswith(_BEGINNINGS)):
            if is_near and any(begin.startswith(text) for begin in _BEGINNINGS) and not is_end:
                return None
            if is_end or not self._opening.at_line_start:
                self._state = "text"
                return [self._show_text(self._opening.source)]
        self._state, self._call = "call", CallScanner()
        return []

    def _grow(self) -> list[ParsedPiece] | None:
        rest = self._call.feed(self._cut(len(self._buffer)))
        if rest is None:
            return None
        self._buffer = rest
        return [self._end_call(is_closed=True)]

    def _end_call(self, *, is_closed: bool) -> ParsedPiece:
        text = self._call.text
        if not is_closed and CLOSE in text:  # an extra quote hid the end
            text, tag, self._buffer = text.partition(CLOSE)
            text += tag
        call = read_call(text)
        if call is None:
            self._state = "text"
            return self._show_text(self._opening.source + text)
        self._state = "after_call"
        return ParsedCall(self._opening.source + text, call)

    def _follow(self, is_end: bool) -> list[ParsedPiece] | None:
        """Whitespace and the closing fence after a call belong to the call."""
        if blank := self._cut(len(self._buffer) - len(self._buffer.lstrip())):
            return [HiddenMarkup(blank)]
        if self._opening.is_fenced:
            if self._buffer.startswith(_FENCE):
                self._opening = _Opening("", at_line_start=False)
                return [HiddenMarkup(self._cut(len(_FENCE)))]
            if _FENCE.startswith(self._buffer) and not is_end:
                return None
        self._state = "rest"
        return []

    def _rest(self, is_end: bool) -> list[ParsedPiece] | None:
        invented = _INVENTED.search(self._buffer)
        if invented is not None:
            self._state = "invented"
        else:
            invented = None if is_end else _INVENTED_START.search(self._buffer, max(0, len(self._buffer) - _MAX_TAG))
        text = self._cut(invented.start() if invented else len(self._buffer))
        return [self._show_text(text)] if text else [] if self._state == "invented" else None

    def _show_text(self, text: str) -> ShownText:
        self._position.move(text)
        self._has_text = True
        return ShownText(text)

    def _cut(self, length: int) -> str:
        text, self._buffer = self._buffer[:length], self._buffer[length:]
        return text


@dataclass(frozen=True, slots=True)
class _Opening:
    """The opening tag of a possible call, with the text before it."""

    source: str
    at_line_start: bool

    @property
    def is_fenced(self) -> bool:
        return _FENCE in self.source

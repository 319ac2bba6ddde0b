"""Paints into a block what of it is selected and what a search finds in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.window.blocks.block import Block
from app.window.blocks.text_mark import TextMark
from app.window.blocks.text_view import TextView
from app.window.transcript.parts import parts
from app.window.transcript.selection import Span


@dataclass(frozen=True, slots=True)
class Sought:
    """What is searched for. `counts` has the hits of each row, for cards that are closed.

    Looked at is the hit of that `number` in the row with that `key`; with no key none is.
    """

    pattern: re.Pattern[str]
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    key: str = ""
    number: int = 0

    @property
    def is_passing(self) -> bool:
        """Marked after a jump, only until the next click: nobody steps through it."""
        return not self.key and not self.counts


@dataclass(frozen=True, slots=True)
class FoundText:
    """A hit as it stands in a text of a block."""

    view: TextView
    start: int
    end: int


def found_in(block: Block, pattern: re.Pattern[str]) -> list[FoundText]:
    return [FoundText(view, *place) for view in parts(block) for place in view.occurrences(pattern)]


def mark_block(block: Block, index: int, key: str, span: Span | None, sought: Sought | None) -> None:
    found = found_in(block, sought.pattern) if sought is not None else []
    now = current(found, key, sought)
    for number, view in enumerate(parts(block)):
        hits = [_hit(one, is_now=one is now) for one in found if one.view is view]
        view.show_marks([*hits, *_selected(span, index, number, view.document().characterCount() - 1)])
    hidden = sought.counts.get(key, 0) - len(found) if sought is not None else 0
    block.show_found(max(hidden, 0))


def current(found: list[FoundText], key: str, sought: Sought | None) -> FoundText | None:
    """The one looked at, if it is in this row: the text on the screen may have fewer than its source."""
    if sought is None or sought.key != key or not found:
        return None
    return found[min(sought.number, len(found) - 1)]


def is_plain(block: Block, index: int, key: str, span: Span | None, sought: Sought | None) -> bool:
    """True for a row that is selected, or looked at, and has no text in which that could be seen."""
    if parts(block):
        return False
    return (span is not None and index in span.rows) or (sought is not None and sought.key == key)


def _hit(found: FoundText, *, is_now: bool) -> TextMark:
    return TextMark(found.start, found.end, "hit_now" if is_now else "hit")


def _selected(span: Span | None, index: int, number: int, length: int) -> tuple[TextMark, ...]:
    if span is None or index not in span.rows:
        return ()
    start, end = span.within(index, number, length)
    return (TextMark(start, end, "selected"),) if start < end else ()

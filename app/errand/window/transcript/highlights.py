"""Paints the selection and search hits into row views."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from errand.client.conversation.rows import Row
from errand.window.rows.base import RowView
from errand.window.rows.text_view import TextHighlight, TextView
from errand.window.transcript.selection import SelectionRange


def text_views(row_view: RowView[Row]) -> list[TextView]:
    """Return the visible text views of a row, from top to bottom; none for rows with only lines and pictures."""
    return [view for view in row_view.findChildren(TextView) if view.isVisibleTo(row_view)]


def text_view_at(row_view: RowView[Row], point: QPoint) -> tuple[int, TextView] | None:
    """Return the text view at a point of the row view, or the nearest one above or below it."""
    numbered_views = list(enumerate(text_views(row_view)))
    return min(
        numbered_views,
        key=lambda entry: _distance(_top(entry[1], row_view), entry[1].height(), point.y()),
        default=None,
    )


def position_at(view: TextView, row_view: RowView[Row], point: QPoint) -> int:
    """Return the character position nearest to a point of the row view."""
    inside = view.viewport().mapFrom(row_view, point)
    if inside.y() < 0:
        return 0
    if inside.y() >= view.viewport().height():
        return view.document().characterCount() - 1
    return view.cursorForPosition(inside).position()


def _top(view: QWidget, row_view: RowView[Row]) -> int:
    return view.mapTo(row_view, QPoint(0, 0)).y()


def _distance(top: int, height: int, y: int) -> int:
    return max(top - y, y - top - height, 0)


@dataclass(frozen=True, slots=True)
class SearchPattern:
    """The search. `counts` has the number of hits per row, for collapsed cards.

    The current hit is that with the `number` in the row with the `key`; without a key there is none.
    """

    pattern: re.Pattern[str]
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    key: str = ""
    number: int = 0

    @property
    def is_passing(self) -> bool:
        """Marked only until the next click, after a jump to a search result."""
        return not self.key and not self.counts


@dataclass(frozen=True, slots=True)
class TextHit:
    """The position of a hit in a text view."""

    view: TextView
    start: int
    end: int


def find_in(row_view: RowView[Row], pattern: re.Pattern[str]) -> list[TextHit]:
    return [TextHit(view, *span) for view in text_views(row_view) for span in view.occurrences(pattern)]


def highlight_row(
    row_view: RowView[Row], index: int, key: str, span: SelectionRange | None, search: SearchPattern | None
) -> None:
    hits_in_row = find_in(row_view, search.pattern) if search is not None else []
    now = current_highlight(hits_in_row, key, search)
    for number, view in enumerate(text_views(row_view)):
        hits = [_hit_highlight(hit, is_now=hit is now) for hit in hits_in_row if hit.view is view]
        view.show_highlights([*hits, *_selection_highlight(span, index, number, view.document().characterCount() - 1)])
    hidden = search.counts.get(key, 0) - len(hits_in_row) if search is not None else 0
    row_view.show_hit_count(max(hidden, 0))


def current_highlight(found: list[TextHit], key: str, search: SearchPattern | None) -> TextHit | None:
    """Return the current hit, if it is in this row: the displayed text may have fewer hits than its source."""
    if search is None or search.key != key or not found:
        return None
    return found[min(search.number, len(found) - 1)]


def is_plain(
    row_view: RowView[Row], index: int, key: str, span: SelectionRange | None, search: SearchPattern | None
) -> bool:
    """Return True for a selected or current row without text in which that could be shown."""
    if text_views(row_view):
        return False
    return (span is not None and index in span.rows) or (search is not None and search.key == key)


def _hit_highlight(found: TextHit, *, is_now: bool) -> TextHighlight:
    return TextHighlight(found.start, found.end, "hit_now" if is_now else "hit")


def _selection_highlight(
    span: SelectionRange | None, index: int, number: int, length: int
) -> tuple[TextHighlight, ...]:
    if span is None or index not in span.rows:
        return ()
    start, end = span.within(index, number, length)
    return (TextHighlight(start, end, "selected"),) if start < end else ()

"""The selection as text: as shown within one row, as Markdown over several."""

from errand.window.rows.code_view import CodeView
from errand.window.rows.markdown import code_fence, fragment_markdown
from errand.window.rows.registry import kind_of
from errand.window.rows.reply import parse_fence
from errand.window.rows.row import NoticeRow, ReplyRow, Row, RowSource, UserRow
from errand.window.rows.text_view import TextView
from errand.window.transcript.highlights import text_views
from errand.window.transcript.recycler import RowViewRecycler
from errand.window.transcript.selection import SelectionRange


class SelectionCopy:
    """Copies the selection.

    Rows out of view are read from their source; only the first and the last row need a view.
    """

    def __init__(self, rows: RowSource, recycler: RowViewRecycler) -> None:
        self._rows = rows
        self._recycler = recycler

    def text(self, span: SelectionRange) -> str:
        """The text for Ctrl+C: plain within one row, Markdown for several rows."""
        if len(span.rows) > 1 or span.covers(span.first.row):
            return self.markdown(span)
        index = span.first.row
        chosen = [
            view.cursor_between(*span.within(index, number, view.document().characterCount() - 1))
            .selection()
            .toPlainText()
            for number, view in enumerate(text_views(self._recycler.view(index)))
        ]
        return "\n".join(text for text in chosen if text)

    def markdown(self, span: SelectionRange) -> str:
        rows = [self._row(span, index) for index in span.rows]
        return "\n\n".join(text for text in rows if text)

    def _row(self, span: SelectionRange, index: int) -> str:
        row = self._rows.row(index)
        if span.covers(index):
            return kind_of(row).markdown(row, self._recycler.is_open(index))
        views = text_views(self._recycler.view(index))
        if not views:
            return kind_of(row).markdown(row, False)
        return "\n\n".join(text for text in (self._part(span, index, *entry) for entry in enumerate(views)) if text)

    def _part(self, span: SelectionRange, index: int, number: int, view: TextView) -> str:
        last = view.document().characterCount() - 1
        start, end = span.within(index, number, last)
        if start == end:
            return ""
        row = self._rows.row(index)
        if (start, end) == (0, last) and isinstance(row, UserRow | ReplyRow):
            return kind_of(row).markdown(row, False)
        cursor = view.cursor_between(start, end)
        if isinstance(view, CodeView):
            return code_fence(cursor.selection().toPlainText(), _language(row))
        return cursor.selection().toPlainText() if isinstance(row, UserRow | NoticeRow) else fragment_markdown(cursor)


def _language(row: Row) -> str:
    fence = parse_fence(row.markdown) if isinstance(row, ReplyRow) else None
    return fence.language if fence is not None else ""

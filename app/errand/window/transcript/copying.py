"""The selection as text: as Markdown, or without markup."""

from PySide6.QtGui import QTextCursor

from errand.client.conversation.markdown_pieces import is_cut, parse_details
from errand.client.conversation.rows import NoticeRow, ReplyRow, Row, UserRow
from errand.window.rows.code_view import CodeView
from errand.window.rows.markdown import code_fence, fragment_markdown, is_one_run, plain_text
from errand.window.rows.markdown_view import parse_fence
from errand.window.rows.registry import kind_of
from errand.window.rows.row_source import RowSource
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
        """Return the text for Ctrl+C: Markdown, but code, messages of people and words of one format as they are
        shown.
        """
        if len(span.rows) > 1 or span.covers(span.first.row):
            return self.markdown(span)
        row = self._rows.row(span.first.row)
        is_verbatim = isinstance(row, UserRow | NoticeRow)
        chosen = [
            plain_text(cursor)
            if is_verbatim or isinstance(view, CodeView) or is_one_run(cursor)
            else fragment_markdown(cursor)
            for view, cursor in self._cursors(span, span.first.row)
        ]
        return "\n".join(text for text in chosen if text)

    def plain(self, span: SelectionRange) -> str:
        """Return the selection without markup."""
        return "\n\n".join(text for text in (self._plain_row(span, index) for index in span.rows) if text)

    def _plain_row(self, span: SelectionRange, index: int) -> str:
        row = self._rows.row(index)
        if span.covers(index) and len(span.rows) > 1:
            return kind_of(row).text(row).strip("\n") or kind_of(row).markdown(row, self._recycler.is_open(index))
        return "\n".join(filter(None, (plain_text(cursor) for _, cursor in self._cursors(span, index))))

    def _cursors(self, span: SelectionRange, index: int) -> list[tuple[TextView, QTextCursor]]:
        """Return the text views of a row with what is selected in them."""
        return [
            (view, view.cursor_between(*span.within(index, number, view.document().characterCount() - 1)))
            for number, view in enumerate(text_views(self._recycler.view(index)))
        ]

    def markdown(self, span: SelectionRange) -> str:
        texts = [(index, self._row(span, index)) for index in span.rows]
        copied = [(index, text) for index, text in texts if text]
        return "".join(
            f"{self._separator(index) if number else ''}{text}" for number, (index, text) in enumerate(copied)
        )

    def _separator(self, index: int) -> str:
        """Return the text between a row and the one above: only a new line if it continues the same paragraph."""
        above = self._rows.row(index - 1) if index else None
        if not isinstance(above, ReplyRow) or not is_cut(above.markdown):
            return "\n\n"
        return "\n" if above.markdown.endswith("\n") else " "

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
        is_part = isinstance(row, ReplyRow) and parse_details(row.markdown) is not None
        if (start, end) == (0, last) and isinstance(row, UserRow | ReplyRow) and not is_part:
            return kind_of(row).markdown(row, False)
        cursor = view.cursor_between(start, end)
        if isinstance(view, CodeView):
            return code_fence(cursor.selection().toPlainText(), _language(row))
        return cursor.selection().toPlainText() if isinstance(row, UserRow | NoticeRow) else fragment_markdown(cursor)


def _language(row: Row) -> str:
    fence = parse_fence(row.markdown) if isinstance(row, ReplyRow) else None
    return fence.language if fence is not None else ""

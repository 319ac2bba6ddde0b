"""The selection as text: as it is seen within one row, with Markdown's marks over several."""

from app.window.blocks.code_view import CodeView
from app.window.blocks.fence import fence_of
from app.window.blocks.fragment_markdown import fragment_markdown
from app.window.blocks.row_markdown import fenced, row_markdown
from app.window.blocks.text_view import TextView
from app.window.rows import NoticeRow, Row, TextRow, UserRow
from app.window.transcript.parts import parts
from app.window.transcript.selection import Span
from app.window.transcript.source import RowSource
from app.window.transcript.stage import Stage


class Copying:
    """Rows out of sight are read from their source; a block is made at most for the first row and the last one."""

    def __init__(self, rows: RowSource, stage: Stage) -> None:
        self._rows = rows
        self._stage = stage

    def text(self, span: Span) -> str:
        """What Ctrl+C takes: a word of a sentence comes without marks, a part of the conversation with them."""
        if len(span.rows) > 1 or span.covers(span.first.row):
            return self.markdown(span)
        index = span.first.row
        chosen = [
            view.between(*span.within(index, number, view.document().characterCount() - 1)).selection().toPlainText()
            for number, view in enumerate(parts(self._stage.block(index)))
        ]
        return "\n".join(text for text in chosen if text)

    def markdown(self, span: Span) -> str:
        rows = [self._row(span, index) for index in span.rows]
        return "\n\n".join(text for text in rows if text)

    def _row(self, span: Span, index: int) -> str:
        row = self._rows.row(index)
        if span.covers(index):
            return row_markdown(row, is_open=self._stage.is_open(index))
        views = parts(self._stage.block(index))
        if not views:
            return row_markdown(row, is_open=False)
        return "\n\n".join(text for text in (self._part(span, index, *entry) for entry in enumerate(views)) if text)

    def _part(self, span: Span, index: int, number: int, view: TextView) -> str:
        last = view.document().characterCount() - 1
        start, end = span.within(index, number, last)
        if start == end:
            return ""
        row = self._rows.row(index)
        if (start, end) == (0, last) and isinstance(row, UserRow | TextRow):
            return row_markdown(row, is_open=False)
        cursor = view.between(start, end)
        if isinstance(view, CodeView):
            return fenced(cursor.selection().toPlainText(), _language(row))
        return cursor.selection().toPlainText() if isinstance(row, UserRow | NoticeRow) else fragment_markdown(cursor)


def _language(row: Row) -> str:
    fence = fence_of(row.markdown) if isinstance(row, TextRow) else None
    return fence.language if fence is not None else ""

"""The model's reasoning: one line, expanded on demand."""

from PySide6.QtWidgets import QWidget

from errand.client.conversation.rows import ThinkingRow
from errand.text.translation import tr
from errand.window.rows.base import RowActions, RowKind, Spacing, line_estimate
from errand.window.rows.disclosure import DisclosureRowView, LinePart
from errand.window.rows.markdown import markdown_document, plain_document, quoted, without_markup
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.widgets.labels import markdown_line

_PREVIEW = 120  # characters


class ThinkingView(DisclosureRowView[ThinkingRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._streamed: str | None = None
        self._text = TextView(theme, tr("Thinking"), self)
        self._text.link.connect(actions.open_link)
        self.content.addWidget(self._text)

    def show_current(self, row: ThinkingRow) -> None:
        verb = tr("Thinking") if row.streaming else tr("Thought")
        preview = (
            [] if self.is_open else [LinePart(markdown_line(row.text[-600:] if row.streaming else row.text, _PREVIEW))]
        )
        self.show_line("brain", [LinePart(verb, "text"), *_elidable(preview)], can_open=bool(row.text))
        if self.is_open and row.text:
            self._show_text(row)

    def _show_text(self, row: ThinkingRow) -> None:
        """While streaming, plain text is appended, because reasoning can be long; Markdown once it is finished."""
        if not row.streaming:
            self._text.show_document(markdown_document(row.text, self.theme, muted=True))
        elif self._streamed is not None and row.text.startswith(self._streamed):
            self._text.add_text(row.text[len(self._streamed) :])
        else:
            self._text.show_document(plain_document(row.text, self.theme, colour="muted"))
        self._streamed = row.text if row.streaming else None


def _elidable(pieces: list[LinePart]) -> list[LinePart]:
    return [LinePart(piece.text, piece.colour, elides=True) for piece in pieces if piece.text]


THINKING = RowKind(
    ThinkingRow,
    ThinkingView,
    spacing=lambda row: Spacing.ACTIVITY,
    estimate=line_estimate,
    markdown=lambda row, is_open: tr("Thought\n{text}").format(text=quoted(row.text)) if is_open else tr("Thought"),
    text=lambda row: without_markup(row.text),
)

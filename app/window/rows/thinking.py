"""The model's reasoning: one line, expanded on demand."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.window.rows.base import RowActions, RowKind, RowView, Spacing, line_estimate
from app.window.rows.disclosure import DisclosureButton, LinePart, hit_count_parts
from app.window.rows.markdown import markdown_document, plain_document, quoted, without_markup
from app.window.rows.row import ThinkingRow
from app.window.rows.text_view import TextView
from app.window.theme.theme import Theme
from app.window.widgets.labels import markdown_line

_PREVIEW = 120  # characters


class ThinkingView(RowView[ThinkingRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: ThinkingRow | None = None
        self._is_open = False
        self._hit_count = 0
        self._streamed: str | None = None
        self._line = DisclosureButton(theme, self)
        self._line.clicked.connect(self._on_clicked)
        self._text = TextView(theme, "Thinking", self)
        self._text.link.connect(actions.open_link)
        self._content = QWidget(self)  # hidden with its margins; a layout would keep the margins
        inside = QVBoxLayout(self._content)
        left = theme.tokens.space_close + theme.tokens.icon_small + theme.tokens.space_close
        inside.setContentsMargins(left, 0, 0, theme.tokens.space_close)
        inside.addWidget(self._text)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._line)
        column.addWidget(self._content)

    def set_open(self, is_open: bool) -> None:
        self._is_open = is_open
        self._line.setChecked(is_open)

    def set_row(self, row: ThinkingRow) -> None:
        self._row, self._hit_count = row, 0
        self._show()

    def show_hit_count(self, count: int) -> None:
        if count != self._hit_count:
            self._hit_count = count
            if self._row is not None:
                self._show()

    def _show(self) -> None:
        assert self._row is not None
        row, verb = self._row, "Thinking" if self._row.streaming else "Thought"
        preview = (
            [] if self._is_open else [LinePart(markdown_line(row.text[-600:] if row.streaming else row.text, _PREVIEW))]
        )
        pieces = [LinePart(verb, "text"), *_elidable(preview), *hit_count_parts(self._hit_count)]
        self._line.show_line("brain", "muted", pieces, can_open=bool(row.text))
        is_shown = self._is_open and bool(row.text)
        self._content.setVisible(is_shown)
        if is_shown:
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

    def _on_clicked(self, is_checked: bool) -> None:
        self._is_open = is_checked
        self._show()
        self.opened.emit(is_checked)
        self.resized.emit()


def _elidable(pieces: list[LinePart]) -> list[LinePart]:
    return [LinePart(piece.text, piece.colour, elides=True) for piece in pieces if piece.text]


THINKING = RowKind(
    ThinkingRow,
    ThinkingView,
    spacing=lambda row: Spacing.ACTIVITY,
    estimate=line_estimate,
    markdown=lambda row, is_open: f"Thought\n{quoted(row.text)}" if is_open else "Thought",
    text=lambda row: without_markup(row.text),
)

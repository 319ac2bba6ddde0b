"""A tool call: one line that says what was done and what came of it; opens to its arguments, output and changes."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.client.call_words import CallWords, words_of
from app.client.figures import duration
from app.protocol.blocks import ToolResultBlock
from app.protocol.json import JsonObject
from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.call_words import icon_of
from app.window.blocks.line_button import LineButton, Piece, found_pieces
from app.window.blocks.one_line import one_line
from app.window.blocks.tool_card import ToolCard
from app.window.rows import Row, ToolRow
from app.window.theme.theme import Theme

_SUMMARY = 90  # characters of the result in the line


class ToolBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: ToolRow | None = None
        self._is_open = False
        self._found = 0
        self._line = LineButton(theme, self)
        self._line.clicked.connect(self._on_clicked)
        self._card: ToolCard | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.tokens.space_tight)
        self._column.addWidget(self._line)

    def set_open(self, is_open: bool) -> None:
        self._is_open = is_open
        self._line.setChecked(is_open)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, ToolRow)
        self._row, self._found = row, 0
        self._show_line(row)
        self._show_card()

    def show_found(self, count: int) -> None:
        if count != self._found:
            self._found = count
            if self._row is not None:
                self._show_line(self._row)

    def _show_line(self, row: ToolRow) -> None:
        icon, tint, pieces = _line_of(row)
        self._line.show_line(icon, tint, [*pieces, *found_pieces(self._found)], can_open=True)

    def _on_clicked(self, is_checked: bool) -> None:
        self._is_open = is_checked
        self._show_card()
        self.opened.emit(is_checked)
        self.resized.emit()

    def _show_card(self) -> None:
        if self._is_open and self._row is not None:
            if self._card is None:
                self._card = ToolCard(self.theme, self.intents, self)
                self._column.addWidget(self._card)
            self._card.show_row(self._row)
        if self._card is not None:
            self._card.setVisible(self._is_open)


def line_words(row: ToolRow) -> str:
    """What the line says, as text."""
    return " ".join(piece.text for piece in _line_of(row)[2])


def _line_of(row: ToolRow) -> tuple[str, str, list[Piece]]:
    """Icon, its colour, and the words: `ran make test · 12 passed · 1.2 s`."""
    words = words_of(row.call.tool, row.call.arguments)
    result = row.result
    if row.waiting:
        return "shield-question-mark", "waiting_mark", [Piece(f"waits for you before {words.doing}"), *_object(words)]
    if row.unknown:
        cut_off = [Piece(f"cut off while {words.doing}"), *_object(words)]
        return "triangle-alert", "waiting_mark", [*cut_off, *_dotted("outcome unknown", "waiting")]
    if row.interrupted:
        return (
            icon_of(words),
            "muted",
            [Piece(words.doing), *_object(words), *_dotted("the task was interrupted", "muted")],
        )
    if result is None:
        return icon_of(words), "link", [Piece(words.doing), *_object(words), Piece("…")]
    if result.is_error:
        # What was refused or could not begin was not done.
        verb = words.done if result.details is not None else words.doing
        said = result.summary or one_line(result.text, _SUMMARY)
        return "circle-x", "failed_mark", [Piece(verb), *_object(words), *_dotted(said, "failed"), *_time(result)]
    return icon_of(words), "muted", [Piece(words.done), *_object(words), *_outcome(result), *_time(result)]


def _object(words: CallWords) -> list[Piece]:
    line = " ".join(words.object.split())
    return [Piece(line, "text", mono=True, gives_way=True)] if line else []


def _outcome(result: ToolResultBlock) -> list[Piece]:
    details = result.details or {}
    added, removed = details.get("added"), details.get("removed")
    if isinstance(added, int) and isinstance(removed, int):
        counts = [Piece(f"+{added}", "done")] if added else []
        counts += [Piece(f"−{removed}", "failed")] if removed else []
        return counts or _dotted("no change", "muted")
    return _dotted(one_line(result.summary, _SUMMARY), "muted")


def _dotted(text: str, tint: str) -> list[Piece]:
    return [Piece("·"), Piece(text, tint, gives_way=True)] if text else []


def _time(result: ToolResultBlock) -> list[Piece]:
    seconds = _seconds(result.details or {})
    if seconds is None or result.summary.endswith(" s"):
        return []
    return [Piece("·"), Piece(duration(seconds))]


def _seconds(details: JsonObject) -> float | None:
    spent = details.get("duration_ms")
    return spent / 1000 if isinstance(spent, int | float) else None

"""What an opened tool call shows: its arguments, what it printed or changed, or why it failed."""

from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.client.characters import output_text
from app.window.blocks.actions import BlockActions
from app.window.blocks.call_words import arguments_text
from app.window.blocks.code_view import CodeView
from app.window.blocks.copy_button import CopyButton
from app.window.blocks.diff_view import DiffView
from app.window.blocks.paint import rounded
from app.window.rows import ToolRow
from app.window.theme.look import set_look
from app.window.theme.theme import Theme

_MOST_LINES = 20
# A short output only grows and is added to; of a long one the end is shown anew each time.
_SHORT = 16_000
_LAST_LINES = 200


class ToolCard(QWidget):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._actions = actions
        tokens = theme.tokens
        self._arguments = CodeView(theme, "Arguments", most_lines=_MOST_LINES)
        self._output = CodeView(theme, "Output", most_lines=_MOST_LINES, follows=True)
        self._diff = DiffView(theme, most_lines=2 * _MOST_LINES)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(tokens.space_normal, tokens.space_close, tokens.space_close, tokens.space_normal)
        layout.setSpacing(tokens.space_tight)
        self._arguments_head = self._add(layout, "Arguments", self._arguments)
        self._output_head = self._add(layout, "Output", self._output)
        self._diff_head = self._add(layout, "Changes", self._diff)

    def show_row(self, row: ToolRow) -> None:
        diff = diff_of(row)
        # A change says all that its arguments said.
        self._arguments.setVisible(not diff)
        self._arguments_head.setVisible(not diff)
        if not diff:
            self._arguments.show_code(*arguments_text(row.call.tool, row.call.arguments, row.call.invalid))
        self._diff.setVisible(bool(diff))
        self._diff_head.setVisible(bool(diff))
        if diff:
            self._diff.show_diff(diff)
        output = "" if diff else output_text(row.result.text if row.result else _end_of(row.output)).rstrip("\n")
        self._output.setVisible(bool(output))
        self._output_head.setVisible(bool(output))
        if output:
            self._output.show_code(output, "", is_finished=row.result is not None)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        rounded(QPainter(self), self.rect(), tokens.radius_card, fill=tokens.code)

    def _add(self, layout: QVBoxLayout, title: str, view: CodeView) -> QWidget:
        """A part with its title and a button that copies it; the head is returned."""
        label = QLabel(title)
        label.setFont(self._theme.font(self._theme.tokens.size_small))
        set_look(label, "tone", "muted")
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(label, 1)
        name = f"Copy {title.lower()}"
        row.addWidget(CopyButton(self._theme, name, lambda: self._actions.copy(view.toPlainText())))
        layout.addWidget(head)
        layout.addWidget(view)
        return head


def _end_of(output: str) -> str:
    if len(output) <= _SHORT:
        return output
    return "\n".join(output[-_SHORT:].splitlines()[1:][-_LAST_LINES:])


def diff_of(row: ToolRow) -> str:
    """The change that a call made, as a unified diff; empty where it made none."""
    diff = (row.result.details or {}).get("diff") if row.result else None
    return diff if isinstance(diff, str) else ""

"""What an opened tool call shows: its arguments, what it printed or changed, or why it failed."""

from collections.abc import Callable

from PySide6.QtCore import QUrl
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
from app.window.theme.look import push_button, set_look
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
        self._output = CodeView(theme, "Output", most_lines=_MOST_LINES, follows=True, has_links=True)
        self._output.link.connect(actions.open_link)
        self._whole = ""
        self._file = ""
        self._diff = DiffView(theme, most_lines=2 * _MOST_LINES)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(tokens.space_normal, tokens.space_close, tokens.space_close, tokens.space_normal)
        layout.setSpacing(tokens.space_tight)
        self._cut = QLabel("Its end is shown; copying takes all of it.")
        self._open_file = push_button("Open the whole output", "quiet")
        self._open_file.clicked.connect(self._on_open_file)
        self._arguments_head = self._add(layout, "Arguments", self._arguments)
        self._output_head = self._add(layout, "Output", self._output, copy=self._copy_output)
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
        self._whole = "" if diff else row.result.text if row.result else row.output
        self._show_output(output_text(_end_of(self._whole)).rstrip("\n"), is_finished=row.result is not None)
        self._file = _output_file(row)
        self._open_file.setVisible(bool(self._file))

    def _show_output(self, output: str, *, is_finished: bool) -> None:
        self._output.setVisible(bool(output))
        self._output_head.setVisible(bool(output))
        self._cut.setVisible(len(self._whole) > _SHORT)
        if output:
            self._output.show_code(output, "", is_finished=is_finished)

    def _copy_output(self) -> None:
        self._actions.copy(output_text(self._whole).rstrip("\n"))

    def _on_open_file(self) -> None:
        self._actions.open_link(QUrl.fromLocalFile(self._file).toString())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        rounded(QPainter(self), self.rect(), tokens.radius_card, fill=tokens.code)

    def _add(self, layout: QVBoxLayout, title: str, view: CodeView, copy: Callable[[], None] | None = None) -> QWidget:
        """A part with its title and a button that copies it; the head is returned."""
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(self._theme.tokens.space_close)
        for label in (QLabel(title), *((self._cut,) if view is self._output else ())):
            label.setFont(self._theme.font(self._theme.tokens.size_small))
            set_look(label, "tone", "muted")
            row.addWidget(label)
        row.addStretch(1)
        if view is self._output:
            row.addWidget(self._open_file)
        name = f"Copy {title.lower()}"
        row.addWidget(CopyButton(self._theme, name, copy or (lambda: self._actions.copy(view.toPlainText()))))
        layout.addWidget(head)
        layout.addWidget(view)
        return head


def _end_of(output: str) -> str:
    if len(output) <= _SHORT:
        return output
    return "\n".join(output[-_SHORT:].splitlines()[1:][-_LAST_LINES:])


def _output_file(row: ToolRow) -> str:
    """Where the engine keeps an output that was too long or no text; empty for all others."""
    details = (row.result.details or {}) if row.result else {}
    files = (details.get("stdout_file"), details.get("stderr_file"))
    return next((file for file in files if isinstance(file, str) and file), "")


def diff_of(row: ToolRow) -> str:
    """The change that a call made, as a unified diff; empty where it made none."""
    diff = (row.result.details or {}).get("diff") if row.result else None
    return diff if isinstance(diff, str) else ""

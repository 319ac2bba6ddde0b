"""Code of which the beginning is shown, how much more of it there is, and a button that shows all."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.code_box import CodeBox

# What stands above this is scrolled in place even when all is shown.
_MOST_SHOWN = 1_000


class CodeExcerpt(QWidget):
    """`resized` says that more or less of it is shown. `box` is the text itself."""

    resized = Signal()

    def __init__(self, theme: Theme, name: str, *, most_lines: int, diff: bool = False) -> None:
        super().__init__()
        self._most_lines = most_lines
        self._is_whole = False
        self.box = CodeBox(theme, name, most_lines=most_lines, diff=diff)
        self._more = push_button("", "quiet")
        self._more.clicked.connect(self._on_clicked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_tight)
        column.addWidget(self.box)
        column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self._more.hide()
        self.box.hidden_changed.connect(self._show_more)

    @property
    def fits(self) -> bool:
        """True while nothing of the text is out of sight."""
        return not self.box.hidden_lines

    def set_text(self, text: str) -> None:
        self._is_whole = False
        self.box.set_most_lines(self._most_lines)
        self.box.set_text(text)

    def _show_more(self) -> None:
        hidden = self.box.hidden_lines
        way = "Show less" if self._is_whole else "Show all"
        words = f"… {hidden:,} more {'line' if hidden == 1 else 'lines'} · {way}" if hidden else way
        self._more.setText(words)
        self._more.setAccessibleName(f"{words}: {self.box.accessibleName()}")
        self._more.setVisible(self._is_whole or hidden > 0)

    def _on_clicked(self) -> None:
        self._is_whole = not self._is_whole
        self.box.set_most_lines(_MOST_SHOWN if self._is_whole else self._most_lines)
        self._show_more()
        self.resized.emit()

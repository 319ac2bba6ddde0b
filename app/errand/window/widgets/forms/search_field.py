"""The search field: icon, clear button, debounce, Esc to clear."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QToolButton

from errand.text.translation import tr
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme

_DEBOUNCE_MS = 120


class SearchField(QLineEdit):
    """`searched` gives the stripped text: 120 ms after the last key, or at once on Enter and on clearing.

    `down_pressed` is emitted when Down should move the focus into the results.
    """

    searched = Signal(str)
    down_pressed = Signal()

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._searched_text = ""
        self._debounce = QTimer(self)
        self._debounce.setSingleShot(True)
        self._debounce.setInterval(_DEBOUNCE_MS)
        self._find = QAction(self)
        self._clear = QAction(tr("Clear"), self)
        self.addAction(self._find, QLineEdit.ActionPosition.LeadingPosition)
        self.addAction(self._clear, QLineEdit.ActionPosition.TrailingPosition)
        for button, button_name in zip(self.findChildren(QToolButton), (tr("Search"), tr("Clear")), strict=True):
            button.setAccessibleName(button_name)
        self._clear.setVisible(False)
        set_style(self, "look", "search")
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        self._on_theme_changed()
        self.textChanged.connect(self._on_text_changed)
        self.returnPressed.connect(self._emit_text)
        self._clear.triggered.connect(self.clear)
        self._debounce.timeout.connect(self._emit_text)
        theme.changed.connect(self._on_theme_changed)

    def search_now(self) -> bool:
        """Skip the debounce; False if the current text was already emitted."""
        is_new = self.text().strip() != self._searched_text
        self._emit_text()
        return is_new

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
            return
        if event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
            return
        super().keyPressEvent(event)

    def _on_text_changed(self, text: str) -> None:
        self._clear.setVisible(bool(text))
        if text:
            self._debounce.start()
        else:
            self._emit_text()

    def _emit_text(self) -> None:
        self._debounce.stop()
        text = self.text().strip()
        if text != self._searched_text:
            self._searched_text = text
            self.searched.emit(text)

    def _on_theme_changed(self) -> None:
        self._find.setIcon(self._theme.icon("search", "muted"))
        self._clear.setIcon(self._theme.icon("x", "muted"))

"""All actions with their keys, to be changed by pressing others."""

from PySide6.QtCore import Qt

from app.window.shortcuts import Shortcuts
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.actions import ACTIONS
from app.window.views.settings.page import SettingsPage
from app.window.views.settings.shortcut_row import ShortcutRow
from app.window.widgets.search_field import SearchField
from app.window.widgets.text_label import TextLabel

_TEXT = (
    "Press a button, then the keys. In the message field Enter sends, Shift+Enter breaks the line, Alt+Enter queues "
    "and Esc stops; these stay. For quick tasks from anywhere, bind a key to the command errand quick in the keyboard "
    "settings of your desktop; where it lets apps do that, Ctrl+K, “Set a key for quick tasks” does."
)


class ShortcutsPage(SettingsPage):
    def __init__(self, theme: Theme, shortcuts: Shortcuts) -> None:
        super().__init__(theme, "Shortcuts", _TEXT)
        self._shortcuts = shortcuts
        self._search = SearchField(theme, "Search shortcuts")
        self.top.addWidget(self._search)
        self._rows = [ShortcutRow(theme, shortcuts, action) for action in ACTIONS]
        for row in self._rows:
            self.rows.addWidget(row)
        self._nothing = TextLabel(theme, "No action has these words or keys.", tone="muted")
        self._nothing.hide()
        self.rows.addWidget(self._nothing)
        self._all = push_button("Back to the defaults of all")
        self.rows.addWidget(self._all, 0, Qt.AlignmentFlag.AlignLeft)
        self._all.clicked.connect(shortcuts.reset_all)
        self._search.searched.connect(self._on_searched)
        shortcuts.changed.connect(self._on_changed)
        self._on_changed()

    def _on_searched(self, text: str) -> None:
        for row in self._rows:
            row.setVisible(row.matches(text))
        self._nothing.setVisible(not any(row.matches(text) for row in self._rows))

    def _on_changed(self) -> None:
        self._all.setEnabled(self._shortcuts.any_changed)

"""Keyboard shortcuts: one row per action, changed by pressing other keys."""

from PySide6.QtCore import QEvent, QKeyCombination, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QPushButton, QWidget

from errand.text.translation import tr
from errand.window.theme.style import pressed_by_enter, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import SettingsPageView
from errand.window.views.shared.actions import Action, ShortcutStore, shortcut_conflict
from errand.window.widgets.boxes import fill, hbox, set_hbox, set_vbox
from errand.window.widgets.buttons import IconButton, native_keys
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import TextLabel

_MODIFIERS = (Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_Alt, Qt.Key.Key_Meta, Qt.Key.Key_AltGr)
_CLEAR_KEYS = (Qt.Key.Key_Backspace, Qt.Key.Key_Delete)

_KEYS_WIDTH = 180

_TEXT = tr(
    "Click a button, then press the new keys. To start quick tasks from anywhere, bind a key to errand quick in the "
    "keyboard settings of your desktop."
)


class KeySequenceButton(QPushButton):
    """`recorded` gives keys in the format of the action table, `cleared` means that they are removed. Esc cancels."""

    recorded = Signal(str)
    cleared = Signal()

    def __init__(self, action: str) -> None:
        super().__init__()
        self._action = action
        self._shown = ""
        self._records = False
        self.setAutoDefault(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_style(self, "look", "plain")
        self.clicked.connect(self._on_clicked)

    def show_keys(self, keys: str) -> None:
        """Show the keys in the platform's notation; "" for none."""
        self._shown = keys
        self._show(records=False)

    def event(self, event: QEvent) -> bool:
        """While recording, no key triggers a shortcut, and Tab is an ordinary key."""
        if self._records and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress:
                self._record(event)
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._show(records=False)
        super().focusOutEvent(event)

    def _record(self, event: QKeyEvent) -> None:
        if event.key() in _MODIFIERS:
            return
        self._show(records=False)
        plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if plain == Qt.KeyboardModifier.NoModifier and event.key() == Qt.Key.Key_Escape:
            return
        if plain == Qt.KeyboardModifier.NoModifier and event.key() in _CLEAR_KEYS:
            self.cleared.emit()
            return
        pressed = QKeySequence(QKeyCombination(plain, _key_name(event)))
        self.recorded.emit(pressed.toString(QKeySequence.SequenceFormat.PortableText))

    def _show(self, *, records: bool) -> None:
        self._records = records
        text = tr("Press keys…") if records else self._shown or tr("Not set")
        self.setText(text)
        self.setAccessibleName(f"{self._action}: {text}")
        set_tool_tip(self, tr("Esc to cancel, Backspace to clear") if records else tr("Change shortcut"))

    def _on_clicked(self) -> None:
        self._show(records=True)


def _key_name(event: QKeyEvent) -> Qt.Key:
    """Qt reports Shift+Tab as a separate key."""
    return Qt.Key.Key_Tab if event.key() == Qt.Key.Key_Backtab else Qt.Key(event.key())


class ShortcutRowView(QWidget):
    """Takes keys from another action only through "Replace"."""

    def __init__(self, theme: Theme, shortcuts: ShortcutStore, action: Action) -> None:
        super().__init__()
        self.action = action
        self._shortcuts = shortcuts
        self._wanted = ""
        self.keys_button = KeySequenceButton(action.text)
        self._reset = IconButton(theme, "undo-2", tr("Reset {action}").format(action=action.text))
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._problem = TextLabel(theme, tone="waiting", wrap=True)
        self._replace = push_button(tr("Replace"))
        self._keep = push_button(tr("Cancel"), "quiet")
        self._lay_out(theme)
        self.keys_button.recorded.connect(self._on_recorded)
        self.keys_button.cleared.connect(self._on_cleared)
        self._reset.clicked.connect(self._on_reset)
        self._replace.clicked.connect(self._on_replace)
        self._keep.clicked.connect(self._on_keep)
        shortcuts.changed.connect(self._on_changed)
        self._on_changed()

    def matches(self, text: str) -> bool:
        """Return True if all words of a search are in the action's text or keys."""
        keys = " ".join(map(native_keys, self._shortcuts.keys(self.action.name)))
        haystack = f"{self.action.text} {keys}".casefold()
        return all(word in haystack for word in text.casefold().split())

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        line = hbox(
            fill(TextLabel(theme, self.action.text, wrap=True)),
            self.keys_button,
            self._reset,
            spacing=tokens.space_close,
        )
        self._conflict = QWidget()
        set_hbox(self._conflict, fill(self._problem), self._replace, self._keep, spacing=tokens.space_close)
        set_vbox(self, line, self._conflict, spacing=tokens.space_tight)

    def _on_recorded(self, keys: str) -> None:
        holder = self._shortcuts.holder(keys)
        if problem := shortcut_conflict(keys):
            self._show_conflict(problem, can_replace=False)
        elif holder is not None and holder.name != self.action.name:
            self._wanted = keys
            self._show_conflict(
                tr("{keys} is already used by “{action}”.").format(keys=native_keys(keys), action=holder.text),
                can_replace=True,
            )
            self._replace.setFocus()
        else:
            self._shortcuts.bind(self.action.name, keys)

    def _show_conflict(self, problem: str, *, can_replace: bool) -> None:
        self._problem.setText(problem)
        self._replace.setVisible(can_replace)
        self._keep.setVisible(can_replace)
        self._conflict.show()

    def _on_cleared(self) -> None:
        self._shortcuts.clear(self.action.name)

    def _on_reset(self) -> None:
        self._shortcuts.reset(self.action.name)
        self.keys_button.setFocus()

    def _on_replace(self) -> None:
        self._shortcuts.bind(self.action.name, self._wanted)
        self.keys_button.setFocus()

    def _on_keep(self) -> None:
        self._conflict.hide()
        self.keys_button.setFocus()

    def _on_changed(self) -> None:
        self._conflict.hide()
        self.keys_button.show_keys(", ".join(map(native_keys, self._shortcuts.keys(self.action.name))))
        self._reset.setVisible(self._shortcuts.is_changed(self.action.name))


class ShortcutsPageView(SettingsPageView):
    def __init__(self, theme: Theme, shortcuts: ShortcutStore) -> None:
        super().__init__(theme, tr("Shortcuts"), _TEXT)
        self._shortcuts = shortcuts
        self._search = SearchField(theme, tr("Search shortcuts"))
        self.top.addWidget(self._search)
        self._rows = [ShortcutRowView(theme, shortcuts, action) for action in shortcuts.actions]
        width = max(theme.pixels(_KEYS_WIDTH), *(row.keys_button.sizeHint().width() for row in self._rows))
        for row in self._rows:
            row.keys_button.setFixedWidth(width)
            self.rows.addWidget(row)
        self._empty = TextLabel(theme, tr("No results"), tone="muted")
        self._empty.hide()
        self.rows.addWidget(self._empty)
        self._reset_all = push_button(tr("Reset all"))
        self.rows.addWidget(self._reset_all, 0, Qt.AlignmentFlag.AlignLeft)
        self._reset_all.clicked.connect(shortcuts.reset_all)
        self._search.searched.connect(self._on_searched)
        shortcuts.changed.connect(self._on_changed)
        self._on_changed()

    def _on_searched(self, text: str) -> None:
        for row in self._rows:
            row.setVisible(row.matches(text))
        self._empty.setVisible(not any(row.matches(text) for row in self._rows))

    def _on_changed(self) -> None:
        self._reset_all.setEnabled(self._shortcuts.any_changed)

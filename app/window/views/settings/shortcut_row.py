"""One action with its keys, and what stands against new ones."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.window.shortcuts import Shortcuts, native, refusal
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.actions import Action
from app.window.views.settings.key_button import KeyButton
from app.window.widgets.icon_button import IconButton
from app.window.widgets.text_label import TextLabel

_KEYS_WIDTH = 180


class ShortcutRow(QWidget):
    """Keys of another action are taken from it only by "Replace"."""

    def __init__(self, theme: Theme, shortcuts: Shortcuts, action: Action) -> None:
        super().__init__()
        self.action = action
        self._shortcuts = shortcuts
        self._wanted = ""
        self._keys = KeyButton(action.text)
        self._keys.setFixedWidth(_KEYS_WIDTH)
        self._reset = IconButton(theme, "undo-2", f"Back to the default of {action.text}")
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._problem = TextLabel(theme, tone="waiting", wrap=True)
        self._replace = push_button("Replace")
        self._keep = push_button("Keep", "quiet")
        self._lay_out(theme)
        self._keys.recorded.connect(self._on_recorded)
        self._keys.cleared.connect(self._on_cleared)
        self._reset.clicked.connect(self._on_reset)
        self._replace.clicked.connect(self._on_replace)
        self._keep.clicked.connect(self._on_keep)
        shortcuts.changed.connect(self._on_changed)
        self._on_changed()

    def matches(self, text: str) -> bool:
        """True if all words of a search are in the action's text or keys."""
        keys = " ".join(map(native, self._shortcuts.keys(self.action.name)))
        haystack = f"{self.action.text} {keys}".casefold()
        return all(word in haystack for word in text.casefold().split())

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        line = QHBoxLayout()
        line.setSpacing(tokens.space_close)
        line.addWidget(TextLabel(theme, self.action.text, wrap=True), 1)
        line.addWidget(self._keys)
        line.addWidget(self._reset)
        self._against = QWidget()
        against = QHBoxLayout(self._against)
        against.setContentsMargins(0, 0, 0, 0)
        against.setSpacing(tokens.space_close)
        against.addWidget(self._problem, 1)
        against.addWidget(self._replace)
        against.addWidget(self._keep)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.space_tight)
        column.addLayout(line)
        column.addWidget(self._against)

    def _on_recorded(self, keys: str) -> None:
        holder = self._shortcuts.holder(keys)
        if problem := refusal(keys):
            self._object(problem, can_replace=False)
        elif holder is not None and holder.name != self.action.name:
            self._wanted = keys
            self._object(f"{native(keys)} belongs to “{holder.text}”.", can_replace=True)
            self._replace.setFocus()
        else:
            self._shortcuts.bind(self.action.name, keys)

    def _object(self, problem: str, *, can_replace: bool) -> None:
        self._problem.setText(problem)
        self._replace.setVisible(can_replace)
        self._keep.setVisible(can_replace)
        self._against.show()

    def _on_cleared(self) -> None:
        self._shortcuts.clear(self.action.name)

    def _on_reset(self) -> None:
        self._shortcuts.reset(self.action.name)
        self._keys.setFocus()

    def _on_replace(self) -> None:
        self._shortcuts.bind(self.action.name, self._wanted)
        self._keys.setFocus()

    def _on_keep(self) -> None:
        self._against.hide()
        self._keys.setFocus()

    def _on_changed(self) -> None:
        self._against.hide()
        self._keys.show_keys(", ".join(map(native, self._shortcuts.keys(self.action.name))))
        self._reset.setVisible(self._shortcuts.is_changed(self.action.name))

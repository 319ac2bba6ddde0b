"""Shared by message rows: menu entries for edit, retry, fork and keep, buttons on hover, keep mark, branch lock."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtGui import QAction, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLabel, QMenu, QWidget

from errand.protocol.conversations import Node
from errand.text.translation import tr
from errand.window.rows.base import BranchActions, ContextActions, RowActions
from errand.window.theme.style import set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.labels import ElidedLabel

_WORDS = tr("Kept in context: never summarised")


def add_message_entries(menu: QMenu, node: Node, actions: RowActions) -> None:
    """Entries are disabled while the agent runs, with the reason as tool tip; editing may start already."""
    if node.status == "streaming":
        return
    branches, context = actions.branches, actions.context
    menu.addSeparator()
    menu.setToolTipsVisible(True)
    why = branches.locked
    if node.is_from_person:
        _add(menu, tr("Edit message"), lambda: branches.edit(node.id))
    if node.role == "assistant":
        _lock(_add(menu, tr("Retry"), lambda: branches.retry(node.id)), why)
        _lock(_add_models(menu, node, actions), why)
    _lock(_add(menu, tr("New branch from here"), lambda: branches.fork(node.id)), why)
    if context.is_kept(node.id):
        _add(menu, tr("Don't keep in context"), lambda: context.release(node.id))
    else:
        _add(menu, tr("Keep in context"), lambda: context.keep(node.id))
    add_forget_entry(menu, node.id, actions)


def add_forget_entry(menu: QMenu, node_id: str, actions: RowActions) -> None:
    _add(menu, tr("Forget…"), lambda: actions.forget(node_id))


def _add(menu: QMenu, title: str, do: Callable[[], None]) -> QAction:
    action = menu.addAction(title)
    action.triggered.connect(lambda _=False: do())
    return action


def _add_models(menu: QMenu, node: Node, actions: RowActions) -> QAction:
    """Return the available models, except the one that wrote this reply."""
    others = QMenu(tr("Retry with"), menu)
    for model in actions.models():
        if model != node.model:
            _add(others, model, lambda model=model: actions.branches.retry(node.id, model))
    action = menu.addMenu(others)
    action.setVisible(not others.isEmpty())
    return action


def _lock(action: QAction, why: str) -> None:
    if why:
        action.setEnabled(False)
        action.setToolTip(why)


class KeepMarkView(QLabel):
    """Visible only at kept messages."""

    def __init__(self, theme: Theme, context: ContextActions, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._context = context
        self._node_id = ""
        size = theme.tokens.icon_small
        self.setFixedSize(size, size)
        set_tool_tip(self, _WORDS)
        self.setAccessibleName(_WORDS)
        self.hide()
        context.kept_changed.connect(self._show)
        theme.changed.connect(self._show)

    def show_at(self, node_id: str) -> None:
        """`node_id` is empty for a row without a mark, such as the second part of a reply."""
        self._node_id = node_id
        self._show()

    def _show(self) -> None:
        """Most messages never have the mark, so it is drawn when it is shown."""
        is_kept = bool(self._node_id) and self._context.is_kept(self._node_id)
        if is_kept:
            size = QSize(self.width(), self.height())
            self.setPixmap(self._theme.icon("pin", "accent").pixmap(size, self.devicePixelRatioF()))
        self.setVisible(is_kept)


class BranchLock(QObject):
    """`buttons` already have accessible names; while disabled, their tool tips give the reason."""

    def __init__(self, branches: BranchActions, buttons: tuple[QAbstractButton, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self._branches = branches
        self._buttons = buttons
        branches.lock_changed.connect(self._on_lock_changed)
        self._on_lock_changed()

    def _on_lock_changed(self) -> None:
        why = self._branches.locked
        for button in self._buttons:
            set_tool_tip(button, why or button.accessibleName())
            button.setAccessibleDescription(why)
            if why and button.hasFocus():
                _move_focus_away(button)
            button.setEnabled(not why)


def _move_focus_away(button: QWidget) -> None:
    """Move the focus to a parent: Qt would focus the next control, and scroll to it."""
    ancestor = button.parentWidget()
    while ancestor is not None and not ancestor.focusPolicy():
        ancestor = ancestor.parentWidget()
    if ancestor is not None:
        ancestor.setFocus()


class HoverActionsView(QWidget):
    """Visible while the pointer is over `owner`, or a button has the focus."""

    def __init__(self, theme: Theme, owner: QWidget) -> None:
        super().__init__(owner)
        self._theme = theme
        self._owner = owner
        self._buttons: list[HoverButton] = []
        self._shown: list[QWidget] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        owner.installEventFilter(self)

    @property
    def is_bar_visible(self) -> bool:
        return self._owner.underMouse() or any(button.hasFocus() for button in self._buttons)

    def add(self, icon: str, name: str, clicked: Callable[[], None]) -> IconButton:
        button = HoverButton(self._theme, icon, name, self)
        button.clicked.connect(clicked)
        button.installEventFilter(self)
        self._buttons.append(button)
        self._shown.append(button)
        self._row.addWidget(button)
        return button

    def add_text(self) -> "HoverText":
        """Return a muted text at the end of the buttons."""
        text = HoverText(self._theme, self)
        self._row.addWidget(text, 1)
        self._shown.append(text)
        return text

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave, QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            for part in self._shown:
                part.update()
        return False


class HoverButton(IconButton):
    def __init__(self, theme: Theme, icon: str, name: str, bar: HoverActionsView) -> None:
        super().__init__(theme, icon, name)
        self._bar = bar
        side = theme.tokens.icon_small + theme.tokens.space_close
        self.setFixedSize(QSize(side, side))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._bar.is_bar_visible:
            super().paintEvent(event)


class HoverText(ElidedLabel):
    def __init__(self, theme: Theme, bar: HoverActionsView) -> None:
        super().__init__(theme, size=theme.tokens.size_small, tone="muted")
        self._bar = bar

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._bar.is_bar_visible:
            super().paintEvent(event)

"""Holds buttons that would branch a conversation disabled while the agent is at work in it."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.window.blocks.branch_actions import BranchActions
from app.window.theme.look import set_tip


class BranchLock(QObject):
    """`buttons` have their accessible names already; their tool tips say why while they are disabled."""

    def __init__(self, branches: BranchActions, buttons: tuple[QAbstractButton, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self._branches = branches
        self._buttons = buttons
        branches.lock_changed.connect(self._on_lock_changed)
        self._on_lock_changed()

    def _on_lock_changed(self) -> None:
        why = self._branches.locked()
        for button in self._buttons:
            set_tip(button, why or button.accessibleName())
            button.setAccessibleDescription(why)
            if why and button.hasFocus():
                _give_up_keyboard(button)
            button.setEnabled(not why)


def _give_up_keyboard(button: QWidget) -> None:
    """To what it stands in: Qt would look for the next control, and scroll to it."""
    place = button.parentWidget()
    while place is not None and not place.focusPolicy():
        place = place.parentWidget()
    if place is not None:
        place.setFocus()

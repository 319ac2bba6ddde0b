"""What screen readers are told parts of ours are, where Qt would only say "a frame" or nothing."""

from functools import cache

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

_ROLES = {
    "InboxRow": QAccessible.Role.ListItem,
    "QueueRow": QAccessible.Role.ListItem,
    "StateDot": QAccessible.Role.Indicator,
    "TranscriptView": QAccessible.Role.Document,
}


@cache
def install_roles() -> None:
    """Once a process; by the names of classes, so that none of them is imported for it."""
    QAccessible.installFactory(_interface_of)


def _interface_of(class_name: str, thing: QObject | None) -> QAccessibleInterface | None:
    role = _ROLES.get(class_name)
    return QAccessibleWidget(thing, role) if role is not None and isinstance(thing, QWidget) else None

"""Tab order by position; roles and announcements for screen readers."""

from collections.abc import Iterator
from functools import cache, cmp_to_key

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QAccessibleWidget,
    QApplication,
    QComboBox,
    QLineEdit,
    QScrollArea,
    QWidget,
)

_POLICY = Qt.FocusPolicy
_TAKES_TAB = frozenset((_POLICY.TabFocus, _POLICY.StrongFocus, _POLICY.WheelFocus))  # in Python, `&` of flags is slow
_MARGIN = 16  # around what gets the focus, in pixels
_ROLES = {
    "BackgroundRowView": QAccessible.Role.ListItem,
    "InboxRowView": QAccessible.Role.ListItem,
    "QuestionCard": QAccessible.Role.Form,
    "PictureArea": QAccessible.Role.Graphic,
    "QueuedMessageView": QAccessible.Role.ListItem,
    "UsageChartView": QAccessible.Role.Chart,
    "StatusDotView": QAccessible.Role.Indicator,
    "TranscriptView": QAccessible.Role.Document,
}


def step_focus(window: QWidget, focused: QWidget | None, *, forward: bool) -> bool:
    """Move the focus from `focused` to the next control of the window, wrapping around; False if there is none."""
    stops = list(_tab_stops(window))
    here = next((number for number, stop in enumerate(stops) if _holds(stop, focused)), -1 if forward else 0)
    if not stops:
        return False
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    stops[(here + (1 if forward else -1)) % len(stops)].setFocus(reason)
    return True


def is_tab_stop(widget: QWidget) -> bool:
    takes = widget.focusPolicy() in _TAKES_TAB
    return takes and widget.isEnabled() and widget.isVisible() and widget.focusProxy() is None


def _tab_stops(widget: QWidget) -> Iterator[QWidget]:
    if is_tab_stop(widget):
        yield widget
    if _handles_focus_inside(widget):
        return
    children = [child for child in widget.children() if isinstance(child, QWidget)]
    seen = [child for child in children if child.isVisible() and not child.isWindow()]
    for child in sorted(seen, key=cmp_to_key(_compare)) if len(seen) > 1 else seen:
        yield from _tab_stops(child)


def _handles_focus_inside(widget: QWidget) -> bool:
    """Return True for a control that moves the focus inside itself: lists, texts, fields, the transcript."""
    is_pane = isinstance(widget, QAbstractScrollArea) and not isinstance(widget, QScrollArea)
    return is_pane or isinstance(widget, QLineEdit | QComboBox)


def _holds(stop: QWidget, focused: QWidget | None) -> bool:
    return focused is stop or (focused is not None and _handles_focus_inside(stop) and stop.isAncestorOf(focused))


def _compare(one: QWidget, other: QWidget) -> int:
    """Side-by-side widgets are ordered from left to right, regardless of their heights."""
    first, second = one.geometry(), other.geometry()
    if first.bottom() < second.top() or second.bottom() < first.top():
        return first.top() - second.top()
    return first.left() - second.left()


def keep_focus_in_view(application: QApplication) -> None:
    """Scroll to what gets the focus. Qt does so only for steps within one scroll area."""
    application.focusChanged.connect(_scroll_to)


def _scroll_to(_before: QWidget | None, focused: QWidget | None) -> None:
    around = focused.parentWidget() if focused is not None else None
    while focused is not None and around is not None:
        if isinstance(around, QScrollArea) and around.isAncestorOf(focused):
            around.ensureWidgetVisible(focused, _MARGIN, _MARGIN)
        around = around.parentWidget()


@cache
def install_roles() -> None:
    """Call once per process. Compares class names, so that no view is imported for it."""
    QAccessible.installFactory(_interface_of)


def _interface_of(class_name: str, target: QObject | None) -> QAccessibleInterface | None:
    role = _ROLES.get(class_name)
    return QAccessibleWidget(target, role) if role is not None and isinstance(target, QWidget) else None


def announce(widget: QWidget, text: str, *, is_urgent: bool = False) -> None:
    """Have a screen reader say a text: at once if `is_urgent`, else when it has ended what it says.

    Qt passes on no alert of a widget, only announcements.
    """
    politeness = QAccessible.AnnouncementPoliteness
    event = QAccessibleAnnouncementEvent(widget, text)
    event.setPoliteness(politeness.Assertive if is_urgent else politeness.Polite)
    QAccessible.updateAccessibility(event)

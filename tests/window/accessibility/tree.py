"""The accessibility tree of a window, as a screen reader sees it: each control with its role, name and position."""

from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAbstractButton, QAbstractScrollArea, QLineEdit, QListView, QToolButton, QWidget

from errand.window.views.shared.model_picker import ModelPicker
from errand.window.views.shared.picker import PickerDialog
from errand.window.views.shell.tab_bar import TabBarView

_ROLE = QAccessible.Role
_NO_ROLE = (_ROLE.NoRole, _ROLE.Client, _ROLE.Border, _ROLE.Pane, _ROLE.Grouping, _ROLE.LayeredPane)
_CONTROLS = frozenset(
    {
        _ROLE.Button,
        _ROLE.ButtonMenu,
        _ROLE.ButtonDropDown,
        _ROLE.CheckBox,
        _ROLE.RadioButton,
        _ROLE.ComboBox,
        _ROLE.EditableText,
        _ROLE.SpinBox,
        _ROLE.Slider,
        _ROLE.Link,
        _ROLE.List,
        _ROLE.Tree,
        _ROLE.Table,
        _ROLE.PageTabList,
    }
)
_MEMBERS = frozenset(
    {_ROLE.ListItem, _ROLE.PageTab, _ROLE.TreeItem, _ROLE.Cell, _ROLE.RowHeader, _ROLE.ColumnHeader, _ROLE.MenuItem}
)
"""What arrow keys reach within a group that Tab reaches."""

_TEXTS = _CONTROLS | _MEMBERS | {_ROLE.StaticText}


@dataclass(frozen=True, slots=True)
class Element:
    """`widget` is None for a part of one, such as a list item.

    `area` is in window coordinates, clipped to the visible part.
    """

    role: QAccessible.Role
    name: str
    widget: QWidget | None
    area: QRect
    enabled: bool
    takes_keyboard: bool
    read_only: bool

    @property
    def is_control(self) -> bool:
        """True for an interactive element that is not a member of an interactive group."""
        return self.role in _CONTROLS or (self.takes_keyboard and self.role not in (*_MEMBERS, _ROLE.StaticText))

    @property
    def has_role(self) -> bool:
        return self.role not in _NO_ROLE

    @property
    def has_text(self) -> bool:
        return self.role in _TEXTS

    @property
    def is_icon(self) -> bool:
        return isinstance(self.widget, QAbstractButton) and not self.widget.text()

    @property
    def is_only_read(self) -> bool:
        """A text that Tab skips on purpose: all of it is visible, or it can be opened elsewhere."""
        widget = self.widget
        return widget is not None and self.read_only and not widget.focusPolicy() & Qt.FocusPolicy.TabFocus

    @property
    def words(self) -> str:
        """The text for a finding."""
        return words_of(self.widget) if self.widget is not None else f"part {self.role.name} “{self.name[:60]}”"


def words_of(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    name = " ".join(interface.text(QAccessible.Text.Name).split())
    return f"{type(widget).__name__} {interface.role().name} “{name[:60]}”"


def elements(window: QWidget) -> list[Element]:
    """All visible elements of a window, from the top of its tree."""
    return list(_below(QAccessible.queryAccessibleInterface(window), window, window))


def is_part_of_another(widget: QWidget | None) -> bool:
    """True for controls with another keyboard access.

    Esc clears a field, Ctrl+W and Delete close a tab, arrow keys in a picker's field move through its list.
    """
    parent = widget.parent() if widget is not None else None
    is_button = isinstance(widget, QToolButton) and isinstance(parent, QLineEdit | TabBarView)
    return is_button or (isinstance(widget, QListView) and isinstance(parent, PickerDialog | ModelPicker))


def _below(interface: QAccessibleInterface, nearest: QWidget, window: QWidget) -> Iterator[Element]:
    thing = interface.object()
    widget = thing if isinstance(thing, QWidget) else None
    if widget is not None and (not widget.isVisible() or widget.window() is not window):
        return
    nearest = widget or nearest
    area = _place(interface, widget, nearest, window)
    if not area.isEmpty():
        yield _element(interface, widget, area)
        for number in range(interface.childCount()):
            child = interface.child(number)
            if child is not None and child.isValid():  # pyright: ignore[reportUnnecessaryComparison] -- Qt gives None
                yield from _below(child, nearest, window)


def _element(interface: QAccessibleInterface, widget: QWidget | None, area: QRect) -> Element:
    state = interface.state()
    return Element(
        interface.role(),
        interface.text(QAccessible.Text.Name),
        widget,
        area,
        not state.disabled,  # pyright: ignore[reportAttributeAccessIssue] -- PySide6's stubs leave out its fields
        bool(state.focusable),  # pyright: ignore[reportAttributeAccessIssue] -- the same
        bool(state.readOnly),  # pyright: ignore[reportAttributeAccessIssue] -- the same
    )


def _place(interface: QAccessibleInterface, widget: QWidget | None, nearest: QWidget, window: QWidget) -> QRect:
    """Return the rectangle of an element in window coordinates, clipped by its ancestors."""
    if widget is window:
        return window.rect()
    screen = interface.rect()
    area = QRect(window.mapFromGlobal(screen.topLeft()), screen.size())
    around = widget.parentWidget() if widget is not None else nearest
    if isinstance(around, QAbstractScrollArea) and widget is None:
        around = around.viewport()
    while isinstance(around, QWidget) and around is not window:
        area = area.intersected(QRect(around.mapTo(window, around.rect().topLeft()), around.size()))
        around = around.parentWidget()
    return area.intersected(window.rect())

"""Keyboard shortcuts: their store and the page that changes them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QHelpEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.settings.shortcuts_page import ShortcutsPageView
from errand.window.views.shared.actions import ShortcutStore, WindowActions, shortcut_conflict
from errand.window.views.shell.actions import ACTIONS
from errand.window.views.shell.shortcuts_dialog import ShortcutsDialog
from errand.window.widgets.buttons import ShortcutToolTip
from errand.window.widgets.labels import TextLabel

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def state(qapp: QApplication, tmp_path: Path) -> WindowStateStore:
    return WindowStateStore(tmp_path / "window.json")


@pytest.fixture
def shortcuts(state: WindowStateStore) -> ShortcutStore:
    return ShortcutStore(state, ACTIONS)


@pytest.fixture
def page(qtbot: QtBot, theme: Theme, shortcuts: ShortcutStore) -> ShortcutsPageView:
    view = ShortcutsPageView(theme, shortcuts)
    qtbot.addWidget(view)
    view.resize(700, 600)
    view.show()
    return view


def button(page: QWidget, start: str) -> QAbstractButton:
    buttons = [
        candidate for candidate in page.findChildren(QAbstractButton) if candidate.accessibleName().startswith(start)
    ]
    return next(candidate for candidate in buttons if candidate.isVisible())


def texts(page: QWidget) -> list[str]:
    return [label.text() for label in page.findChildren(TextLabel) if label.isVisible()]


def press(page: QWidget, action: str, key: Qt.Key, modifiers: Qt.KeyboardModifier = CTRL) -> None:
    keys = button(page, f"{action}:")
    QTest.mouseClick(keys, Qt.MouseButton.LeftButton)
    QTest.keyClick(keys, key, modifiers)


def test_shortcuts_are_the_defaults_until_others_are_chosen_and_saved(
    shortcuts: ShortcutStore, state: WindowStateStore, tmp_path: Path
) -> None:
    assert shortcuts.keys("new_task") == ("Ctrl+T", "Ctrl+N")
    shortcuts.bind("new_task", "Ctrl+Alt+T")
    state.flush()
    again = ShortcutStore(WindowStateStore(tmp_path / "window.json"), ACTIONS)
    assert again.keys("new_task") == ("Ctrl+Alt+T",)
    again.reset("new_task")
    assert not again.any_changed


def test_a_shortcut_taken_from_an_action_does_not_return_to_its_default(
    shortcuts: ShortcutStore,
) -> None:
    shortcuts.bind("tour", "Ctrl+T")
    assert (shortcuts.keys("tour"), shortcuts.keys("new_task")) == (("Ctrl+T",), ("Ctrl+N",))
    shortcuts.reset("new_task")
    assert shortcuts.keys("new_task") == ("Ctrl+N",)
    shortcuts.reset_all()
    assert shortcuts.keys("new_task") == ("Ctrl+T", "Ctrl+N")


@pytest.mark.parametrize("keys", ["Return", "Esc", "A", "Shift+A", "Tab", "Alt+Return", "Ctrl+C", "Ctrl+3"])
def test_reserved_keys_are_refused_with_a_reason(keys: str) -> None:
    assert shortcut_conflict(keys).endswith(".")


def test_no_default_shortcut_would_be_refused() -> None:
    assert [keys for action in ACTIONS for keys in action.shortcuts if shortcut_conflict(keys)] == []


def test_a_new_shortcut_works_at_once_in_every_window(qtbot: QtBot, shortcuts: ShortcutStore) -> None:
    done: list[str] = []
    slots: dict[str, Callable[[], None]] = {a.name: partial(done.append, a.name) for a in ACTIONS}
    window = QWidget()
    qtbot.addWidget(window)
    WindowActions(slots, lambda number: done.append(f"tab {number}"), shortcuts).add_to(window)
    shortcuts.bind("tour", "Ctrl+Alt+P")
    (entry,) = (action for action in window.actions() if action.text() == "Play the tour")
    assert isinstance(entry, QAction)
    assert entry.shortcuts() == [QKeySequence("Ctrl+Alt+P")]
    entry.trigger()
    assert done == ["tour"]


def test_a_tool_tip_shows_the_current_shortcut(qtbot: QtBot, shortcuts: ShortcutStore) -> None:
    slots: dict[str, Callable[[], None]] = {a.name: lambda: None for a in ACTIONS}
    window = QWidget()
    qtbot.addWidget(window)
    WindowActions(slots, lambda number: None, shortcuts).add_to(window)
    control = QPushButton("Allow once", window)
    ShortcutToolTip(control, "Allow once", "allow_once")
    point = QPoint(1, 1)
    tips: list[str] = []
    for change in (lambda: None, lambda: shortcuts.bind("allow_once", "F8"), lambda: shortcuts.clear("allow_once")):
        change()
        QCoreApplication.sendEvent(control, QHelpEvent(QEvent.Type.ToolTip, point, point))
        tips.append(control.toolTip())
    assert tips == ["Allow once (Ctrl+Return)", "Allow once (F8)", "Allow once"]


def test_a_pressed_shortcut_is_recorded_shown_and_can_be_reset(
    page: ShortcutsPageView, shortcuts: ShortcutStore
) -> None:
    press(page, "Play the tour", Qt.Key.Key_Y)
    assert shortcuts.keys("tour") == ("Ctrl+Y",)
    assert button(page, "Play the tour:").text() == "Ctrl+Y"
    QTest.mouseClick(button(page, "Reset Play the tour"), Qt.MouseButton.LeftButton)
    assert shortcuts.keys("tour") == ()


def test_a_conflicting_shortcut_names_the_other_action_and_is_kept_or_replaced(
    page: ShortcutsPageView, shortcuts: ShortcutStore
) -> None:
    press(page, "Play the tour", Qt.Key.Key_W)
    assert "Ctrl+W is already used by “Close tab”." in texts(page)
    QTest.mouseClick(button(page, "Cancel"), Qt.MouseButton.LeftButton)
    assert (shortcuts.keys("tour"), shortcuts.keys("close_tab")) == ((), ("Ctrl+W",))
    press(page, "Play the tour", Qt.Key.Key_W)
    QTest.mouseClick(button(page, "Replace"), Qt.MouseButton.LeftButton)
    assert (shortcuts.keys("tour"), shortcuts.keys("close_tab")) == (("Ctrl+W",), ())


def test_a_refused_shortcut_gives_the_reason_esc_cancels_and_backspace_clears(
    page: ShortcutsPageView, shortcuts: ShortcutStore
) -> None:
    press(page, "Stop task", Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier)
    assert any(text.startswith("Return is needed for typing") for text in texts(page))
    press(page, "Stop task", Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    assert shortcuts.keys("stop") == ("Ctrl+.",)
    press(page, "Stop task", Qt.Key.Key_Backspace, Qt.KeyboardModifier.NoModifier)
    assert shortcuts.keys("stop") == ()
    assert button(page, "Stop task:").text() == "Not set"


def test_the_shortcuts_page_is_searched_by_words_and_by_keys(page: ShortcutsPageView, qtbot: QtBot) -> None:
    field = page.findChild(QLineEdit)
    assert isinstance(field, QLineEdit)
    field.setText("ctrl+shift+t")
    qtbot.waitUntil(lambda: "New task" not in texts(page))
    assert "Reopen closed tab" in texts(page)


def test_the_shortcuts_dialog_shows_the_current_shortcuts(qtbot: QtBot, theme: Theme, shortcuts: ShortcutStore) -> None:
    shortcuts.bind("new_task", "Ctrl+Alt+T")
    parent = QWidget()
    qtbot.addWidget(parent)
    sheet = ShortcutsDialog(theme, shortcuts, parent)
    label_texts = [label.text() for label in sheet.findChildren(TextLabel)]
    assert label_texts[label_texts.index("New task") + 1] == "Ctrl+Alt+T"

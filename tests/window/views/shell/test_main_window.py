"""The main window before and without an engine: actions, names, tabs."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QWidget,
)

from errand.client.connection import Connection
from errand.client.errors import LaunchError
from errand.system.paths import Paths
from errand.window.main import build_window
from errand.window.stores.stores import make_stores
from errand.window.stores.task_options import TaskOptions
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.memory.dialog import MemoryDialog
from errand.window.views.shell.actions import ACTIONS
from errand.window.views.shell.main_window import MainWindow
from errand.window.views.shell.shortcuts_dialog import ShortcutsDialog

CONTROLS = (QAbstractButton, QAbstractItemView, QLineEdit, QPlainTextEdit)


async def no_engine() -> Connection:
    raise LaunchError("The engine did not start.")


@pytest.fixture
async def window(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[MainWindow]:
    paths = Paths(tmp_path)
    stores = make_stores(no_engine)
    window = build_window(qapp, stores, paths, WindowStateStore(tmp_path / "window.json"), theme)
    window.show()
    yield window
    window.close()
    await stores.session.close()
    window.deleteLater()


async def test_every_control_has_a_name_and_is_reached_by_tab(window: MainWindow) -> None:
    controls = [control for kind in CONTROLS for control in window.findChildren(kind) if control.isVisible()]
    assert len(controls) >= 6
    assert [repr(control) for control in controls if not control.accessibleName()] == []
    own = [control for control in controls if not isinstance(control.parent(), QLineEdit)]  # Esc clears a field
    unreached = [control.accessibleName() for control in own if not _is_reached(control)]
    assert unreached == ["Close New task"]  # closed with Ctrl+W


async def test_the_sheet_of_shortcuts_fits_the_screen_and_scrolls_by_keys(window: MainWindow) -> None:
    window.commands.trigger("shortcuts")
    (sheet,) = window.findChildren(ShortcutsDialog)
    room = window.screen().availableSize()
    assert sheet.width() <= room.width() and sheet.height() <= room.height()
    area = sheet.findChildren(QScrollArea)[0]
    QTest.keyClick(sheet, Qt.Key.Key_PageDown)
    assert area.verticalScrollBar().value() == min(area.viewport().height(), area.verticalScrollBar().maximum())
    sheet.close()


async def test_every_action_has_a_slot_and_no_shortcut_is_given_twice(window: MainWindow) -> None:
    keys = [key for action in ACTIONS for key in action.shortcuts]
    assert len(keys) == len(set(keys))
    for action in ACTIONS:
        window.commands.trigger(action.name)
    for popup in QApplication.topLevelWidgets():
        if popup is not window:
            popup.close()


async def test_keys_zoom_the_whole_window_and_nothing_is_cut(window: MainWindow, theme: Theme) -> None:
    window.resize(1280, 720)
    field, search = window.tabs.active.composer.field, window.sidebar.search
    before = (field.font().pixelSize(), search.font().pixelSize(), window.sidebar.minimumWidth())
    for key, start, size in ((Qt.Key.Key_Equal, 175, 26), (Qt.Key.Key_Minus, 90, 11)):
        theme.set_zoom(start)
        QTest.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
        QApplication.processEvents()
        assert (field.font().pixelSize(), search.font().pixelSize()) == (size, size)
        assert cut(window) == []
    QTest.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert (field.font().pixelSize(), search.font().pixelSize(), window.sidebar.minimumWidth()) == before


def cut(window: MainWindow) -> list[str]:
    """Texts of buttons and single-line labels that have less room than they need."""
    buttons = [widget for widget in window.findChildren(QPushButton) if widget.isVisible()]
    labels = [widget for widget in window.findChildren(QLabel) if widget.isVisible() and not widget.wordWrap()]
    return [
        f"{widget.text()}: {widget.size()} of {widget.fontMetrics().horizontalAdvance(widget.text())}"
        for widget in (*buttons, *labels)
        if widget.width() < widget.fontMetrics().horizontalAdvance(widget.text())
        or widget.height() < widget.fontMetrics().height()
    ]


async def test_there_is_at_most_one_new_empty_conversation(window: MainWindow) -> None:
    window.commands.trigger("new_task")
    assert len(window.tabs.bar.keys) == 1
    QTest.keyClicks(window.tabs.active.composer.field, "half a thought")
    window.commands.trigger("new_task")
    assert len(window.tabs.bar.keys) == 2
    window.commands.trigger("close_tab")
    window.commands.trigger("close_tab")
    assert len(window.tabs.bar.keys) == 1


async def test_an_engine_that_does_not_start_is_reported_and_nothing_is_sent(window: MainWindow) -> None:
    stores = window.stores
    await stores.session.start()
    notices = window.tabs.active.notices
    assert notices.shown == "connection"
    assert "The engine did not start." in notices.text
    field = window.tabs.active.composer.field
    QTest.keyClicks(field, "do it")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert window.tabs.active.composer.text == "do it"


async def test_the_window_can_be_700_pixels_wide_with_readable_tabs(window: MainWindow) -> None:
    long = TaskOptions(workspace="/work/a_folder_with_a_name_that_is_as_long_as_it_gets", model="o/" + "m" * 60)
    window.tabs.active.input_panel.set_options(long)
    window.resize(700, 600)
    assert window.minimumSizeHint().width() <= 700
    for number in range(20):
        window.tabs.open(f"conv_{number}", in_background=True)
    QApplication.processEvents()
    assert min(window.tabs.bar.tabRect(index).width() for index in range(20)) >= 90
    assert window.width() == 700
    assert window.minimumSizeHint().width() <= 700


def _is_reached(control: QWidget) -> bool:
    return bool(control.focusPolicy() & Qt.FocusPolicy.TabFocus)


async def test_a_draft_and_its_attachments_survive_a_restart(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("a line")
    drafts: list[tuple[str, tuple[str, ...]]] = []
    for number in range(2):
        stores, state = make_stores(no_engine), WindowStateStore(tmp_path / "window.json")
        window = build_window(qapp, stores, Paths(tmp_path), state, theme)
        window.show()
        window.conversations.restore()
        composer = window.tabs.active.composer
        if number == 0:
            QTest.keyClicks(composer.field, "half a thought")
            composer.attachments.add([str(notes)])
        drafts.append((composer.text, composer.attachments.paths))
        window.close()
        state.flush()
        await stores.session.close()
        window.deleteLater()
    assert drafts == [("half a thought", (str(notes),))] * 2


async def test_the_settings_lead_to_memory_also_without_an_engine(window: MainWindow) -> None:
    settings = window.dialogs.settings
    settings.open_page("data")
    next(widget for widget in settings.findChildren(QAbstractButton) if widget.text() == "Open memory").click()
    opened = [
        widget for widget in QApplication.topLevelWidgets() if isinstance(widget, MemoryDialog) and widget.isVisible()
    ]
    assert len(opened) == 1
    opened[0].close()
    settings.close()


def button(window: MainWindow, name: str) -> QAbstractButton:
    return next(candidate for candidate in window.findChildren(QAbstractButton) if candidate.accessibleName() == name)


async def test_settings_and_help_have_visible_buttons(window: MainWindow) -> None:
    button(window, "Settings").click()
    assert window.dialogs.settings.isVisible()
    window.dialogs.settings.close()
    button(window, "Help").click()
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    entries = {action.text(): action for action in menu.actions() if action.text()}
    assert [*entries] == ["Keyboard shortcuts", "Search actions and settings", "Play the tour", "About Errand"]
    entries["About Errand"].trigger()
    assert window.dialogs.settings.isVisible()
    window.dialogs.settings.close()
    menu.close()


async def test_a_hidden_sidebar_leaves_a_button_that_brings_it_back(window: MainWindow) -> None:
    assert not window.tabs.sidebar_button.isVisible()
    button(window, "Hide sidebar").click()
    assert (window.sidebar.isVisible(), window.tabs.sidebar_button.isVisible()) == (False, True)
    window.tabs.sidebar_button.click()
    assert (window.sidebar.isVisible(), window.tabs.sidebar_button.isVisible()) == (True, False)

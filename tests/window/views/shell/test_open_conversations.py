"""Conversations in tabs and in separate windows, without an engine."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from errand.client.connection import Connection
from errand.client.errors import LaunchError
from errand.protocol.tasks.task import replace_fields
from errand.system.paths import Paths
from errand.window.main import apply_appearance, build_window
from errand.window.stores.stores import make_stores
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.shell.actions import ACTIONS
from errand.window.views.shell.main_window import MainWindow
from tests.support.records import task
from tests.support.window import until


async def no_engine() -> Connection:
    raise LaunchError("The engine did not start.")


@pytest.fixture
def state(tmp_path: Path, qapp: QApplication) -> WindowStateStore:
    return WindowStateStore(tmp_path / "window.json")


@pytest.fixture
async def window(
    qapp: QApplication, theme: Theme, tmp_path: Path, state: WindowStateStore
) -> AsyncGenerator[MainWindow]:
    stores = make_stores(no_engine)
    window = build_window(qapp, stores, Paths(tmp_path), state, theme)
    window.show()
    yield window
    window.close()
    await stores.session.close()
    window.deleteLater()


async def test_a_pinned_tab_is_restored_and_not_closed_with_the_others(
    window: MainWindow, state: WindowStateStore
) -> None:
    for name in ("conv_1", "conv_2", "conv_3"):
        window.conversations.open(name)
    window.conversations.open("conv_2")
    window.commands.trigger("pin_tab")
    assert window.tabs.open_ids == ("conv_2", "conv_1", "conv_3")
    assert state.settings.pinned == ["conv_2"]
    window.tabs.close_tabs((*window.tabs.bar.keys[:2], *window.tabs.bar.keys[3:]))
    assert window.tabs.open_ids == ("conv_2", "conv_3")
    window.commands.trigger("pin_tab")
    assert state.settings.pinned == []


async def test_a_tab_moves_to_its_own_window_and_back(window: MainWindow) -> None:
    window.conversations.open("conv_1")
    window.conversations.open("conv_2")
    view = window.conversations.active
    window.commands.trigger("own_window")
    (own,) = window.conversations.windows
    assert own.page.view is view
    assert (window.tabs.open_ids, window.conversations.active_id) == (("conv_1",), "conv_2")
    window.conversations.open("conv_1")
    assert (window.conversations.active_id, window.conversations.active_window) == ("conv_1", None)
    window.conversations.open("conv_2")
    assert window.conversations.active_window is own
    assert window.tabs.open_ids == ("conv_1",)
    window.commands.trigger("own_window")
    assert (window.conversations.windows, window.tabs.open_ids) == ((), ("conv_1", "conv_2"))
    assert window.conversations.active is view


async def test_a_dropped_tab_becomes_a_window_there_and_comes_back_there(window: MainWindow) -> None:
    window.conversations.open("conv_1")
    window.conversations.open("conv_2")
    screen = window.screen().availableGeometry()
    dropped = screen.topLeft() + QPoint(300, 40)
    window.tabs.own_window_requested.emit(window.tabs.active_page, dropped)
    (own,) = window.conversations.windows
    assert own.frameGeometry().contains(dropped)
    assert own.frameGeometry().top() == dropped.y() - 16
    own.setGeometry(30, 40, 500, 400)
    window.commands.trigger("own_window")
    window.commands.trigger("own_window")
    (again,) = window.conversations.windows
    assert (again.geometry().topLeft(), again.size()) == (QPoint(30, 40), QSize(500, 400))


async def test_a_conversation_window_closes_like_a_tab_and_reopens_as_one(window: MainWindow) -> None:
    window.conversations.open("conv_1")
    window.commands.trigger("own_window")
    window.commands.trigger("close_tab")
    assert (window.conversations.windows, window.tabs.open_ids) == ((), ())
    window.commands.trigger("reopen_tab")
    assert window.tabs.open_ids == ("conv_1",)


async def test_the_title_of_a_conversation_window_shows_task_state_and_unread_count(window: MainWindow) -> None:
    for name in ("conv_1", "conv_2"):
        window.conversations.open(name)
        window.commands.trigger("own_window")
    own, front = window.conversations.windows
    begun = replace_fields(task("task_1", started_at=datetime.now(UTC)), conversation_id="conv_1")
    window.stores.tasks.put(begun)
    assert own.windowTitle() == "New task · working — Errand"
    window.stores.tasks.put(
        replace_fields(begun, status="completed", stop_reason="completed", ended_at=datetime.now(UTC))
    )
    assert (own.windowTitle(), front.windowTitle()) == ("New task · done · 1 new — Errand", "New task — Errand")
    window.conversations.open("conv_1")
    assert own.windowTitle() == "New task · done — Errand"


async def test_shortcuts_and_error_notices_work_in_a_conversation_window(window: MainWindow) -> None:
    window.conversations.open("conv_1")
    window.commands.trigger("own_window")
    (own,) = window.conversations.windows
    window.show_error("The disk is full.")
    assert own.page.view.notices.text == "The disk is full."
    assert window.tabs.active.notices.shown is None
    QTest.keyClick(own, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    assert window.conversations.windows == ()


async def test_a_conversation_window_can_go_to_tabs_by_number_but_not_pin_or_move_them(window: MainWindow) -> None:
    for name in ("conv_1", "conv_2", "conv_3"):
        window.conversations.open(name)
    window.commands.trigger("own_window")
    (own,) = window.conversations.windows
    with_tabs = {action.text for action in ACTIONS if action.of_tab}
    assert with_tabs == {"Pin or unpin tab", "Move tab left", "Move tab right"}
    assert with_tabs & {entry.text() for entry in own.actions()} == set()
    assert with_tabs <= {entry.text() for entry in window.actions()}
    QTest.keyClick(own, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert (window.conversations.active_window, window.conversations.active_id) == (None, "conv_1")


async def test_conversation_windows_are_restored_with_their_size(
    window: MainWindow, state: WindowStateStore, theme: Theme, tmp_path: Path, qapp: QApplication
) -> None:
    window.conversations.open("conv_1")
    window.commands.trigger("own_window")
    window.conversations.windows[0].resize(640, 480)
    window.close()
    stores = make_stores(no_engine)
    second = build_window(qapp, stores, Paths(tmp_path), WindowStateStore(tmp_path / "window.json"), theme)
    second.show()
    second.conversations.restore()
    (own,) = second.conversations.windows
    assert (own.page.conversation_id, own.width(), own.height()) == ("conv_1", 640, 480)
    second.close()
    await stores.session.close()
    second.deleteLater()


async def test_the_place_of_a_conversation_window_is_kept_without_an_orderly_end(
    window: MainWindow, tmp_path: Path
) -> None:
    window.conversations.open("conv_1")
    window.commands.trigger("own_window")
    await until(lambda: "conv_1" in WindowStateStore(tmp_path / "window.json").settings.windows)
    (own,) = window.conversations.windows
    own.setGeometry(40, 50, 620, 430)
    geometry = bytes(own.saveGeometry().data())
    await until(lambda: WindowStateStore(tmp_path / "window.json").settings.windows == {"conv_1": geometry})


async def test_tabs_have_their_titles_before_the_engine_is_connected(
    window: MainWindow, theme: Theme, tmp_path: Path, qapp: QApplication
) -> None:
    for name in ("conv_1", "conv_2"):
        window.conversations.open(name)
        window.tabs.active_page.title = "A title"
    window.commands.trigger("own_window")
    window.close()
    stores = make_stores(no_engine)
    second = build_window(qapp, stores, Paths(tmp_path), WindowStateStore(tmp_path / "window.json"), theme)
    second.show()
    second.conversations.restore()
    assert second.tabs.bar.tabText(0) == "A title"
    assert [own.windowTitle() for own in second.conversations.windows] == ["A title — Errand"]
    assert "will be listed" not in str([label.text() for label in second.sidebar.findChildren(QLabel)])
    second.close()
    await stores.session.close()
    second.deleteLater()


@pytest.mark.parametrize("name", ["tree", "review"])
async def test_a_panel_is_restored_with_its_width(
    name: Literal["tree", "review"], window: MainWindow, theme: Theme, tmp_path: Path, qapp: QApplication
) -> None:
    for conversation_id in ("conv_1", "conv_2"):
        window.conversations.open(conversation_id)
    window.resize(1300, 700)
    window.commands.trigger(name)
    qapp.processEvents()
    window.conversations.active.panels.moveSplitter(520, 1)
    wide = opened(window, name)
    window.close()
    stores = make_stores(no_engine)
    second = build_window(qapp, stores, Paths(tmp_path), WindowStateStore(tmp_path / "window.json"), theme)
    second.resize(window.size())
    second.show()
    qapp.processEvents()
    assert second.conversations.active_id == "conv_2"
    assert opened(second, name) == wide > 0
    assert second.focusWidget() is second.conversations.active.composer.field
    second.conversations.open("conv_1")
    assert opened(second, name) == 0
    second.close()
    await stores.session.close()
    second.deleteLater()


def opened(window: MainWindow, name: Literal["tree", "review"]) -> int:
    """The width of a panel of the conversation in front."""
    view = window.conversations.active
    return view.tree.open_width if name == "tree" else view.review.open_width


async def test_how_diffs_are_shown_is_remembered_for_all_conversations(window: MainWindow, tmp_path: Path) -> None:
    window.conversations.open("conv_1")
    first = window.conversations.active.review.panel
    window.conversations.open("conv_2")
    window.conversations.active.review.panel.layout_chosen.emit(True)
    assert first.file.diff.is_side_by_side
    window.conversations.open("conv_3")
    assert window.conversations.active.review.panel.file.diff.is_side_by_side
    window.close()
    assert WindowStateStore(tmp_path / "window.json").settings.side_by_side


async def test_a_deleted_conversation_is_closed_everywhere_and_not_reopened(window: MainWindow) -> None:
    for name in ("conv_1", "conv_2", "conv_3"):
        window.conversations.open(name)
    window.commands.trigger("own_window")
    window.stores.conversations.drop("conv_3")
    window.stores.conversations.drop("conv_2")
    assert (window.conversations.windows, window.tabs.open_ids) == ((), ("conv_1",))
    window.commands.trigger("reopen_tab")
    assert window.tabs.open_ids == ("conv_1",)


async def test_the_sidebar_can_be_hidden_and_search_shows_it_again(window: MainWindow, state: WindowStateStore) -> None:
    window.commands.trigger("sidebar")
    assert (window.sidebar.isVisible(), state.settings.sidebar_hidden) == (False, True)
    window.commands.trigger("search")
    assert (window.sidebar.isVisible(), state.settings.sidebar_hidden) == (True, False)


async def test_the_chosen_theme_is_saved(window: MainWindow, state: WindowStateStore, theme: Theme) -> None:
    theme.set_transcript_font("Some Serif", 17)
    theme.set_zoom(150)
    theme.set_motion(False)
    theme.set_mode("dark")
    saved = state.settings
    assert (saved.theme, saved.motion, saved.reading_family, saved.reading_size) == ("dark", False, "Some Serif", 17)
    again = Theme()
    apply_appearance(again, state)
    assert (again.mode, again.motion, again.reading_family, again.zoom) == ("dark", False, "Some Serif", 150)


async def test_the_source_of_what_was_recalled_opens_in_a_tab_of_its_own(window: MainWindow) -> None:
    window.conversations.open("conv_1")
    window.conversations.active.store.source_requested.emit("conv_2", "n1")
    assert (window.conversations.active_id, window.tabs.open_ids) == ("conv_2", ("conv_1", "conv_2"))

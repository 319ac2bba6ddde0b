"""An empty window leads to a model and to a folder, with one click each."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QScrollArea

from errand.engine.sandbox.detection import is_sandboxed
from errand.system.environment import terminal_folder
from errand.system.paths import Paths
from errand.window.main import build_window
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.conversation.welcome import FoldersView, WelcomeView
from errand.window.views.settings.dialog import SettingsDialog
from errand.window.views.settings.local_models_page import LocalModelsPageView
from errand.window.views.settings.providers.form import ProviderFormCard
from errand.window.views.shell.main_window import MainWindow
from tests.support.model_server import ModelServer
from tests.support.store_engine import store_engine
from tests.support.window import press, until


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Folders of a person, by name."""
    folders = {name: tmp_path / "work" / name for name in ("here", "shop", "notes", "gone")}
    for name, folder in folders.items():
        if name != "gone":
            folder.mkdir(parents=True)
    return {name: str(folder) for name, folder in folders.items()}


@pytest.fixture
def state(qapp: QApplication, tmp_path: Path, folders: dict[str, str]) -> WindowStateStore:
    state = WindowStateStore(tmp_path / "window.json")
    state.settings.recent_folders = [folders[name] for name in ("shop", "gone", "notes")]
    return state


@pytest.fixture
async def window(
    qapp: QApplication, theme: Theme, tmp_path: Path, state: WindowStateStore, folders: dict[str, str]
) -> AsyncGenerator[MainWindow]:
    async with store_engine(tmp_path, ModelServer()) as engine:
        window = build_window(qapp, engine.stores, Paths(tmp_path / "data"), state, theme, folders["here"])
        window.show()
        yield window
        for dialog in QApplication.topLevelWidgets():
            if dialog is not window:
                dialog.close()
        window.close()
        window.deleteLater()


async def empty(window: MainWindow) -> WelcomeView:
    """The welcome of a window without a model, once folders were looked for."""
    window.dialogs.settings_closed.emit()  # searches for models
    welcome = window.conversations.active.welcome
    await until(lambda: welcome.set_up.isVisible() and bool(welcome.folders.rows))
    return welcome


def listed(folders: FoldersView) -> list[str]:
    return [Path(row.folder).name for row in folders.rows]


async def test_one_click_opens_the_form_of_a_provider(window: MainWindow) -> None:
    welcome = await empty(window)
    press(welcome, "Set up your own model")
    (settings,) = (widget for widget in QApplication.topLevelWidgets() if isinstance(widget, SettingsDialog))
    await until(lambda: any(form.isVisible() for form in settings.findChildren(ProviderFormCard)))


async def test_one_click_opens_the_models_that_run_here(window: MainWindow) -> None:
    welcome = await empty(window)
    press(welcome, "Run a model here")
    (settings,) = (widget for widget in QApplication.topLevelWidgets() if isinstance(widget, SettingsDialog))
    await until(lambda: any(page.isVisible() for page in settings.findChildren(LocalModelsPageView)))


async def test_the_tour_is_the_first_thing_to_do_until_it_was_played(
    window: MainWindow, state: WindowStateStore, tmp_path: Path
) -> None:
    welcome = await empty(window)
    assert (welcome.tour.property("look"), welcome.set_up.property("look")) == ("primary", "plain")
    assert welcome.focus_pane() is welcome.tour
    window.welcome.set_toured()
    assert (welcome.tour.property("look"), welcome.set_up.property("look")) == ("plain", "primary")
    assert welcome.focus_pane() is welcome.set_up
    state.flush()
    assert WindowStateStore(tmp_path / "window.json").settings.has_toured


@pytest.mark.skipif(not is_sandboxed("auto"), reason="there is no sandbox")
async def test_the_first_choice_of_a_mode_is_offered_until_one_is_chosen(
    window: MainWindow, state: WindowStateStore, tmp_path: Path
) -> None:
    view = window.conversations.active
    await until(view.welcome.first_mode.isVisible)
    press(view.welcome, "Auto in the sandbox (recommended)")
    assert view.input_panel.task_options.options.approve == "auto"
    assert not view.welcome.first_mode.isVisible()
    state.flush()
    settings = WindowStateStore(tmp_path / "window.json").settings
    assert (settings.has_chosen_mode, settings.options.approve) == (True, "auto")


@pytest.mark.skipif(not is_sandboxed("auto"), reason="there is no sandbox")
async def test_a_mode_chosen_below_the_message_field_is_a_choice_too(window: MainWindow) -> None:
    view = window.conversations.active
    await until(view.welcome.first_mode.isVisible)
    view.input_panel.approval_mode.cycle()
    assert not view.welcome.first_mode.isVisible()


@pytest.mark.skipif(not is_sandboxed("auto"), reason="there is no sandbox")
async def test_in_a_narrow_window_nothing_is_cut_off(window: MainWindow) -> None:
    def overhang(welcome: WelcomeView) -> int:
        QApplication.processEvents()
        window.resize(window.minimumSizeHint())
        QApplication.processEvents()
        area = welcome.findChildren(QScrollArea)[0]
        inside = area.widget()
        assert inside is not None
        return inside.width() - area.viewport().width()

    welcome = window.conversations.active.welcome
    await until(welcome.first_mode.isVisible)
    assert overhang(welcome) == 0
    assert overhang(await empty(window)) == 0


async def test_without_a_model_no_mode_is_offered(window: MainWindow) -> None:
    welcome = await empty(window)
    assert not welcome.first_mode.isVisible()


async def test_folders_that_exist_are_offered_and_the_one_of_the_terminal_comes_first(window: MainWindow) -> None:
    welcome = await empty(window)
    assert listed(welcome.folders) == ["here", "shop", "notes"]
    here, shop, _ = welcome.folders.rows
    assert "current folder" in here.button.accessibleName()
    assert (here.forget.isVisible(), shop.forget.isVisible()) == (False, True)


async def test_a_click_starts_the_next_task_there_and_a_second_one_takes_it_back(
    window: MainWindow, folders: dict[str, str]
) -> None:
    view, welcome = window.conversations.active, await empty(window)
    shop = welcome.folders.rows[1]
    QTest.mouseClick(shop.button, Qt.MouseButton.LeftButton)
    assert view.input_panel.task_options.options.workspace == folders["shop"]
    assert window.focusWidget() is view.composer.field
    assert [row.button.accessibleName().endswith("(chosen)") for row in welcome.folders.rows] == [False, True, False]
    QTest.mouseClick(shop.button, Qt.MouseButton.LeftButton)
    assert view.input_panel.task_options.options.workspace is None


async def test_a_forgotten_folder_is_not_offered_again_and_the_focus_stays_in_the_list(
    window: MainWindow, state: WindowStateStore, folders: dict[str, str]
) -> None:
    welcome = await empty(window)
    shop = welcome.folders.rows[1]
    shop.forget.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(shop.forget, Qt.Key.Key_Space)
    assert listed(welcome.folders) == ["here", "notes"]
    assert state.settings.recent_folders == [folders["gone"], folders["notes"]]
    assert welcome.folders.isAncestorOf(window.focusWidget())


async def test_a_folder_that_a_task_was_started_in_is_the_newest(window: MainWindow, folders: dict[str, str]) -> None:
    view, welcome = window.conversations.active, await empty(window)
    view.input_panel.task_options.set_folder(folders["notes"])
    view.input_panel.ask_models("Tidy up", ("a/b", "c/d"))
    assert listed(welcome.folders) == ["here", "notes", "shop"]


async def test_the_whole_line_of_the_current_folder_can_be_clicked(window: MainWindow, folders: dict[str, str]) -> None:
    view, welcome = window.conversations.active, await empty(window)
    here = welcome.folders.rows[0]
    QApplication.processEvents()
    assert here.button.geometry() == here.rect()
    under = here.childAt(here.width() - 20, here.height() // 2)
    QTest.mouseClick(under or here, Qt.MouseButton.LeftButton)
    assert view.input_panel.task_options.options.workspace == folders["here"]


async def test_a_long_path_is_cut_in_its_middle_to_the_room_there_is(window: MainWindow) -> None:
    welcome = await empty(window)
    window.welcome.add(f"/work/{'deep/' * 30}shop")
    button = welcome.folders.rows[1].button
    QApplication.processEvents()
    assert button.text().endswith("/shop") and "…" in button.text()
    assert button.fontMetrics().horizontalAdvance(button.text()) <= button.width() - 13 - 19 - 16


async def test_another_folder_is_chosen_in_a_dialog(window: MainWindow, tmp_path: Path) -> None:
    view, welcome = window.conversations.active, await empty(window)
    press(welcome.folders, "Start in a folder…")
    (dialog,) = view.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(tmp_path))
    assert view.input_panel.task_options.options.workspace == str(tmp_path)


async def test_the_keyboard_reaches_the_first_button_and_the_folders(window: MainWindow) -> None:
    view, welcome = window.conversations.active, await empty(window)
    window.activateWindow()
    await until(window.isActiveWindow)
    view.composer.field.setFocus()
    seen: list[object] = []
    for _ in range(8):
        window.commands.trigger("next_pane")
        seen.append(window.focusWidget())
    assert welcome.tour in seen
    welcome.folders.rows[0].button.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(welcome.folders.rows[0].button, Qt.Key.Key_Return)
    assert view.input_panel.task_options.options.workspace == welcome.folders.rows[0].folder


async def test_a_second_start_offers_its_folder(window: MainWindow, folders: dict[str, str]) -> None:
    welcome = await empty(window)
    window.welcome.set_started_in(folders["notes"])
    await until(lambda: listed(welcome.folders) == ["notes", "shop"])


def test_the_home_folder_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert terminal_folder() == ""
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    assert terminal_folder() == str(tmp_path / "shop")

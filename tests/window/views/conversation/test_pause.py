"""A task is paused and resumed from its status line, by a shortcut and from the palette; then typing goes on."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.window.main import build_window
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.shell.main_window import MainWindow
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until


@dataclass(frozen=True, slots=True)
class Paused:
    """A main window in front of a task whose shell command runs until the file `go` exists."""

    window: MainWindow
    engine: StoreEngine
    go: Path

    @property
    def task(self) -> Task:
        task = self.window.conversations.active.store.task
        assert task is not None
        return task

    @property
    def button(self) -> QPushButton:
        """The button for pausing, which is there."""
        status = self.window.conversations.active.input_panel.status
        (button,) = (
            candidate for candidate in status.findChildren(QPushButton) if candidate.text() in ("Pause", "Resume")
        )
        assert button.isVisible()
        return button

    @property
    def has_composer_focus(self) -> bool:
        return QApplication.focusWidget() is self.window.conversations.active.composer.field


@pytest.fixture
async def at_work(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[Paused]:
    go = tmp_path / "workspace" / "go"
    server = ModelServer([shell("until [ -e go ]; do sleep 0.01; done"), DONE])
    async with store_engine(tmp_path, server) as engine:
        state = WindowStateStore(tmp_path / "window.json")
        window = build_window(qapp, engine.stores, Paths(tmp_path / "data"), state, theme)
        window.show()
        task = await engine.parts.start("Wait for it", approve="all")
        window.conversations.open(task.conversation_id)
        window.activateWindow()
        at_work = Paused(window, engine, go)
        await until(lambda: window.conversations.active.store.task is not None)
        await until(lambda: at_work.task.activity.status == "tool_executing")
        try:
            yield at_work
        finally:
            go.touch()
            await engine.parts.watcher.end(task.id)
            window.close()
            window.deleteLater()


async def test_the_status_line_pauses_and_resumes_a_task(at_work: Paused) -> None:
    at_work.window.conversations.active.transcript.setFocus()
    assert at_work.button.text() == "Pause"
    QTest.mouseClick(at_work.button, Qt.MouseButton.LeftButton)
    await until(lambda: at_work.button.text() == "Resume")
    assert at_work.window.conversations.active.input_panel.status.text.startswith("Pausing after this step")
    assert at_work.has_composer_focus
    QTest.mouseClick(at_work.button, Qt.MouseButton.LeftButton)
    await until(lambda: at_work.button.text() == "Pause")
    QTest.mouseClick(at_work.button, Qt.MouseButton.LeftButton)
    await until(lambda: at_work.button.text() == "Resume")
    at_work.go.touch()
    await until(lambda: at_work.task.activity.status == "paused")
    assert at_work.window.conversations.active.input_panel.status.text.startswith("Paused")
    at_work.window.conversations.active.transcript.setFocus()
    QTest.mouseClick(at_work.button, Qt.MouseButton.LeftButton)
    await until(lambda: at_work.task.outcome.ended_at is not None)
    assert (at_work.task.activity.status, at_work.task.activity.pausing, at_work.has_composer_focus) == (
        "completed",
        False,
        True,
    )


async def test_a_shortcut_and_the_palette_pause_and_resume(at_work: Paused) -> None:
    QTest.keyClick(at_work.window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
    await until(lambda: at_work.task.activity.pausing)
    at_work.window.commands.trigger("palette")
    field = QApplication.focusWidget()
    assert field is not None
    QTest.keyClicks(field, "pause or resume")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: not at_work.task.activity.pausing)
    at_work.go.touch()
    await until(lambda: at_work.task.outcome.ended_at is not None)
    at_work.window.commands.trigger("pause")
    assert at_work.window.conversations.active.notices.text == "No task is running here."


async def test_stop_ends_a_paused_task(at_work: Paused) -> None:
    QTest.mouseClick(at_work.button, Qt.MouseButton.LeftButton)
    await until(lambda: at_work.task.activity.pausing)
    at_work.go.touch()
    await until(lambda: at_work.task.activity.status == "paused")
    at_work.window.commands.trigger("stop")
    await until(lambda: at_work.task.outcome.ended_at is not None)
    assert (at_work.task.outcome.stop_reason, at_work.task.activity.pausing) == ("manual_stop", False)

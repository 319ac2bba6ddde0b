"""Notices take the place of the status line: they move nothing and cover nothing."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPushButton

from errand.client.errors import CallError
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.window.stores.usage import ContextUsageStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.notices import NoticeSlotView
from errand.window.views.composer.status_line import StatusLineView
from errand.window.views.usage.context_bar import ContextBarView
from errand.window.widgets.labels import ElidedLabel
from errand.window.widgets.notice_line import Notice, NoticeDetailsDialog, NoticeLineView
from tests.support.disks import full_disk
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import until as holds
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import ViewFixture, press, until, view_fixture

_LONG = "The model's server refused the request. " * 12


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[ViewFixture]:
    async with view_fixture(qapp, theme, tmp_path, [Reply(text="Done.")]) as fixture:
        await until(lambda: fixture.view.store.is_loaded)
        yield fixture


def places(fixture: ViewFixture) -> tuple[QRect, QRect, QRect]:
    QApplication.processEvents()
    view = fixture.view
    panel = view.input_panel
    return view.transcript.geometry(), panel.geometry(), panel.composer.geometry()


async def test_a_notice_moves_nothing_and_covers_neither_the_text_nor_the_find_bar(fixture: ViewFixture) -> None:
    view, notices = fixture.view, fixture.view.notices
    view.search.open()
    before = places(fixture)
    for text in ("The model was not found.", _LONG):
        notices.show_message(text, "failed")
        assert places(fixture) == before
        assert not view.input_panel.status.isVisible() and notices.text == text
    notices.put("tour", Notice("That was a task of the tour.", "done", ("Set up", "Start in a folder…")))
    notices.clear_message()
    assert places(fixture) == before
    notices.put("tour", None)
    assert places(fixture) == before
    assert view.input_panel.status.isVisible()


async def test_the_most_urgent_is_shown_and_the_others_when_it_is_over(fixture: ViewFixture) -> None:
    notices = fixture.view.notices
    notices.put("interrupted", Notice("The engine ended.", "waiting", ("Resume",)))
    notices.show_message("It failed.", "failed")
    notices.put("connection", Notice("Connecting to the engine…"))
    assert notices.text == "Connecting to the engine…"
    notices.put("connection", None)
    assert notices.text == "It failed."
    press(notices, "Dismiss")
    assert notices.text == "The engine ended."
    asked: list[str] = []
    fixture.view.task_notices.resume_requested.connect(asked.append)
    press(notices, "Resume")
    assert asked == [fixture.task.id]


async def test_actions_without_room_move_into_the_details_and_the_text_stays_readable(
    qapp: QApplication, theme: Theme
) -> None:
    line = NoticeLineView(theme)
    line.show_notice(Notice("This task was part of the tour.", "done", ("Set up", "Start in a folder…"), True))
    line.resize(900, 32)
    line.show()
    asked: list[int] = []
    line.action_clicked.connect(asked.append)
    button_texts = [button.text() for button in line.findChildren(QPushButton) if button.isVisible()]
    assert button_texts == ["Set up", "Start in a folder…"]
    line.resize(430, 32)
    QApplication.processEvents()
    button_texts = [button.text() for button in line.findChildren(QPushButton) if button.isVisible()]
    assert button_texts == ["Details", "Set up"]
    text = line.findChild(ElidedLabel)
    assert text is not None and text.text() == text.full_text
    press(line, "Details")
    (details,) = line.findChildren(NoticeDetailsDialog)
    press(details, "Start in a folder…")
    assert asked == [1]
    line.close()


async def test_the_reminder_of_esc_is_seen_over_a_notice(fixture: ViewFixture) -> None:
    notices, status = fixture.view.notices, fixture.view.input_panel.status
    notices.show_message("It failed.", "failed")
    notices.remind("Press Esc again to stop")
    assert status.isVisible() and "Press Esc again to stop" in status.text
    notices.remind("")
    assert not status.isVisible() and notices.text == "It failed."


async def test_a_long_text_has_its_details_and_a_short_one_has_none(fixture: ViewFixture) -> None:
    notices = fixture.view.notices
    notices.show_message("Short.", "failed")
    QApplication.processEvents()
    assert "Details" not in shown_buttons(notices)
    notices.show_message(_LONG, "failed")
    QApplication.processEvents()
    press(notices, "Details")
    (dialog,) = notices.findChildren(NoticeDetailsDialog)
    assert _LONG in [label.text() for label in dialog.findChildren(QLabel)]
    press(dialog, "Copy")
    assert QApplication.clipboard().text() == _LONG
    dialog.close()


async def test_a_message_that_failed_is_forgotten_with_the_next_one(fixture: ViewFixture) -> None:
    notices = fixture.view.notices
    notices.show_message("It failed.", "failed")
    fixture.view.input_panel.sent.emit()
    assert notices.shown is None


async def test_a_full_disk_is_shown_with_the_tasks_that_wait_for_space(tmp_path: Path, theme: Theme) -> None:
    gate = asyncio.Event()
    async with store_engine(tmp_path, ModelServer(replies=[Reply(text="Hello.", gate=gate)])) as engine:
        notices = alone(engine, theme)
        task = await engine.parts.start()
        await engine.parts.model.request(0)
        assert notices.shown is None
        with full_disk(engine.parts.services.paths.database):
            gate.set()
            await holds(lambda: notices.shown == "health")
            assert "The disk is full" in notices.text
            assert "1 task waits." in notices.text
            paused_task = engine.stores.tasks.get(task.id)
            assert paused_task is not None
            assert (paused_task.activity.status, "Make at least 100 MB free" in paused_task.activity.detail) == (
                "paused",
                True,
            )
            with pytest.raises(CallError, match="Not saved: The disk is full"):
                await engine.stores.session.call(TASK_START, TaskStartParams(prompt="another"))
        await holds(lambda: notices.shown is None)
        await engine.parts.watcher.end(task.id)
        notices.deleteLater()


def alone(engine: StoreEngine, theme: Theme) -> NoticeSlotView:
    session = engine.stores.session
    return NoticeSlotView(StatusLineView(theme, ContextBarView(ContextUsageStore(session), theme)), session, theme)


def shown_buttons(notices: NoticeSlotView) -> list[str]:
    return [button.accessibleName() for button in notices.findChildren(QAbstractButton) if button.isVisible()]

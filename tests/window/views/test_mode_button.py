"""What a task was taken for is said under the transcript, and turned round with a click."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.protocol.tasks import Task
from app.window.stores.context import ContextStore
from app.window.theme.theme import Theme
from app.window.views.context_bar import ContextBar
from app.window.views.mode_button import ModeButton
from app.window.views.status_line import StatusLine
from tests.support import records
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import until
from tests.support.store_engine import store_engine
from tests.support.task_replies import DONE, shell

RUNNING = records.task(step_count=1)
ENDED = msgspec.structs.replace(RUNNING, status="completed", stop_reason="completed", ended_at=records.NOW)


def click(button: ModeButton) -> None:
    (inner,) = button.findChildren(QPushButton)
    inner.click()


def offer(button: ModeButton) -> str:
    (inner,) = button.findChildren(QPushButton)
    return inner.text() if not button.isHidden() else ""


@pytest.mark.parametrize(
    ("task", "offered"),
    [
        (RUNNING, ""),
        (msgspec.structs.replace(RUNNING, decided="task"), "Make it a chat"),
        (msgspec.structs.replace(RUNNING, decided="task", stopping=True), ""),
        (msgspec.structs.replace(RUNNING, decided="chat"), ""),
        (msgspec.structs.replace(RUNNING, mode="chat", decided="chat"), "Make it a task"),
        (msgspec.structs.replace(ENDED, decided="chat"), "Go on as a task"),
        (msgspec.structs.replace(ENDED, mode="chat"), "Go on as a task"),
        (msgspec.structs.replace(ENDED, decided="task"), ""),
        (msgspec.structs.replace(ENDED, decided="chat", stop_reason="manual_stop"), ""),
    ],
)
def test_the_other_way_is_offered_where_there_is_one(task: Task, offered: str, qtbot: QtBot) -> None:
    button = ModeButton()
    qtbot.addWidget(button)
    button.show_task(task)
    assert offer(button) == offered
    button.show_task(None)
    assert offer(button) == ""


async def test_a_chat_goes_on_as_a_task_and_a_task_is_made_a_chat(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(text="You could."), shell("true"), DONE, shell("true"), Reply(gate=gate)])
    async with store_engine(tmp_path, server) as engine:
        chat = await engine.parts.start("could one?")
        store, _ = await engine.open(chat.conversation_id)
        line = StatusLine(theme, ContextBar(ContextStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        line.mode.asked.connect(store.requests.take_for)
        store.taskUpdate.connect(lambda: line.show_task(store.task))
        line.show_task(store.task)
        await until(lambda: offer(line.mode) == "Go on as a task")
        assert "taken as a chat" in line.text
        click(line.mode)
        await until(lambda: store.task is not None and store.task.summary == "all done")
        started = await engine.parts.start("count", conversation_id=chat.conversation_id)
        await until(lambda: offer(line.mode) == "Make it a chat")
        click(line.mode)
        taken = await engine.parts.watcher.task(started.id, lambda task: task.mode == "chat")
        assert taken.decided == "chat"
        gate.set()
        await engine.parts.watcher.end(started.id)

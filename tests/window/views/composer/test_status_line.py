"""The line under the transcript: one message, and the buttons that fit it."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from errand.protocol.context import ContextExplainResult, ContextShare
from errand.protocol.tasks.groups import CallProgress
from errand.protocol.tasks.task import Task, replace_fields
from errand.protocol.usage import Usage
from errand.window.stores.tasks import TaskStore
from errand.window.stores.usage import ContextUsageStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.status_line import StatusLineView
from errand.window.views.usage.context_bar import ContextBarView
from errand.window.views.usage.context_popover import ContextPopoverView
from errand.window.views.usage.mode_switch import ModeSwitchView
from errand.window.widgets.labels import ElidedLabel
from tests.support import records
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import until
from tests.support.store_engine import store_engine

RUNNING = records.task(step_count=1)
ENDED = replace_fields(RUNNING, status="completed", stop_reason="completed", ended_at=records.NOW)


def buttons(line: StatusLineView) -> list[str]:
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    return [button.text() for button in line.findChildren(QPushButton, options=direct) if not button.isHidden()]


async def test_the_line_says_one_thing_and_its_popover_the_rest(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        bar = ContextBarView(ContextUsageStore(engine.stores.session), theme)
        line, popover = StatusLineView(theme, bar), ContextPopoverView(theme, bar)
        qtbot.addWidget(line)
        used = Usage(input_tokens=1_200, output_tokens=80, cost_usd=0.031)
        near = replace_fields(
            records.task(step_count=41), usage=used, worked_s=65.0, decided="task", near=("turns", "money")
        )
        line.show_task(near, writing="Answering")
        assert line.text == "Answering · 1 min 5 s · $0.0310"
        assert buttons(line) == ["Pause"]
        popover.show_task(near)
        texts = [label.text() for label in popover.findChildren(QLabel) if not label.isHidden()]
        assert {"41 turns · 1,280 tokens · taken as a task", "Close to the limit: turns, money"} <= set(texts)
        assert [button.text() for button in popover.findChildren(QPushButton)][:1] == ["Treat as chat"]
        ended = replace_fields(near, status="completed", stop_reason="completed", ended_at=records.NOW)
        popover.show_task(ended)
        assert not any("limit" in label.text() for label in popover.findChildren(QLabel) if not label.isHidden())
        line.show_task(None)
        assert line.text == ""


def test_the_popover_lists_tools_of_servers_and_those_that_are_found_when_needed(theme: Theme, qtbot: QtBot) -> None:
    bar = QWidget()
    qtbot.addWidget(bar)
    popover = ContextPopoverView(theme, bar)
    shares = (
        ContextShare(part="tools", tokens=2_000, items=13, findable_items=27, findable_tokens=9_100),
        ContextShare(part="services", tokens=600, items=2),
    )
    popover.show_parts(
        ContextExplainResult(task_id="t", turn=1, model="a/b", used_tokens=3_000, window_tokens=None, shares=shares)
    )
    texts = {label.text() for label in popover.findChildren(QLabel)}
    assert {"27 more tools, found when needed: 9,100 tokens not sent", "Tools of MCP servers", "600"} <= texts


async def test_a_task_that_works_is_paused_and_a_paused_one_resumed(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLineView(theme, ContextBarView(ContextUsageStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        running = records.task()

        def offered(**changes: object) -> tuple[str, str]:
            task = replace_fields(running, **changes)
            line.show_task(task)
            return line.text.partition(" · ")[0], " ".join(buttons(line))

        assert offered(status="thinking") == ("Working", "Pause")
        assert offered(status="tool_executing", current_tool="shell", pausing=True) == (
            "Pausing after this step",
            "Resume",
        )
        assert offered(status="paused", pausing=True, detail="paused") == ("Paused", "Resume")
        assert offered(status="waiting_user") == ("Waiting for you", "")
        assert offered(status="waiting_user", pausing=True) == ("Waiting for you", "Resume")
        assert offered(stopping=True) == ("Stopping…", "")
        assert offered(status="paused", pausing=True, stopping=True)[1] == ""
        assert offered(status="paused", detail="the disk is full")[1] == "Pause", "nobody paused it"
        assert offered(status="interrupted")[1] == "", "the banner resumes it"
        assert offered(status="completed", stop_reason="completed", ended_at=records.NOW)[1] == ""


async def test_the_time_of_a_task_that_is_opened_in_the_midst_of_a_call_has_that_of_the_call(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLineView(theme, ContextBarView(ContextUsageStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        tasks = TaskStore()
        call = CallProgress(call_id="call_1", started_at=datetime.now(UTC) - timedelta(minutes=10))
        reported = {"status": "tool_executing", "detail": "running a command", "worked_s": 30.0}
        running = replace_fields(records.task(), calls=(call,), **reported)
        tasks.put(running)
        line.show_task(running, told_at=tasks.reported_at(running.id))
        assert line.text.startswith("Running a command · 10 min 3")
        waiting = replace_fields(running, status="waiting_user", detail="")
        tasks.put(waiting)
        line.show_task(waiting, told_at=tasks.reported_at(running.id))
        assert line.text == "Waiting for you · 30 s", "the time does not count while it waits for a person"


async def test_an_elided_activity_has_its_full_text_in_the_tool_tip(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLineView(theme, ContextBarView(ContextUsageStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        used = Usage(input_tokens=123_456, output_tokens=7_890)
        line.show_task(replace_fields(records.task(), status="paused", usage=used, worked_s=3725))
        line.resize(90, line.sizeHint().height())
        line.show()
        label_texts = [label.text() for label in line.findChildren(QLabel) if label.isVisible()]
        assert label_texts[0] == line.text.split(" · ")[0]
        figures = next(label for label in line.findChildren(ElidedLabel) if label.full_text.startswith("· 1 h"))
        assert (figures.text(), figures.toolTip()) == ("", figures.full_text)


async def test_a_rate_limit_wait_counts_down_while_visible_and_can_be_ended(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLineView(theme, ContextBarView(ContextUsageStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        line.resize(900, line.sizeHint().height())
        held = replace_fields(
            records.task(),
            status="paused",
            detail="usage limit until 14:05",
            retry_at=datetime.now(UTC) + timedelta(seconds=50),
        )
        line.show_task(held)
        line.show()
        before = line.text
        assert before.startswith("Usage limit until 14:05 · resumes in ")
        qtbot.waitUntil(lambda: line.text != before)
        button = next(button for button in line.findChildren(QPushButton) if button.text() == "Try now")
        with qtbot.waitSignal(line.try_now_requested):
            button.click()
        line.show_task(replace_fields(held, retry_at=None, status="thinking", detail=""))
        assert not button.isVisible()
        assert "resumes" not in line.text


async def test_no_clock_runs_while_a_task_waits_for_a_person(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLineView(theme, ContextBarView(ContextUsageStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        line.show()
        line.show_task(records.task())
        assert _runs_a_clock(line)
        for status in ("waiting_user", "paused"):
            line.show_task(replace_fields(records.task(), status=status))
            assert not _runs_a_clock(line)


def _runs_a_clock(line: StatusLineView) -> bool:
    return any(timer.isActive() and not timer.isSingleShot() for timer in line.findChildren(QTimer))


def click(button: ModeSwitchView) -> None:
    (inner,) = button.findChildren(QPushButton)
    inner.click()


def offer(button: ModeSwitchView) -> str:
    (inner,) = button.findChildren(QPushButton)
    return inner.text() if not button.isHidden() else ""


@pytest.mark.parametrize(
    ("task", "offered"),
    [
        (RUNNING, ""),
        (replace_fields(RUNNING, decided="task"), "Treat as chat"),
        (replace_fields(RUNNING, decided="task", stopping=True), ""),
        (replace_fields(RUNNING, decided="chat"), ""),
        (replace_fields(RUNNING, mode="chat", decided="chat"), "Treat as task"),
        (replace_fields(ENDED, decided="chat"), "Keep going until done"),
        (replace_fields(ENDED, mode="chat"), "Keep going until done"),
        (replace_fields(ENDED, decided="task"), ""),
        (replace_fields(ENDED, decided="chat", stop_reason="manual_stop"), ""),
    ],
)
def test_the_other_mode_is_offered_where_there_is_one(task: Task, offered: str, qtbot: QtBot) -> None:
    for of_ended in (False, True):
        button = ModeSwitchView(of_ended=of_ended)
        qtbot.addWidget(button)
        button.show_task(task)
        assert offer(button) == (offered if (task.outcome.ended_at is not None) == of_ended else "")
        button.show_task(None)
        assert offer(button) == ""


async def test_a_chat_becomes_a_task_and_a_task_a_chat(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(text="You could."), shell("true"), DONE, shell("true"), Reply(gate=gate)])
    async with store_engine(tmp_path, server) as engine:
        chat = await engine.parts.start("could one?")
        store, _ = await engine.open(chat.conversation_id)
        ended, at_work = ModeSwitchView(of_ended=True), ModeSwitchView(of_ended=False)
        for switch in (ended, at_work):
            qtbot.addWidget(switch)
            switch.mode_requested.connect(store.commands.set_mode)
            switch.show_task(store.task)
        store.taskUpdate.connect(lambda: ended.show_task(store.task))
        store.taskUpdate.connect(lambda: at_work.show_task(store.task))
        await until(lambda: offer(ended) == "Keep going until done")
        click(ended)
        await until(lambda: store.task is not None and store.task.outcome.summary == "all done")
        started = await engine.parts.start("count", conversation_id=chat.conversation_id)
        await until(lambda: offer(at_work) == "Treat as chat")
        click(at_work)
        taken = await engine.parts.watcher.task(started.id, lambda task: task.options.mode == "chat")
        assert taken.options.decided == "chat"
        gate.set()
        await engine.parts.watcher.end(started.id)

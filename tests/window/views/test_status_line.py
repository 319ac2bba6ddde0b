"""The line under the transcript says which limits are near."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.protocol.usage import Usage
from app.window.stores.context import ContextStore
from app.window.theme.theme import Theme
from app.window.views.context_bar import ContextBar
from app.window.views.status_line import StatusLine
from tests.support import records
from tests.support.model_server import ModelServer
from tests.support.store_engine import store_engine


async def test_limits_that_are_near_are_named_until_the_task_ends(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLine(theme, ContextBar(ContextStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        task = records.task(step_count=41)
        line.show_task(task)
        assert "limit" not in line.text
        line.show_task(msgspec.structs.replace(task, near=("turns", "money")))
        assert "near its limit: turns, money" in line.text
        line.show_task(msgspec.structs.replace(task, near=("turns",), status="completed", ended_at=records.NOW))
        assert "limit" not in line.text
        line.show_task(None)
        assert line.text == ""


async def test_what_the_agent_does_is_read_whole_where_there_is_little_room(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLine(theme, ContextBar(ContextStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        used = Usage(input_tokens=123_456, output_tokens=7_890)
        line.show_task(msgspec.structs.replace(records.task(step_count=41), status="paused", usage=used))
        line.resize(220, line.sizeHint().height())
        line.show()
        shown = [label.text() for label in line.findChildren(QLabel) if label.isVisible()]
        assert shown[0] == line.text.split(" · ")[0]
        assert shown[1].endswith("…")


async def test_a_wait_for_a_limit_counts_down_while_it_is_seen_and_can_be_ended(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLine(theme, ContextBar(ContextStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        line.resize(900, line.sizeHint().height())
        held = msgspec.structs.replace(
            records.task(),
            status="paused",
            activity="usage limit until 14:05",
            retry_at=datetime.now(UTC) + timedelta(seconds=50),
        )
        line.show_task(held)
        line.show()
        before = line.text
        assert before.startswith("Usage limit until 14:05 · goes on in ")
        qtbot.waitUntil(lambda: line.text != before, timeout=2500)
        button = line.findChild(QPushButton)
        assert isinstance(button, QPushButton)
        with qtbot.waitSignal(line.try_now_asked):
            button.click()
        line.show_task(msgspec.structs.replace(held, retry_at=None, status="thinking", activity=""))
        assert not button.isVisible()
        assert "goes on" not in line.text


async def test_no_clock_runs_while_a_task_waits_for_a_person(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        line = StatusLine(theme, ContextBar(ContextStore(engine.stores.session), theme))
        qtbot.addWidget(line)
        line.show()
        line.show_task(records.task())
        assert _runs_a_clock(line)
        for status in ("waiting_user", "paused"):
            line.show_task(msgspec.structs.replace(records.task(), status=status))
            assert not _runs_a_clock(line)


def _runs_a_clock(line: StatusLine) -> bool:
    return any(timer.isActive() and not timer.isSingleShot() for timer in line.findChildren(QTimer))

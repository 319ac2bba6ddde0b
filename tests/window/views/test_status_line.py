"""The line under the transcript says which limits are near."""

from pathlib import Path

import msgspec
from PySide6.QtWidgets import QLabel
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

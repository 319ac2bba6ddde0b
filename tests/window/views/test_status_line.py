"""The line under the transcript says which limits are near."""

from pathlib import Path

import msgspec
from pytestqt.qtbot import QtBot

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

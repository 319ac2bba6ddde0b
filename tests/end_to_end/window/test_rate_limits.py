"""Behaviour 130: a task shows that it waits for a rate limit, and a click retries now."""

import pytest
from PySide6.QtWidgets import QApplication

from errand.client.conversation.rows import TaskEndRow
from errand.window.widgets.status_dot import dot_state
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import ModelServer, Reply
from tests.support.open_window import open_window

HOUR = Reply(status=429, error="You have used all of your plan.", headers={"Retry-After": "3600"})


async def test_a_task_waiting_for_a_rate_limit_shows_when_it_continues_and_can_retry_now(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[HOUR, Reply(text="Here it is.")]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("write a report")
            line = person.front.input_panel.status
            await person.until(lambda: "resumes in " in line.text)
            assert line.text.startswith("Usage limit until ")
            (task,) = person.stores.tasks.running()
            assert dot_state(task) == "held"
            await person.press("Try now", line)
            await person.until(lambda: any(isinstance(row, TaskEndRow) for row in person.rows))
            assert line.text.startswith("Answered")

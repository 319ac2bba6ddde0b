"""Behaviour 180: the selected agent is selected again after a restart."""

import pytest
from PySide6.QtWidgets import QApplication

from errand.client.conversation.rows import TaskEndRow
from errand.window.stores.conversation.agents import NewAgent
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window


def looked_at(person: OpenWindow) -> str:
    agent = person.front.store.agents.shown
    return agent.name if agent is not None else ""


async def test_the_selected_agent_is_restored_after_a_restart_unless_it_was_removed(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text=f"Reply {number}.") for number in range(2)]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as first:
            await first.begin("hello")
            await first.until(lambda: any(isinstance(row, TaskEndRow) for row in first.rows))
            first.front.store.agents.add(first.window.tabs.active_id, NewAgent("coder", "Ada"))
            await first.until(lambda: looked_at(first) == "Ada")
        async with open_window(qapp, own_errand.home) as second:
            await second.until(lambda: second.front.store.is_loaded)
            assert looked_at(second) == "Ada"
            second.front.store.agents.remove(second.front.store.agents.chosen_id or "")
            await second.until(lambda: looked_at(second) == "Assistant")
        async with open_window(qapp, own_errand.home) as third:
            await third.until(lambda: third.front.store.is_loaded)
            third.type("and you?")
            third.enter()
            await third.until(lambda: sum(isinstance(row, TaskEndRow) for row in third.rows) == 2)
            assert third.front.notices.shown is None

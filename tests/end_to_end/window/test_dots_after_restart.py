"""Marks of waiting, interrupted and unread conversations after a restart of window and engine."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QApplication

from errand.window.stores.task_options import TaskOptions
from tests.support.command_line import Errand
from tests.support.model_replies import shell, speak_to
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.open_window import OpenWindow, open_window


def marks(person: OpenWindow) -> dict[str, tuple[str, int]]:
    """State and unread count of each tab, by its title."""
    states = (page.tab_state for page in person.window.tabs.pages.values())
    return {state.title: (state.state, state.unread) for state in states}


def are_right(dots: dict[str, tuple[str, int]], waits_as: str) -> bool:
    return (dots.get("wait to approve"), dots.get("count")) == ((waits_as, 0), ("ended", 1))


async def test_dots_are_right_after_a_restart_of_the_window_and_of_the_engine(
    qapp: QApplication, own_errand: Errand, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks_away = asyncio.Event()  # before that a reply would be read as it comes

    def answer(request: ReceivedRequest) -> Reply:
        reply = shell("touch made") if "approve" in str(request.messages) else Reply(text="Done.")
        return msgspec.structs.replace(reply, gate=looks_away)

    async with ModelServer(answer=answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as first:
            for prompt in ("wait to approve", "count"):
                first.window.commands.trigger("new_task")
                first.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
                await first.begin(prompt)
                await first.until(lambda prompt=prompt: prompt in marks(first))
            first.window.commands.trigger("new_task")
            looks_away.set()
            await first.until(lambda: marks(first)["wait to approve"] == ("waiting", 1))
            await first.until(lambda: marks(first)["count"] == ("ended", 1))
        async with open_window(qapp, own_errand.home) as second:
            await second.until(lambda: are_right(marks(second), "waiting"))  # the first tab is in front, and read
            session, states = second.stores.session, list[str]()
            session.state_changed.connect(lambda: states.append(session.state))
            own_errand.kill_engine()
            await second.until(lambda: states[:1] == ["lost"] and states[-1:] == ["ready"])
            await second.until(lambda: are_right(marks(second), "paused"))

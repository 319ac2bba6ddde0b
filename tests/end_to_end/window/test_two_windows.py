"""Behaviour 125: two windows on one engine show the same state, whichever of them acts."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from errand.client.conversation.rows import AskRow, BranchSwitchRow, ReplyRow, TaskEndRow
from errand.window.stores.task_options import TaskOptions
from tests.support.command_line import Errand
from tests.support.model_replies import shell, speak_to
from tests.support.model_server import ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window


def words(person: OpenWindow) -> list[str]:
    return [row.markdown for row in person.rows if isinstance(row, ReplyRow)]


async def test_changes_in_one_window_appear_in_the_other(
    qapp: QApplication, own_errand: Errand, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [shell("touch made"), Reply(text="It is made."), Reply(text="It was made.")]
    async with ModelServer(replies=replies) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as first, open_window(qapp, own_errand.home) as other:
            first.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
            for person in (first, other):
                await person.until(lambda person=person: person.stores.session.state == "ready")
            first.type("make it")
            first.enter()
            await other.until(lambda: bool(other.stores.asks.waiting()))
            other.window.commands.trigger("next_ask")
            await other.until(lambda: any(isinstance(row, AskRow) for row in other.rows))
            await other.press("Allow once", other.front)
            await first.until(lambda: bool(first.rows) and isinstance(first.rows[-1], TaskEndRow))
            await first.until(lambda: first.rows == other.rows)
            assert (first.window.tabs.bar.tabText(0), first.front.composer.mode) == ("make it", "send")
            first.stores.conversations.rename(first.window.tabs.active_id, "Made")
            await other.until(lambda: other.window.tabs.bar.tabText(0) == "Made")
            await other.press("Retry", other.front)
            await first.until(lambda: words(first)[-1:] == ["It was made."] and isinstance(first.rows[-1], TaskEndRow))
            await first.until(
                lambda: first.rows == other.rows and any(isinstance(row, BranchSwitchRow) for row in first.rows)
            )
            await first.press("Previous version", first.front)
            await other.until(lambda: words(other)[-1:] == ["It is made."])
            await first.until(lambda: first.rows == other.rows)

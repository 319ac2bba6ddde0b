"""The list of tasks, in columns."""

from datetime import UTC, datetime

import pytest

from errand.cli.commands.conversations.listing import format_conversation
from errand.cli.commands.tasks import status_text, task_lines
from errand.cli.terminal.style import PLAIN
from errand.cli.terminal.text import columns
from errand.protocol.conversations import Conversation
from errand.protocol.tasks.task import replace_fields
from tests.support.protocol_events import task


def test_tasks_stand_in_columns_and_lose_their_usage_where_it_has_no_room() -> None:
    tasks = [
        replace_fields(task("completed", stop_reason="completed"), prompt="tidy up the whole module of strings"),
        replace_fields(task("waiting_user"), prompt="short"),
    ]
    wide, narrow = task_lines(tasks, 120, PLAIN), task_lines(tasks, 64, PLAIN)
    assert len({line.index("tokens") for line in wide}) == 1
    assert wide[0].index("tidy up") == wide[1].index("short") == narrow[1].index("short")
    assert "waiting for you  " in narrow[1] and not any("tokens" in line for line in narrow)


def test_the_state_of_a_task_is_said_in_words_for_people() -> None:
    tasks = [task("tool_executing"), task("cancelled", stop_reason="manual_stop"), task("error", stop_reason="error")]
    assert [status_text(listed) for listed in tasks] == ["running", "stopped", "failed"]


@pytest.mark.parametrize("width", [38, 40, 60])
def test_lines_of_tasks_and_conversations_fit_a_narrow_screen(width: int) -> None:
    waiting = replace_fields(task("waiting_user"), prompt="tidy up 漢字 and the whole module of strings")
    at = datetime(2026, 3, 1, tzinfo=UTC)
    title, folder = "tidy up 漢字 and the whole module", "/a/long/way/down"
    listed = Conversation(id="conv_1", title=title, created_at=at, updated_at=at, workspace=folder, pinned=True)
    (line,), other = task_lines([waiting], width, PLAIN), format_conversation(listed, waiting, width, PLAIN)
    assert max(columns(line), columns(other)) <= width
    assert "waiting for you" in line and "tidy" in line
    assert "waiting for you" in other and "tidy" in other


def test_the_folder_of_a_conversation_without_one_of_the_person_is_not_listed() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    listed = Conversation(id="conv_1", title="x", created_at=at, updated_at=at, workspace="/data/workspaces/conv_1")
    assert "workspaces" not in format_conversation(listed, None, 100, PLAIN)

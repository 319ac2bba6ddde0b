"""The row of a call that gave work to a sub-agent: title, state and counts, a stop of its own, its branch."""

from typing import Literal

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication

from errand.client.conversation.rows import ToolCallRow
from errand.engine.tools.call_display import display_of
from errand.protocol.blocks import ToolCallBlock, ToolResultBlock
from errand.protocol.tasks.task import Task, replace_fields
from errand.window.rows.code_view import CodeView
from errand.window.rows.tools.tool_call import ToolCallView
from errand.window.theme.theme import Theme
from tests.support.protocol_events import task
from tests.support.row_actions import KeptActions
from tests.support.rows import node

_CALL = ToolCallBlock(
    call_id="call_1",
    tool="task",
    arguments={"description": "Read the parser", "prompt": "Read it."},
    display=display_of("task", {"description": "Read the parser"}),
)


def _row(sub_agent: Task, result: ToolResultBlock | None = None) -> ToolCallRow:
    below = replace_fields(sub_agent, parent_id="task_0", title="Read the parser", agent_id="agent_2")
    return ToolCallRow("key", node("n"), _CALL, result, "", sub_agent=below)


def _shown(view: ToolCallView) -> list[str]:
    return [button.accessibleName() for button in view.findChildren(QAbstractButton) if not button.isHidden()]


def test_running_sub_agent_has_its_state_a_stop_and_its_branch(qapp: QApplication, theme: Theme) -> None:
    actions = KeptActions()
    view = ToolCallView(theme, actions)
    view.set_row(_row(task()))
    line, stop, open_ = _shown(view)
    assert line == "Read the parser · thinking · 3 steps · $0.0012"
    assert (stop, open_) == (
        "Stop sub-agent “Read the parser”",
        "Open branch of sub-agent “Read the parser”",
    )
    for button in view.findChildren(QAbstractButton)[1:]:
        button.click()
    assert (actions.stopped_tasks, actions.opened_agents) == (["task_1"], ["agent_2"])
    view.close()


@pytest.mark.parametrize(("reason", "state"), [("completed", "done"), ("manual_stop", "stopped")])
def test_ended_sub_agent_has_no_stop(
    qapp: QApplication, theme: Theme, reason: Literal["completed", "manual_stop"], state: str
) -> None:
    view = ToolCallView(theme, KeptActions())
    status = "completed" if reason == "completed" else "cancelled"
    view.set_row(_row(task(status, stop_reason=reason)))
    assert _shown(view)[0].split(" · ")[1] == state
    assert len(_shown(view)) == 2
    view.close()


def test_failed_sub_agent_says_why_in_its_line(qapp: QApplication, theme: Theme) -> None:
    view = ToolCallView(theme, KeptActions())
    view.set_row(_row(task("error", stop_reason="error", error="The model is gone.")))
    assert _shown(view)[0].startswith("Read the parser · failed · The model is gone. · 3 steps")
    view.close()


def test_report_of_a_sub_agent_is_shown_before_the_others_are_done(qapp: QApplication, theme: Theme) -> None:
    view = ToolCallView(theme, KeptActions())
    view.set_open(True)
    view.set_row(_row(task("completed", stop_reason="completed", summary="It reads well.")))
    assert "It reads well." in [part.toPlainText() for part in view.findChildren(CodeView) if not part.isHidden()]
    view.close()


@pytest.mark.parametrize(
    ("tool", "activity", "phrase"),
    [
        ("shell", "running a command", "running a command"),
        ("echo__echo", "", "using echo__echo"),
        (None, "", "using a tool"),
    ],
)
def test_what_a_sub_agent_does_is_said_in_words(
    qapp: QApplication, theme: Theme, tool: str | None, activity: str, phrase: str
) -> None:
    view = ToolCallView(theme, KeptActions())
    view.set_row(_row(replace_fields(task("tool_executing"), current_tool=tool, detail=activity)))
    assert _shown(view)[0].split(" · ")[1] == phrase
    view.close()


def test_result_of_a_stopped_sub_agent_leaves_its_line_as_it_was(qapp: QApplication, theme: Theme) -> None:
    view = ToolCallView(theme, KeptActions())
    stopped = task("cancelled", stop_reason="manual_stop")
    view.set_row(_row(stopped))
    line = _shown(view)[0]
    view.set_row(_row(stopped, ToolResultBlock(call_id="call_1", tool="task", text="It was stopped.", is_error=True)))
    assert _shown(view)[0] == line == "Read the parser · stopped · 3 steps · $0.0012"
    view.close()

"""The turn that a task was in when its engine ended: its reply and what is known of its calls, read from the record.

How it is gone on with is said in `steps.py`: the reply is given once more without a model, and what is known of a
call stands for running it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.engine.agent.context import result_of
from app.engine.agent.control import TaskComplete
from app.engine.agent.reach import summary_of
from app.engine.messages import AssistantMessage, ModelMessage, Text
from app.engine.storage.executions import Execution, Finished, Started
from app.engine.tools.base import ToolResult
from app.protocol.blocks import ToolResultBlock
from app.protocol.conversations import Node


@dataclass(frozen=True, slots=True)
class Known:
    """A call that has its result. `execution_id` is empty for one that had no record of its own."""

    result: ToolResult
    execution_id: str = ""


Past: TypeAlias = Known | Started


class OpenTurn:
    """`history` is what the model had read before. `stored` counts the messages of the turn that have their nodes."""

    def __init__(
        self, reply: AssistantMessage, history: tuple[ModelMessage, ...], past: Mapping[str, Past], stored: int
    ) -> None:
        self.reply = reply
        self.history = history
        self.stored = stored
        self._past: Mapping[str, Past] = past
        self._is_told = False

    def take_reply(self) -> AssistantMessage | None:
        """The reply, once. What is known of its calls is past when the next one is asked for."""
        if self._is_told:
            self._past = {}
            return None
        self._is_told = True
        return self.reply

    def past(self, call_id: str) -> Past | None:
        """The result of a call, or that it was started and its outcome is not known; None if it was not begun."""
        return self._past.get(call_id)


def last_reply(path: Sequence[Node], task_id: str) -> int | None:
    """Where on the path the reply stands that the task was working on: nothing was said or summarised since."""
    for index in range(len(path) - 1, -1, -1):
        node = path[index]
        if node.role == "user" or summary_of(node) is not None:
            return None
        if node.role == "assistant":
            return index if node.status == "complete" and node.task_id == task_id else None
    return None


def past_of(results: Sequence[Node], executions: Sequence[Execution], turn: int) -> dict[str, Past]:
    """What is known of the calls of a turn, from the nodes of their results and from the record of what ran."""
    past: dict[str, Past] = {}
    for execution in executions:
        started, finished = execution.started, execution.finished
        if started.turn == turn:
            past[started.call_id] = _of_record(finished) if finished is not None else started
    for node in results:
        for block in node.blocks:
            # The call that ends a task is made again: it touches nothing, and the end hangs on it.
            if isinstance(block, ToolResultBlock) and (block.tool != TaskComplete.name or block.is_error):
                past[block.call_id] = Known(result_of(block), block.execution_id)
    return past


def _of_record(finished: Finished) -> Known:
    result = ToolResult((Text(finished.text),), finished.details, finished.summary, finished.is_error)
    return Known(result, finished.execution_id)

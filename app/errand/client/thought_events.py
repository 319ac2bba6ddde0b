"""Translates the engine's events of a task into five: thought, call, output, error, response."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from errand.client.texts.tasks import is_unfinished, unfinished_text
from errand.protocol import events
from errand.protocol.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.groups import TaskStopReason
from errand.protocol.tasks.task import Task

_UNFINISHED: dict[TaskStopReason, str] = {
    "iteration_limit": "turns",
    "time_limit": "time",
    "budget_limit": "money",
    "token_limit": "tokens",
    "day_limit": "this day",
}


class Thought(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """Reasoning of the model, or its text before a tool call."""

    text: str


class ToolCall(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """`args` are JSON, or the model's raw text if that is invalid."""

    name: str
    args: str


class ToolOutput(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """The result or error of a tool, as the model read it."""

    text: str


class Error(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    text: str


class FinalResponse(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    text: str


ThoughtEvent: TypeAlias = Thought | ToolCall | ToolOutput | Error | FinalResponse


class ThoughtView:
    """Expects all records of a task's conversation, in order."""

    def __init__(self, task_id: str) -> None:
        self._task_ids = {task_id}
        self._shown: set[str] = set()
        self._failure: Error | None = None  # of the last failed reply, which is not reported again at the end
        self._completions: set[str] = set()  # ids of the calls that end a task: its response is the end itself

    def record(self, event: events.Event) -> tuple[ThoughtEvent, ...]:
        if isinstance(event, events.TaskUpdate) and event.task.origin.follows in self._task_ids:
            self._task_ids.add(event.task.id)
        match event:
            case events.TaskMessage(node=node) if node.task_id in self._task_ids and node.status != "streaming":
                return tuple(self._node(node)) if self._is_new(node.id) else ()
            case events.TaskUpdate(task=task) if task.id in self._task_ids and task.outcome.ended_at is not None:
                end = _end(task)
                return (end,) if self._is_new(task.id) and end != self._failure else ()
            case _:
                return ()

    def _is_new(self, one: str) -> bool:
        is_new = one not in self._shown
        self._shown.add(one)
        return is_new

    def _node(self, node: Node) -> Iterator[ThoughtEvent]:
        """Yield the events of a node. A reply without a call is the final response, which is reported at the end of
        the task.
        """
        acts = any(isinstance(block, ToolCallBlock) for block in node.blocks)
        for block in node.blocks:
            match block:
                case ThinkingBlock(text=text) if text.strip():
                    yield Thought(text=text)
                case TextBlock(text=text) if node.role == "assistant" and acts and text.strip():
                    yield Thought(text=text)
                case ToolCallBlock(call_id=call_id, display=display) if display.role == "completion":
                    self._completions.add(call_id)
                case ToolCallBlock(tool=name, arguments=arguments, invalid=invalid):
                    self._completions.discard(block.call_id)  # models reuse ids
                    yield ToolCall(name=name, args=invalid or msgspec.json.encode(arguments).decode())
                case ToolResultBlock(call_id=call_id, text=text, is_error=is_error):
                    if is_error or call_id not in self._completions:
                        yield ToolOutput(text=text)
                case _:
                    pass
        if node.status == "failed":
            self._failure = Error(text=node.error or "The reply failed.")
            yield self._failure


def _end(task: Task) -> ThoughtEvent:
    if is_unfinished(task):
        return FinalResponse(
            text=f"I tried but could not finish. {unfinished_text(task)}. {task.outcome.summary}".rstrip()
        )
    if task.outcome.stop_reason == "completed":
        return FinalResponse(text=task.outcome.summary)
    if task.outcome.stop_reason in _UNFINISHED:
        return FinalResponse(
            text=f"I tried but could not finish: the limit of {_UNFINISHED[task.outcome.stop_reason]}."
        )
    return Error(text=task.outcome.error or "The task was stopped.")

"""Translates the engine's events of a task into five: thought, call, output, error, response."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from app.client.display_text import is_unfinished, unfinished_words
from app.protocol import events as told
from app.protocol.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from app.protocol.conversations import Node
from app.protocol.tasks import Task, TaskStopReason

_COMPLETE = "task_complete"
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

    def record(self, event: told.Event) -> tuple[ThoughtEvent, ...]:
        if isinstance(event, told.TaskUpdate) and event.task.follows in self._task_ids:
            self._task_ids.add(event.task.id)
        match event:
            case told.TaskMessage(node=node) if node.task_id in self._task_ids and node.status != "streaming":
                return tuple(_node(node)) if self._is_new(node.id) else ()
            case told.TaskUpdate(task=task) if task.id in self._task_ids and task.ended_at is not None:
                return (_end(task),) if self._is_new(task.id) else ()
            case _:
                return ()

    def _is_new(self, one: str) -> bool:
        is_new = one not in self._shown
        self._shown.add(one)
        return is_new


def _node(node: Node) -> Iterator[ThoughtEvent]:
    """A reply without a call is the final response, which is reported at the end of the task."""
    acts = any(isinstance(block, ToolCallBlock) for block in node.blocks)
    for block in node.blocks:
        match block:
            case ThinkingBlock(text=text) if text.strip():
                yield Thought(text=text)
            case TextBlock(text=text) if node.role == "assistant" and acts and text.strip():
                yield Thought(text=text)
            case ToolCallBlock(tool=name, arguments=arguments, invalid=invalid) if name != _COMPLETE:
                yield ToolCall(name=name, args=invalid or msgspec.json.encode(arguments).decode())
            case ToolResultBlock(tool=name, text=text, is_error=is_error) if name != _COMPLETE or is_error:
                yield ToolOutput(text=text)
            case _:
                pass
    if node.status == "failed":
        yield Error(text=node.error or "The reply failed.")


def _end(task: Task) -> ThoughtEvent:
    if is_unfinished(task):
        return FinalResponse(text=f"I tried but could not finish: it {unfinished_words(task)}. {task.summary}".rstrip())
    if task.stop_reason == "completed":
        return FinalResponse(text=task.summary)
    if task.stop_reason in _UNFINISHED:
        return FinalResponse(text=f"I tried but could not finish: the limit of {_UNFINISHED[task.stop_reason]}.")
    return Error(text=task.error or "The task was stopped.")

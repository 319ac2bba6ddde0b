"""The JSON Schema to which a server holds a reply: one call, of the tools that may come next."""

from collections.abc import Sequence
from dataclasses import dataclass

from errand.engine.core.messages import (
    AssistantMessage,
    ModelMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from errand.engine.models.base import ToolDefinition
from errand.protocol.base import JsonObject

# The call that ends the work. It is `task_complete` to the task.
ANSWER = "answer"
_QUESTION = "ask_user"
# Failed calls after which the model may give up.
_MAX_FAILURES = 3


@dataclass(frozen=True, slots=True)
class _Step:
    """A call and its result."""

    call: ToolCall
    result: ToolResultMessage

    def is_same(self, other: "_Step") -> bool:
        return (self.call.name, self.call.arguments, text_of(self.result)) == (
            other.call.name,
            other.call.arguments,
            text_of(other.result),
        )


def schema_of_reply(tools: Sequence[ToolDefinition], messages: Sequence[ModelMessage]) -> JsonObject:
    """Return the schema of the reply to these messages: a call of one of the tools that `excluded_tools` leaves."""
    excluded = excluded_tools(messages)
    return {"anyOf": [_call_schema(tool) for tool in tools if tool.name not in excluded]}


def excluded_tools(messages: Sequence[ModelMessage]) -> frozenset[str]:
    """Return the tools that the next call must not be of, where a small model would give up or turn in circles.

    One whose last two calls and results were the same; a second question to the person; and the answer while the last
    call of some tool has failed, unless several have.
    """
    steps = _steps_since_person(messages)
    excluded = {_QUESTION} if any(step.call.name == _QUESTION for step in steps) else set[str]()
    if len(steps) > 1 and steps[-1].is_same(steps[-2]):
        excluded.add(steps[-1].call.name)
    has_failed = {step.call.name: step.result.is_error for step in steps}  # the last call of each tool
    failures = sum(step.result.is_error for step in steps)
    if any(has_failed.values()) and failures <= _MAX_FAILURES:
        excluded.add(ANSWER)
    return frozenset(excluded)


def _steps_since_person(messages: Sequence[ModelMessage]) -> list[_Step]:
    steps: list[_Step] = []
    results: dict[str, ToolResultMessage] = {}
    for message in reversed(messages):
        match message:
            case ToolResultMessage():
                results[message.tool_call_id] = message
            case AssistantMessage():
                calls = (call for call in reversed(message.tool_calls) if call.id in results)
                steps += [_Step(call, results.pop(call.id)) for call in calls]
            case UserMessage(kind=None):
                break
            case _:
                pass
    return steps[::-1]


def _call_schema(tool: ToolDefinition) -> JsonObject:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": {**tool.parameters, "additionalProperties": False}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }

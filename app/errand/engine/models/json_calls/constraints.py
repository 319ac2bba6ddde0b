"""The JSON Schema to which a server holds a reply: one call, of the tools that may come next."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from errand.engine.core.messages import (
    TASK_COMPLETE,
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
_ENDS = frozenset((ANSWER, TASK_COMPLETE))
_MAX_REPETITIONS = 3
# Failed calls after which the model may give up.
_MAX_FAILURES = 3
# Failed calls of a tool, without a success between them, after which another tool is tried.
_MAX_FAILURES_IN_A_ROW = 2


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
    excluded = excluded_tools(tools, messages)
    return {"anyOf": [_call_schema(tool) for tool in tools if tool.name not in excluded]}


def excluded_tools(tools: Sequence[ToolDefinition], messages: Sequence[ModelMessage]) -> frozenset[str]:
    """Return the tools that the next call must not be of, where a small model would give up or turn in circles.

    - The tool of the last call, if the same call had the same result before. A wait that succeeded may be repeated.
    - A tool that has failed twice since a call succeeded.
    - The question to the person, if one was asked before.
    - The answer right after a failed call, unless more than three calls have failed. A question that nobody answered
      is no failed call: what was before it counts.
    - All but the answer, after three repetitions without a new result between them.
    """
    steps = _steps_since_person(messages)
    names = {tool.name for tool in tools}
    if _repetitions(steps) >= _MAX_REPETITIONS and (ends := names & _ENDS):
        return frozenset(names - ends)
    excluded = {_QUESTION} if any(step.call.name == _QUESTION for step in steps) else set[str]()
    if steps and _is_repeated(steps, len(steps) - 1):
        excluded.add(steps[-1].call.name)
    excluded |= _failing_tools(steps) - _ENDS
    acts = [step for step in steps if step.call.name != _QUESTION or not step.result.is_error]
    failures = sum(step.result.is_error for step in acts)
    if acts and acts[-1].result.is_error and failures <= _MAX_FAILURES and names - excluded > {ANSWER}:
        excluded.add(ANSWER)
    return frozenset(excluded)


def _failing_tools(steps: Sequence[_Step]) -> set[str]:
    """Return the tools that have failed twice since the last call that succeeded."""
    counts = Counter(step.call.name for step in takewhile(lambda step: step.result.is_error, reversed(steps)))
    return {name for name, count in counts.items() if count >= _MAX_FAILURES_IN_A_ROW}


def _repetitions(steps: Sequence[_Step]) -> int:
    """Return how many of the last steps were the same as earlier ones, since one that succeeded and was not."""
    count = 0
    for at in range(len(steps) - 1, -1, -1):
        if _is_repeated(steps, at):
            count += 1
        elif not steps[at].result.is_error and not _was_made(steps, at):
            break
    return count


def _is_repeated(steps: Sequence[_Step], at: int) -> bool:
    has_waited = "waited" in steps[at].result.marks and not steps[at].result.is_error
    return not has_waited and _was_made(steps, at)


def _was_made(steps: Sequence[_Step], at: int) -> bool:
    """Return whether this step was made before. A hint on repetition is part of a result that has that mark."""
    return "repeated" in steps[at].result.marks or any(steps[at].is_same(step) for step in steps[:at])


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

"""The request for a small model: tools in the prompt, an example of how to work, and the schema of the reply."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from string import Template
from typing import cast

import msgspec

from errand.engine.core.messages import (
    TASK_COMPLETE,
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    in_tags,
    text_of,
    user_text,
)
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.call_ids import NO_RESULT
from errand.engine.models.reply.content import encode
from errand.protocol.base import JsonObject, JsonValue

# The call that ends the work. It is `task_complete` to the task.
ANSWER = "answer"
_QUESTION = "ask_user"
_RESULT_TAG = "tool_response"
# Failed calls after which the model may give up.
_MAX_FAILURES = 3
# A small model may repeat itself without end.
MAX_REPLY_TOKENS = 2_048
_ANSWER_TOOL = ToolDefinition(
    ANSWER,
    "End with the answer for the person, once all is done.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


class _ExampleTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of the example: a call with its result, after a message of the person if there is one."""

    name: str
    arguments: JsonObject
    person: str = ""
    result: str = ""


def with_json_calls(request: ModelRequest) -> ModelRequest:
    """Return the request with its tools in the prompt, its history as JSON calls, and a schema for the reply."""
    tools, options = offered(request.tools), request.options
    excluded = _excluded(request.messages)
    return replace(
        request,
        system_prompt="\n\n".join(filter(None, (request.system_prompt, _protocol(tools)))),
        messages=(*_example(frozenset(tool.name for tool in tools)), *_history(request.messages)),
        tools=(),
        reply_schema=schema_of_reply([tool for tool in tools if tool.name not in excluded]),
        options=replace(options, max_tokens=min(options.max_tokens or MAX_REPLY_TOKENS, MAX_REPLY_TOKENS)),
    )


def offered(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return the tools with `answer` in the place of what completes a task."""
    return (*(tool for tool in tools if tool.name != TASK_COMPLETE), _ANSWER_TOOL)


def _excluded(messages: Sequence[ModelMessage]) -> frozenset[str]:
    """Return the tools that the next call must not be of, where a small model would give up or turn in circles.

    One whose last two calls and results were the same; a second question to the person; and the answer
    while the last call of some tool has failed, unless several have.
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


def _steps_since_person(messages: Sequence[ModelMessage]) -> list[_Step]:
    steps: list[_Step] = []
    results: dict[str, ToolResultMessage] = {}
    for message in reversed(messages):
        match message:
            case ToolResultMessage():
                results[message.tool_call_id] = message
            case AssistantMessage():
                steps += [
                    _Step(call, results.pop(call.id)) for call in reversed(message.tool_calls) if call.id in results
                ]
            case UserMessage(kind=None):
                break
            case _:
                pass
    return steps[::-1]


def schema_of_reply(tools: Sequence[ToolDefinition]) -> JsonObject:
    """Return the JSON Schema of a reply: one call of one of these tools, with its arguments in order."""
    return {"anyOf": [_call_schema(tool) for tool in tools]}


def _call_schema(tool: ToolDefinition) -> JsonObject:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": {**tool.parameters, "additionalProperties": False}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


@functools.cache
def _text(name: str) -> str:
    return (files("errand.engine.models.json_calls") / name).read_text(encoding="utf-8").strip()


@functools.cache
def _example(names: frozenset[str]) -> tuple[ModelMessage, ...]:
    """Return an example of work as a conversation; empty if it needs tools that are not offered."""
    turns = msgspec.json.decode(_text("example.json"), type=tuple[_ExampleTurn, ...])
    if not {turn.name for turn in turns} <= names:
        return ()
    messages: list[ModelMessage] = []
    for turn in turns:
        if turn.person:
            messages.append(user_text(turn.person))
        messages.append(AssistantMessage((Text(_written(turn.name, turn.arguments)),)))
        if turn.result:
            messages.append(user_text(in_tags(turn.result, _RESULT_TAG)))
    return tuple(messages)


def _protocol(tools: Sequence[ToolDefinition]) -> str:
    return Template(_text("protocol.md")).safe_substitute(tools="\n".join(map(_line, tools)))


def _line(tool: ToolDefinition) -> str:
    properties = tool.parameters.get("properties")
    arguments: JsonObject = dict.fromkeys(properties, "…") if isinstance(properties, dict) else {}
    return f"- {_written(tool.name, arguments)}: {tool.description}"


def _written(name: str, arguments: JsonObject) -> str:
    """Return a call as these models write JSON: with a blank after each separator."""
    return msgspec.json.format(encode({"name": name, "arguments": cast(JsonValue, arguments)}), indent=0).decode()


def _history(messages: Sequence[ModelMessage]) -> Iterator[ModelMessage]:
    """Yield the conversation with each reply as one call, and the result of each call after it."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolResultMessage)}
    pending: list[UserContent] = []
    for message in messages:
        match message:
            case UserMessage():
                pending += message.content
            case AssistantMessage():
                for written, result in _calls(message, results):
                    if pending:
                        yield UserMessage(tuple(pending))
                    yield AssistantMessage((Text(written),), model=message.model)
                    pending = list(result)
            case ToolResultMessage():
                pass  # placed after its call
    if pending:
        yield UserMessage(tuple(pending))


def _calls(
    message: AssistantMessage, results: Mapping[str, ToolResultMessage]
) -> Iterator[tuple[str, tuple[UserContent, ...]]]:
    failed = message.stop_reason in ("error", "aborted")
    calls = [call for call in message.tool_calls if not failed or call.id in results]
    if not calls:
        if message.text.strip():
            yield _written(ANSWER, {"text": message.text}), ()
        return
    for call in calls:
        yield _written_call(call), _result(results.get(call.id))


def _written_call(call: ToolCall) -> str:
    if call.name == TASK_COMPLETE:
        return _written(ANSWER, {"text": call.arguments.get("summary", "")})
    return call.invalid if call.invalid is not None else _written(call.name, call.arguments)


def _result(result: ToolResultMessage | None) -> tuple[UserContent, ...]:
    output = NO_RESULT if result is None else text_of(result) or "(no output)"
    pictures = [block for block in result.content if isinstance(block, Image)] if result is not None else []
    return (Text(in_tags(output, _RESULT_TAG)), *pictures)

"""The request for a small model: tools in the prompt, examples of how to work, and the schema of the reply."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from string import Template

import msgspec

from errand.engine.core.messages import (
    TASK_COMPLETE,
    AssistantMessage,
    ContextText,
    ModelMessage,
    Text,
    ToolCall,
    UserContent,
    UserMessage,
    in_tags,
    user_text,
)
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.json_calls.constraints import ANSWER, schema_of_reply
from errand.engine.models.react.history import WrittenForm, to_text_history
from errand.engine.models.react.reply import takes_summary
from errand.engine.models.reply.content import encode
from errand.protocol.base import JsonObject

_RESULT_TAG = "tool_response"
# A small model may repeat itself without end.
_MAX_REPLY_TOKENS = 2_048
# Unless the personality has one: at 0.8, llama.cpp's default, a small model solved 16 of 30 tasks in place of 20.
_TEMPERATURE = 0.0
_UNREADABLE = 'Your reply was no whole call. Write one call as JSON: {"name": …, "arguments": {…}}.'
_ANSWER_TOOL = ToolDefinition(
    ANSWER,
    "End with the answer for the person, once all is done.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


class _ExampleTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of an example: a call with its result."""

    name: str
    arguments: JsonObject
    result: str = ""


class _Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of a person, and how it is worked on. The last call is the answer."""

    person: str
    turns: tuple[_ExampleTurn, ...]


def with_json_calls(request: ModelRequest) -> ModelRequest:
    """Return the request with its tools in the prompt, its history as JSON calls, and a schema for the reply."""
    tools, options = _with_answer(request.tools), request.options
    context, messages = _brief_context(request.messages)
    temperature = _TEMPERATURE if options.temperature is None else options.temperature
    max_tokens = min(options.max_tokens or _MAX_REPLY_TOKENS, _MAX_REPLY_TOKENS)
    return replace(
        request,
        system_prompt="\n\n".join(filter(None, (request.system_prompt, _protocol(tools), context))),
        messages=(
            *_examples(frozenset(tool.name for tool in tools)),
            *to_text_history(messages, WrittenForm(_written_call, _written_answer, _RESULT_TAG, _UNREADABLE)),
        ),
        tools=(),
        reply_schema=schema_of_reply(tools, request.messages),
        options=replace(options, temperature=temperature, max_tokens=max_tokens),
    )


def _brief_context(messages: Sequence[ModelMessage]) -> tuple[str, list[ModelMessage]]:
    """Return what the first message has as context, in brief, and the messages with that of later ones in brief.

    A small model takes what stands before the words of the first message for a part of what is asked.
    """
    context: list[str] = []
    brief_messages: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, UserMessage):
            content: list[UserContent] = []
            for block in message.content:
                if not isinstance(block, ContextText) or block.brief is None:
                    content.append(block)
                elif not brief_messages:
                    context.append(block.brief)
                elif block.brief:
                    content.append(Text(block.brief))
            message = replace(message, content=tuple(content))
        brief_messages.append(message)
    return "\n\n".join(context), brief_messages


def _with_answer(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return the tools with `answer` in the place of what completes a task.

    A task whose answer follows a schema of its own keeps its completion, and ends with that.
    """
    others = tuple(tool for tool in tools if not takes_summary(tool))
    has_own_completion = any(tool.name == TASK_COMPLETE for tool in others)
    return others if has_own_completion else (*others, _ANSWER_TOOL)


@functools.cache
def _text(name: str) -> str:
    return (files("errand.engine.models.json_calls") / name).read_text(encoding="utf-8").strip()


@functools.cache
def _examples(names: frozenset[str]) -> tuple[ModelMessage, ...]:
    """Return examples of work as a conversation: those that need no other tools than these."""
    messages: list[ModelMessage] = []
    for example in msgspec.json.decode(_text("examples.json"), type=tuple[_Example, ...]):
        if not {turn.name for turn in example.turns} <= names:
            continue
        messages.append(user_text(example.person))
        for turn in example.turns:
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
    return msgspec.json.format(encode({"name": name, "arguments": arguments}), indent=0).decode()


def _written_call(call: ToolCall) -> str:
    if call.name == TASK_COMPLETE and call.arguments.keys() == {"summary"}:
        return _written(ANSWER, {"text": call.arguments["summary"]})
    return call.invalid if call.invalid is not None else _written(call.name, call.arguments)


def _written_answer(text: str) -> str:
    return _written(ANSWER, {"text": text})

"""Model messages to the body of an OpenAI chat completion. Which fields a provider takes is in its catalog row."""

import json
import re
from itertools import takewhile

import msgspec

from app.engine.messages import (
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    text_of,
)
from app.engine.models import prices
from app.engine.models.base import ModelRequest, ToolDefinition
from app.engine.models.call_ids import CallIds
from app.engine.models.catalog import Provider, bare_id
from app.engine.models.kept import Kept
from app.protocol.json import JsonObject, JsonValue

_UNSEEN = "[A picture stood here, which this model cannot see.]"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def chat_messages(request: ModelRequest, provider: Provider, kept: Kept[list[JsonValue]]) -> list[JsonValue]:
    """The conversation in the form of the API, whichever models it was with. `kept` holds what was made of messages
    sent before, for one provider.

    Calls a failed or aborted reply left without a result are dropped; others without one are answered, since strict
    providers refuse a call without a result. Reasoning goes back to who wrote it, and pictures only to who sees.
    """
    return _Conversation(request, provider, kept).entries()


class _Conversation:
    def __init__(self, request: ModelRequest, provider: Provider, kept: Kept[list[JsonValue]]) -> None:
        known = prices.facts(request.model)
        self._request = request
        self._provider = provider
        self._kept = kept
        self._ids = CallIds(provider)
        self._sees = known is None or known.sees is not False

    def entries(self) -> list[JsonValue]:
        messages = self._request.messages
        entries: list[JsonValue] = []
        if self._request.system_prompt:
            entries.append({"role": "system", "content": self._request.system_prompt})
        pending: list[JsonValue] = []  # pictures in results go after the batch: tool messages take text only
        for index, message in enumerate(messages):
            if pending and not isinstance(message, ToolResultMessage):
                entries += pending
                pending = []
            match message:
                case UserMessage():
                    entries.append({"role": "user", "content": _parts(message.content, self._sees)})
                case AssistantMessage():
                    entries += self._reply(message, _answered(messages, index))
                case ToolResultMessage():
                    entries += self._result(message)
                    pending += _pictures(message, self._sees)
        return entries + pending

    def _reply(self, message: AssistantMessage, answered: set[str]) -> list[JsonValue]:
        failed = message.stop_reason in ("error", "aborted")
        named, is_independent = self._ids.of_reply(message)
        calls = [(call, name) for call, name in named if call.id in answered]
        if len(calls) == len(named) and is_independent:
            return self._kept.of(message, lambda: self._entry(message, calls))
        if failed:
            return self._entry(message, calls)
        return self._entry(message, named) + [
            {"role": "tool", "tool_call_id": name, "content": "(no result was recorded)"}
            for call, name in named
            if call.id not in answered
        ]

    def _entry(self, message: AssistantMessage, calls: list[tuple[ToolCall, str]]) -> list[JsonValue]:
        text = message.text
        if not text and not calls:
            return []
        entry: JsonObject = {"role": "assistant", "content": text or None}
        if calls:
            entry["tool_calls"] = [_call(call, call_id) for call, call_id in calls]
            entry.update(self._reasoning(message))
        return [entry]

    def _reasoning(self, message: AssistantMessage) -> JsonObject:
        """For models that want their reasoning back with their calls. A proof is good for the model that gave it."""
        field = self._provider.reasoning_field
        thoughts = [block for block in message.content if isinstance(block, Thinking)]
        if field == "thinking_blocks":
            is_own = bare_id(message.model) == bare_id(self._request.model)
            blocks: list[JsonValue] = [
                {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
                for thought in thoughts
                if thought.signature and is_own
            ]
            return {field: blocks} if blocks else {}
        # After a call stands what a model with tools as text played on: not what led to it.
        before = takewhile(lambda block: not isinstance(block, ToolCall), message.content)
        text = "".join(block.text for block in before if isinstance(block, Thinking))
        # DeepSeek refuses calls without the field, so those of other models have it too.
        return {field: text} if field and (text or field == "reasoning_content") else {}

    def _result(self, message: ToolResultMessage) -> list[JsonValue]:
        call_id = self._ids.of_result(message)
        text = text_of(message)
        if call_id is None:  # its call is not in the request: as a result it would be refused
            return [{"role": "user", "content": f"Result of an earlier call of {message.tool_name}:\n{text}"}]
        if not text:
            text = "(see the picture below)" if message.content else "(no output)"
        return [{"role": "tool", "tool_call_id": call_id, "content": text}]


def _answered(messages: tuple[ModelMessage, ...], index: int) -> set[str]:
    """The calls of the reply at `index` that have a result: those that follow it, up to the next reply."""
    answered: set[str] = set()
    for at in range(index + 1, len(messages)):
        message = messages[at]
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage):
            answered.add(message.tool_call_id)
    return answered


def tool_definitions(tools: tuple[ToolDefinition, ...]) -> list[JsonValue]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def encode(body: JsonObject) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # lone surrogates, such as file names that are not UTF-8
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _call(call: ToolCall, call_id: str) -> JsonValue:
    # Servers parse the arguments of earlier calls, so a call that was not valid JSON goes back with none.
    arguments = encode(call.arguments).decode()
    name = _NOT_IN_NAMES.sub("_", call.name)[:64] or "_"
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _pictures(message: ToolResultMessage, sees: bool) -> list[JsonValue]:
    images = tuple(block for block in message.content if isinstance(block, Image))
    if not images:
        return []
    return [{"role": "user", "content": _parts((Text(f"Pictures from {message.tool_name}:"), *images), sees)}]


def _parts(content: tuple[UserContent, ...], sees: bool) -> JsonValue:
    """One string where there is only text, since some servers take no parts."""
    if not sees:
        content = tuple(block if isinstance(block, Text) else Text(_UNSEEN) for block in content)
    texts = [block.text for block in content if isinstance(block, Text)]
    if len(texts) == len(content):
        return "\n\n".join(texts)
    return [_part(block) for block in content]


def _part(block: UserContent) -> JsonValue:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{block.data}"}}

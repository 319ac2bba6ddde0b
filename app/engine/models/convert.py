"""Model messages to the body of an OpenAI chat completion. Which fields a provider takes is in its catalog row."""

import hashlib
import json

import msgspec

from app.engine.messages import (
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    text_of,
)
from app.engine.models.base import ModelRequest, ToolDefinition
from app.engine.models.catalog import Provider
from app.engine.models.kept import Kept
from app.protocol.json import JsonObject, JsonValue


def chat_messages(request: ModelRequest, provider: Provider, kept: Kept[list[JsonValue]]) -> list[JsonValue]:
    """The conversation in the form of the API. `kept` holds what was made of messages sent before, for one provider.

    Calls a failed or aborted reply left without a result are dropped; others without one are answered, since strict
    providers refuse a call without a result.
    """
    messages: list[JsonValue] = []
    if request.system_prompt:
        messages.append({"role": "system", "content": request.system_prompt})
    answered = {message.tool_call_id for message in request.messages if isinstance(message, ToolResultMessage)}
    pending: list[JsonValue] = []  # pictures in results go after the batch: tool messages take text only
    for message in request.messages:
        if pending and not isinstance(message, ToolResultMessage):
            messages += pending
            pending = []
        match message:
            case UserMessage():
                messages.append({"role": "user", "content": _parts(message.content)})
            case AssistantMessage():
                if all(call.id in answered for call in message.tool_calls):
                    messages += kept.of(message, lambda reply=message: _assistant(reply, answered, provider))
                else:
                    messages += _assistant(message, answered, provider)
            case ToolResultMessage():
                messages += kept.of(message, lambda result=message: [_result(result, provider)])
                pending += _pictures(message)
    return messages + pending


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


def _assistant(message: AssistantMessage, answered: set[str], provider: Provider) -> list[JsonValue]:
    failed = message.stop_reason in ("error", "aborted")
    calls = [call for call in message.tool_calls if call.id in answered or not failed]
    text = message.text
    if not text and not calls:
        return []
    entry: JsonObject = {"role": "assistant", "content": text or None}
    if calls:
        entry["tool_calls"] = [_call(call, provider) for call in calls]
        thoughts = [block for block in message.content if isinstance(block, Thinking)]
        entry.update(_reasoning(thoughts, provider))
    missing: list[JsonValue] = [
        {"role": "tool", "tool_call_id": _call_id(call.id, provider), "content": "(no result was recorded)"}
        for call in calls
        if call.id not in answered
    ]
    return [entry, *missing]


def _reasoning(thoughts: list[Thinking], provider: Provider) -> JsonObject:
    """Its own reasoning, for models that want it back with their tool calls."""
    field = provider.reasoning_field
    if field == "thinking_blocks":
        signed = [thought for thought in thoughts if thought.signature]
        blocks: list[JsonValue] = [
            {"type": "thinking", "thinking": thought.text, "signature": thought.signature} for thought in signed
        ]
        return {field: blocks} if blocks else {}
    text = "".join(thought.text for thought in thoughts)
    return {field: text} if field and text else {}


def _call(call: ToolCall, provider: Provider) -> JsonValue:
    # Servers parse the arguments of earlier calls, so a call that was not valid JSON goes back with none.
    arguments = encode(call.arguments).decode()
    return {
        "id": _call_id(call.id, provider),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _result(message: ToolResultMessage, provider: Provider) -> JsonValue:
    text = text_of(message)
    if not text:
        text = "(see the picture below)" if message.content else "(no output)"
    return {"role": "tool", "tool_call_id": _call_id(message.tool_call_id, provider), "content": text}


def _pictures(message: ToolResultMessage) -> list[JsonValue]:
    images = tuple(block for block in message.content if isinstance(block, Image))
    if not images:
        return []
    return [{"role": "user", "content": _parts((Text(f"Pictures from {message.tool_name}:"), *images))}]


def _parts(content: tuple[UserContent, ...]) -> JsonValue:
    """One string where there is only text, since some servers take no parts."""
    texts = [block.text for block in content if isinstance(block, Text)]
    if len(texts) == len(content):
        return "\n\n".join(texts)
    return [_part(block) for block in content]


def _part(block: UserContent) -> JsonValue:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{block.data}"}}


def _call_id(call_id: str, provider: Provider) -> str:
    """Mistral takes ids of nine letters and digits only, and Gemini's are long; a conversation may begin elsewhere."""
    if provider.kind == "openai_compatible" and len(call_id) > 64:
        return hashlib.sha256(call_id.encode()).hexdigest()[:40]
    if not provider.short_call_ids or (len(call_id) == 9 and call_id.isalnum()):
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()[:9]

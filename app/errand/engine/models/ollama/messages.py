"""Messages of chat completions as Ollama's own interface has them."""

from collections.abc import Iterator

import msgspec

from errand.engine.core.json_input.foreign_json import object_or_empty, objects_in
from errand.protocol.base import JsonObject, JsonValue

_EMPTY: JsonObject = {}


def as_ollama(messages: msgspec.Raw) -> list[JsonValue]:
    """Return the messages with texts as one string, pictures beside them, and arguments of calls as objects."""
    return list(_converted(msgspec.json.decode(messages, type=list[JsonObject])))


def _converted(messages: list[JsonObject]) -> Iterator[JsonValue]:
    tools: dict[JsonValue, JsonValue] = {}
    for message in messages:
        text, pictures = _content(message.get("content"))
        converted: JsonObject = {"role": message["role"], "content": text}
        if pictures:
            converted["images"] = pictures
        calls = [_call(call) for call in objects_in(message.get("tool_calls"))]
        if calls:
            converted["tool_calls"] = [*calls]
            tools |= {call["id"]: object_or_empty(call["function"])["name"] for call in calls}
        if "tool_call_id" in message:
            converted["tool_call_id"] = message["tool_call_id"]
            converted["tool_name"] = tools.get(message["tool_call_id"], "")
        yield converted


def _content(content: JsonValue) -> tuple[str, list[JsonValue]]:
    if not isinstance(content, list):
        return content if isinstance(content, str) else "", []
    texts, pictures = list[str](), list[JsonValue]()
    for part in objects_in(content):
        address = object_or_empty(part.get("image_url")).get("url")
        if isinstance(address, str):
            pictures.append(address.partition(",")[2])  # after `data:image/png;base64`
        elif isinstance(text := part.get("text"), str):
            texts.append(text)
    return "\n\n".join(texts), pictures


def _call(call: JsonObject) -> JsonObject:
    function = object_or_empty(call.get("function"))
    arguments = function.get("arguments")
    decoded = msgspec.json.decode(arguments, type=JsonObject) if isinstance(arguments, str) else _EMPTY
    return {"id": call.get("id"), "function": {"name": function.get("name"), "arguments": decoded}}

"""Reading what a provider is sent: the entries of a chat completion."""

import msgspec

from app.protocol.json import JsonObject, JsonValue


def entries_of(messages: list[JsonValue]) -> list[JsonObject]:
    """Every message as the object that it has to be."""
    return msgspec.convert(messages, list[JsonObject])


def calls_of(entry: JsonObject) -> list[str]:
    """The ids of the tool calls in an assistant's entry."""
    calls = msgspec.convert(entry.get("tool_calls") or [], list[JsonObject])
    return [str(call["id"]) for call in calls]


def text_in(entries: list[JsonObject]) -> str:
    return msgspec.json.encode(entries).decode()

"""Marks for Anthropic's prompt cache: without them each turn pays for the whole conversation again.

It takes four: after the tools, after the system prompt, and after the last two turns of the other side, so that what
the turn before has stored is found and this one's end is stored. Others cache by themselves, or by `cache_field`.
"""

from app.protocol.json import JsonObject, JsonValue

_MARK: JsonObject = {"type": "ephemeral"}
_TURNS = 2


def marked_messages(messages: list[JsonValue]) -> list[JsonValue]:
    marked = list(messages)
    for place in _places(messages):
        message = marked[place]
        if isinstance(message, dict):
            marked[place] = _marked(message)
    return marked


def marked_tools(tools: list[JsonValue]) -> list[JsonValue]:
    last = tools[-1] if tools else None
    return [*tools[:-1], {**last, "cache_control": _MARK}] if isinstance(last, dict) else tools


def _places(messages: list[JsonValue]) -> list[int]:
    """The system prompt, and the ends of the last turns that are not the model's own."""
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    ends = [
        place
        for place, role in enumerate(roles)
        if role in ("user", "tool") and (place + 1 == len(roles) or roles[place + 1] == "assistant")
    ]
    return [*(place for place, role in enumerate(roles[:1]) if role == "system"), *ends[-_TURNS:]]


def _marked(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if message.get("role") == "tool":
        return {**message, "cache_control": _MARK}
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content, "cache_control": _MARK}]}
    last = content[-1] if isinstance(content, list) and content else None
    if not isinstance(content, list) or not isinstance(last, dict):
        return message
    return {**message, "content": [*content[:-1], {**last, "cache_control": _MARK}]}

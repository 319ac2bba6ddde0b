"""The positions of Anthropic's prompt-cache marks."""

from app.engine.models.litellm.model import marked_messages, marked_tools
from app.protocol.base import JsonObject, JsonValue

MARK: JsonObject = {"type": "ephemeral"}


def marks_in(messages: list[JsonValue]) -> list[int]:
    return [place for place, message in enumerate(marked_messages(messages)) if "cache_control" in str(message)]


def said(role: str, text: str = "x") -> JsonObject:
    return {"role": role, "content": text}


def test_the_system_prompt_and_the_ends_of_the_last_two_turns_are_marked() -> None:
    turns: list[JsonValue] = [said("system"), said("user"), said("assistant"), said("tool"), said("tool")]
    assert marks_in([*turns, said("assistant"), said("user")]) == [0, 4, 6]
    assert marks_in(turns) == [0, 1, 4]


def test_without_a_system_prompt_only_turns_are_marked() -> None:
    assert marks_in([said("user")]) == [0]
    assert marks_in([said("user"), said("assistant")]) == [0]
    assert marks_in([]) == []


def test_a_message_with_a_picture_is_marked_in_its_last_part() -> None:
    picture: JsonValue = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text: JsonValue = {"type": "text", "text": "what is it?"}
    assert marked_messages([{"role": "user", "content": [text, picture]}]) == [
        {"role": "user", "content": [text, {**picture, "cache_control": MARK}]}
    ]


def test_last_tool_is_marked_if_there_are_tools() -> None:
    one: JsonValue = {"type": "function", "function": {"name": "a"}}
    assert marked_tools([one, one]) == [one, {"type": "function", "function": {"name": "a"}, "cache_control": MARK}]
    assert marked_tools([]) == []

"""The positions of Anthropic's prompt-cache marks: four at most, at the ends of what the next request begins with."""

from errand.engine.core.messages import (
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_text,
)
from errand.engine.models.anthropic.messages_api import MessagesApi
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.catalog.providers import find
from errand.protocol.base import JsonObject, JsonValue

MARK: JsonObject = {"type": "ephemeral"}
TOOL = ToolDefinition("a", "A tool.", {"type": "object"})
CALL = AssistantMessage((ToolCall("1", "a", {}),), "tool_use")
RESULT = ToolResultMessage("1", "a", (Text("done"),))


def body(*messages: ModelMessage, system: str = "", tools: tuple[ToolDefinition, ...] = ()) -> JsonObject:
    row = find("anthropic")
    assert row is not None
    return MessagesApi(row).body(ModelRequest("anthropic/any", system, messages, tools))


def marked(value: JsonValue) -> list[int]:
    assert isinstance(value, list)
    return [index for index, entry in enumerate(value) if "cache_control" in str(entry)]


def test_the_ends_of_the_last_two_turns_of_the_user_are_marked() -> None:
    assert marked(body(user_text("x"))["messages"]) == [0]
    assert marked(body(user_text("x"), CALL, RESULT)["messages"]) == [0, 2]
    assert marked(body(user_text("x"), CALL, RESULT, CALL, RESULT, CALL, RESULT)["messages"]) == [4, 6]


def test_the_system_prompt_and_the_last_tool_are_marked() -> None:
    sent = body(user_text("x"), system="Be brief.", tools=(TOOL, TOOL))
    assert sent["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert marked(sent["tools"]) == [1]
    assert str(sent).count("cache_control") == 3


def test_a_message_with_a_picture_is_marked_in_its_last_part() -> None:
    sent = body(UserMessage((Text("what is it?"), Image("image/png", "AAAA"))))["messages"]
    source: JsonObject = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    picture: JsonObject = {"type": "image", "source": source, "cache_control": MARK}
    assert sent == [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, picture]}]


def test_without_a_system_prompt_and_tools_their_fields_are_left_out() -> None:
    assert body(user_text("x")).keys() == {"model", "max_tokens", "messages", "stream"}

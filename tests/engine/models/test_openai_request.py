"""Model messages as the body of a chat completion."""

import gc
import json
from weakref import ref

import msgspec

from errand.engine.core.messages import (
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_text,
)
from errand.engine.models.base import ModelRequest
from errand.engine.models.catalog import providers
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.message_cache import BeginningCache
from errand.engine.models.openai.request import ConvertedMessages, chat_messages
from errand.engine.models.reply.content import encode
from errand.protocol.base import JsonValue

PICTURE = Image("image/png", "AAAA")
OPENAI = next(row for row in providers.PROVIDERS if row.name == "openai")


def sent(
    request: ModelRequest, provider: Provider, cache: BeginningCache[ConvertedMessages] | None = None
) -> list[JsonValue]:
    return msgspec.json.decode(chat_messages(request, provider, cache or BeginningCache()))


def converted(*messages: ModelMessage, provider: str = "openai") -> list[JsonValue]:
    row = providers.find(provider)
    assert row is not None
    return sent(ModelRequest(f"{provider}/x", "", messages), row)


def test_complete_turn_is_sent_unchanged() -> None:
    call = ToolCall("call_1", "shell", {"command": "ls"})
    request = ModelRequest(
        "openai/x",
        "Be brief.",
        (
            user_text("list"),
            AssistantMessage((Thinking("hm"), Text("Listing."), call), "tool_use"),
            ToolResultMessage("call_1", "shell", (Text("a b"),)),
        ),
    )
    row = providers.find("openai")
    assert row is not None
    assert sent(request, row) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "list"},
        {
            "role": "assistant",
            "content": "Listing.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "shell", "arguments": '{"command":"ls"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a b"},
    ]


def test_pictures_are_sent_as_data_urls() -> None:
    assert converted(UserMessage((Text("what is it?"), PICTURE))) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        }
    ]


def test_pictures_in_results_follow_all_results_of_the_batch() -> None:
    calls = (ToolCall("a", "look", {}), ToolCall("b", "look", {}))
    messages = converted(
        AssistantMessage(calls, "tool_use"),
        ToolResultMessage("a", "look", (PICTURE,)),
        ToolResultMessage("b", "look", ()),
        user_text("and?"),
    )
    roles = [message["role"] for message in messages if isinstance(message, dict)]
    assert roles == ["assistant", "tool", "tool", "user"]
    assert messages[1:3] == [
        {"role": "tool", "tool_call_id": "a", "content": "(see the picture below)"},
        {"role": "tool", "tool_call_id": "b", "content": "(no output)"},
    ]


def test_calls_of_an_aborted_reply_are_left_out() -> None:
    cut = AssistantMessage((Text("I will"), ToolCall("a", "shell", {})), "aborted", "Request was aborted")
    empty = AssistantMessage((ToolCall("b", "shell", {}),), "error", "cut")
    assert converted(user_text("go"), cut, empty, user_text("again")) == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I will"},
        {"role": "user", "content": "again"},
    ]


def test_call_without_a_result_gets_one() -> None:
    assert converted(AssistantMessage((ToolCall("a", "shell", {}),), "tool_use"))[1] == {
        "role": "tool",
        "tool_call_id": "a",
        "content": "(no result was recorded)",
    }


def test_arguments_that_were_invalid_go_back_as_valid_json() -> None:
    (entry, _) = converted(AssistantMessage((ToolCall("a", "shell", {}, '{"x'),), "tool_use"))
    assert isinstance(entry, dict)
    assert entry["tool_calls"] == [{"id": "a", "type": "function", "function": {"name": "shell", "arguments": "{}"}}]


def test_mistral_gets_ids_of_nine_letters_that_still_match() -> None:
    call = ToolCall("call_0123456789", "shell", {})
    (entry, result) = converted(
        AssistantMessage((call,), "tool_use"), ToolResultMessage(call.id, "shell", (Text("x"),)), provider="mistral"
    )
    assert isinstance(entry, dict)
    assert isinstance(result, dict)
    text = json.dumps(entry["tool_calls"])
    assert len(str(result["tool_call_id"])) == 9
    assert str(result["tool_call_id"]) in text


def test_reasoning_is_returned_to_models_that_require_it() -> None:
    message = AssistantMessage((Thinking("hm", "proof"), ToolCall("a", "shell", {})), "tool_use", model="deepseek/x")
    result = ToolResultMessage("a", "shell", (Text("x"),))
    deepseek = converted(message, result, provider="deepseek")[0]
    assert isinstance(deepseek, dict)
    assert deepseek["reasoning_content"] == "hm"


def test_text_that_is_not_unicode_can_be_sent() -> None:
    assert encode({"text": "a\udcffb"}) == b'{"text": "a?b"}'


def test_turns_before_the_last_one_are_converted_once() -> None:
    cache: BeginningCache[ConvertedMessages] = BeginningCache()
    call = AssistantMessage((Text("I look."), ToolCall("1", "shell", {"command": "true"})), "tool_use")
    turn = (user_text("go"), call, ToolResultMessage("1", "shell", (Text("done"),)))
    unanswered = sent(ModelRequest("openai/x", "", turn[:2]), OPENAI, cache)
    complete = sent(ModelRequest("openai/x", "", turn), OPENAI, cache)
    assert unanswered[-1] != complete[-1]
    more = (*turn, AssistantMessage((Text("So."),)), user_text("and?"))
    first = sent(ModelRequest("openai/x", "", more), OPENAI, cache)
    second = sent(ModelRequest("openai/x", "", (*more, AssistantMessage((Text("Well."),)))), OPENAI, cache)
    assert first[:3] == second[:3] == complete
    count, beginning = cache.find(more) or (0, None)
    assert count == len(more)
    assert beginning is not None
    assert bytes(beginning.to_json()) == msgspec.json.encode(first)


def test_a_request_is_the_same_whatever_was_sent_before() -> None:
    call = ToolCall("1", "shell", {"command": "true"})
    conversation = (
        ToolResultMessage("0", "shell", (Text("of an earlier conversation"),)),
        user_text("go"),
        AssistantMessage((Text("I look."), call, ToolCall("2", "shell", {})), "tool_use"),
        ToolResultMessage("1", "shell", (Text("seen"), PICTURE)),
        ToolResultMessage("2", "shell", (Text("done"),)),
        user_text("look again"),
        user_text("soon"),
        AssistantMessage((call,), "tool_use"),
        ToolResultMessage("1", "shell", (Text("seen again"),)),
        AssistantMessage((call,), "aborted"),
        user_text("go on"),
        AssistantMessage((), "error"),
        user_text("once more"),
        AssistantMessage((call,), "tool_use"),
        AssistantMessage((Text("That is all."),)),
    )
    cache: BeginningCache[ConvertedMessages] = BeginningCache()
    prefixes = [conversation[:length] for length in range(1, len(conversation) + 1)]
    without = [(*conversation[:at], *conversation[at + 1 :]) for at in range(len(conversation))]
    for messages in (*prefixes, *without, *reversed(prefixes)):
        for prompt in ("", "Be brief."):
            request = ModelRequest("openai/x", prompt, messages)
            assert sent(request, OPENAI, cache) == sent(request, OPENAI)


def test_what_was_converted_does_not_keep_a_conversation() -> None:
    cache: BeginningCache[ConvertedMessages] = BeginningCache()
    messages = (user_text("go"), AssistantMessage((Text("a"),)), user_text("and?"), AssistantMessage((Text("b"),)))
    chat_messages(ModelRequest("openai/x", "", messages), OPENAI, cache)
    first = ref(messages[1])
    del messages
    gc.collect()
    assert first() is None

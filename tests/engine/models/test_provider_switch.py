"""A conversation that switches providers: all pairs, with everything that a history can contain."""

import itertools
import re

import msgspec
import pytest

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
from errand.engine.models.anthropic.request import messages_with_marks
from errand.engine.models.base import ModelRequest
from errand.engine.models.catalog.providers import PROVIDERS, Provider
from errand.engine.models.message_cache import BeginningCache
from errand.engine.models.openai.request import ConvertedMessages, chat_messages
from errand.engine.models.react.history import to_text_history
from errand.protocol.base import JsonObject
from tests.support.provider_servers import calls_of, entries_of, text_in

ROWS = tuple(row for row in PROVIDERS if row.kind in ("openai_compatible", "litellm"))
ANTHROPIC = next(row for row in PROVIDERS if row.kind == "anthropic")
EVERY = (*ROWS, ANTHROPIC)
PAIRS = [
    pytest.param(source, other, id=f"{source.name}-{other.name}") for source, other in itertools.product(EVERY, ROWS)
]
# In each provider's format; the last ones are from servers that restart counting in each reply.
IDS = {
    "anthropic": ("toolu_01A09q90qw90lq917835lq9", "toolu_01B09q90qw90lq917835lq9"),
    "gemini": ("call_1__thought__CiQB+/8=" + "A" * 300, "call_2"),
    "mistral": ("D681PevKs", "a1B2c3D4e"),
}
FORMS = {"nine": r"[A-Za-z0-9]{9}", "plain": r"[A-Za-z0-9_-]{1,64}", "gemini": r"[A-Za-z0-9_-]{1,64}"}
PICTURE = Image("image/png", "AAAA")


def history(row: Provider) -> tuple[ModelMessage, ...]:
    """Reasoning, parallel calls, pictures, the same ids again, a failed reply, a cut one, a call without a result."""
    model = f"{row.name}/model"
    first_id, second_id = IDS.get(row.name, ("call_0", "call_1"))
    calls = (ToolCall(first_id, "shell", {"command": "ls"}), ToolCall(second_id, "mcp.look", {}))
    return (
        UserMessage((Text("what is it?"), PICTURE)),
        AssistantMessage((Thinking("I look.", "PROOF"), Text("Looking."), *calls), "tool_use", model=model),
        ToolResultMessage(second_id, "mcp.look", (PICTURE,)),
        ToolResultMessage(first_id, "shell", (Text("a b"),)),
        AssistantMessage((Thinking("Again."), *calls), "tool_use", model=model),
        ToolResultMessage(first_id, "shell", (Text("a b"),)),
        ToolResultMessage(second_id, "mcp.look", (Text("a cat"),)),
        AssistantMessage((Text("half a th"), ToolCall("cut", "shell", {})), "aborted", "Request was aborted", model),
        AssistantMessage((ToolCall("broken", "shell", {}),), "error", "the connection broke off", model),
        user_text("go on"),
        AssistantMessage((ToolCall(second_id, "shell", {}, invalid='{"x'),), "tool_use", model=model),
        user_text("never mind"),
    )


def sent(row: Provider, messages: tuple[ModelMessage, ...]) -> list[JsonObject]:
    return decoded(chat_messages(ModelRequest(f"{row.name}/model", "Be brief.", messages), row, BeginningCache()))


def decoded(messages: msgspec.Raw) -> list[JsonObject]:
    return msgspec.json.decode(messages, type=list[JsonObject])


@pytest.mark.parametrize(("source", "other"), PAIRS)
def test_every_call_has_one_result_under_an_id_valid_for_the_provider(source: Provider, other: Provider) -> None:
    entries = sent(other, history(source))
    ids = [call_id for entry in entries for call_id in calls_of(entry)]
    results = [entry["tool_call_id"] for entry in entries if entry["role"] == "tool"]
    assert len(ids) == len(set(ids)) == 5
    assert sorted(map(str, results)) == sorted(ids)
    form = FORMS[other.call_ids]
    own = set(IDS["gemini"]) if source.name == other.name == "gemini" else set[str]()
    assert [call_id for call_id in ids if not re.fullmatch(form, call_id) and not _is_of(call_id, own)] == []
    names = re.findall(r'"name": ?"([^"]*)"', text_in(entries))
    assert [name for name in names if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)] == []


@pytest.mark.parametrize(("source", "other"), PAIRS)
def test_results_directly_follow_the_calls_of_their_batch(source: Provider, other: Provider) -> None:
    open_calls: set[str] = set()
    for entry in sent(other, history(source)):
        if entry["role"] == "tool":
            assert entry["tool_call_id"] in open_calls
            open_calls.discard(str(entry["tool_call_id"]))
        else:
            assert open_calls == set()
            open_calls = set(calls_of(entry))


@pytest.mark.parametrize(("source", "other"), PAIRS)
def test_no_two_messages_of_the_user_follow_each_other(source: Provider, other: Provider) -> None:
    stopped = AssistantMessage((), "aborted", "Request was aborted", f"{source.name}/model")
    picture = UserMessage((Text("and this?"), PICTURE))
    more = (user_text("again"), stopped, user_text("once more"), picture, user_text("well?"))
    for messages in (more, (*history(source), *more), (*history(source)[:4], *more)):
        for entries in (sent(other, messages), sent(other, to_text_history(messages))):
            roles = [str(entry["role"]) for entry in entries]
            assert ("user", "user") not in itertools.pairwise(roles)
            assert [word for word in ("again", "once more", "and this?", "well?") if word not in text_in(entries)] == []


def test_messages_in_a_row_are_joined_with_their_pictures() -> None:
    messages = (user_text("one"), user_text("two"), UserMessage((Text("three"), PICTURE)), user_text("four"))
    row = ROWS[0]
    assert sent(row, messages[:2])[1:] == [{"role": "user", "content": "one\n\ntwo"}]
    picture: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    texts = [{"type": "text", "text": text} for text in ("one\n\ntwo", "three", "four")]
    assert sent(row, messages)[1:] == [{"role": "user", "content": [*texts[:2], picture, texts[2]]}]


@pytest.mark.parametrize(("source", "other"), PAIRS)
def test_no_text_is_lost_and_signatures_go_to_no_other_model(source: Provider, other: Provider) -> None:
    text = text_in(sent(other, history(source)))
    assert [
        word for word in ("what is it?", "Looking.", "a b", "a cat", "half a th", "go on") if word not in text
    ] == []
    assert text.count("data:image/png") == 2
    assert "the connection broke off" not in text
    assert "PROOF" not in text
    assert ("I look." in text) == bool(other.reasoning_field)


@pytest.mark.parametrize("source", EVERY, ids=lambda row: row.name)
def test_anthropic_gets_turns_that_alternate_with_each_result_right_after_its_call(source: Provider) -> None:
    request = ModelRequest("anthropic/model", "Be brief.", history(source))
    turns = messages_with_marks(request, ANTHROPIC, thinks=True)
    text = msgspec.json.encode(turns).decode()
    roles, contents = zip(*((turn["role"], blocks_of(turn)) for turn in entries_of(turns)), strict=True)
    assert roles == ("user", "assistant") * (len(roles) // 2) + ("user",)
    for role, blocks, answer in zip(roles, contents, contents[1:], strict=False):
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        result_ids = [block["tool_use_id"] for block in answer if block["type"] == "tool_result"]
        assert sorted(map(str, calls)) == sorted(map(str, result_ids)) if role == "assistant" else calls == []
    assert [
        word for word in ("what is it?", "Looking.", "a b", "a cat", "half a th", "go on") if word not in text
    ] == []
    assert (text.count("image/png"), text.count("cache_control"), "broke off" in text) == (2, 2, False)
    is_own = source is ANTHROPIC
    assert ("PROOF" in text, "I look." in text, "Again." in text) == (is_own, is_own, False)


def blocks_of(turn: JsonObject) -> list[JsonObject]:
    return msgspec.convert(turn["content"], list[JsonObject])


def test_deepseek_gets_its_required_field_with_calls_of_other_models() -> None:
    row = next(row for row in ROWS if row.name == "deepseek")
    call = ToolCall("call_1", "shell", {})
    reply = AssistantMessage((call,), "tool_use", model="openai/x")
    (entry, _) = sent(row, (reply, ToolResultMessage("call_1", "shell", ())))[1:]
    assert entry["reasoning_content"] == ""


def test_invented_results_are_not_sent_as_reasoning_to_other_models() -> None:
    row = next(row for row in ROWS if row.name == "deepseek")
    call = ToolCall("call_1", "shell", {})
    reply = AssistantMessage((Thinking("I look."), call, Thinking("<observation>lies")), "tool_use", model="ollama/x")
    (entry, _) = sent(row, (reply, ToolResultMessage("call_1", "shell", ())))[1:]
    assert entry["reasoning_content"] == "I look."


def test_model_without_image_input_is_told_that_there_was_a_picture() -> None:
    row = next(row for row in ROWS if row.name == "deepseek")
    request = ModelRequest("deepseek/deepseek-v4-pro", "", (UserMessage((Text("what is it?"), PICTURE)),))
    assert decoded(chat_messages(request, row, BeginningCache())) == [
        {"role": "user", "content": "what is it?\n\n[A picture stood here, which this model cannot see.]"}
    ]


def test_result_without_its_call_is_sent_as_text() -> None:
    messages = (ToolResultMessage("call_1", "shell", (Text("a b"),)), user_text("and?"))
    (first,) = sent(ROWS[1], messages)[1:]
    assert first == {
        "role": "user",
        "content": "Result of an earlier call of shell:\n<tool_output>\na b\n</tool_output>\n\nand?",
    }


def test_ids_stay_the_same_from_turn_to_turn_so_that_the_prompt_can_be_cached() -> None:
    for source, other in itertools.product(ROWS, repeat=2):
        messages = history(source)
        cache: BeginningCache[ConvertedMessages] = BeginningCache()
        before: list[JsonObject] = []
        for length in (4, 7, 10, 12):
            request = ModelRequest(f"{other.name}/model", "", messages[:length])
            now = decoded(chat_messages(request, other, cache))
            assert now[: len(before)] == before
            before = now


def _is_of(call_id: str, own: set[str]) -> bool:
    return any(call_id.startswith(own_id) for own_id in own)

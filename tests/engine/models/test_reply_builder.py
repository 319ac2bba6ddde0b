"""Building replies from deltas: tool calls by id, reasoning, think tags."""

import time

import pytest

from errand.engine.core.messages import AssistantContent, Text, Thinking, ToolCall
from errand.engine.models.base import BlockDelta, ModelEvent, ReplyEnd
from errand.engine.models.reply.builder import ReplyBuilder, ThinkTagSplitter
from errand.engine.models.reply.content import ReplyLimits
from errand.text.redaction import Redactor


def content(assembly: ReplyBuilder) -> tuple[AssistantContent, ...]:
    last = assembly.end("stop")[-1]
    assert isinstance(last, ReplyEnd)
    return last.message.content


def test_deltas_without_an_id_belong_to_the_call_of_their_index() -> None:
    assembly = ReplyBuilder("m/x")
    assembly.tool_call(0, "a", "shell", "")
    assembly.tool_call(1, "b", "code", '{"path"')
    assembly.tool_call(0, "", "", '{"command": "ls"}')
    assembly.tool_call(1, "", "", ': "x"}')
    assert content(assembly) == (ToolCall("a", "shell", {"command": "ls"}), ToolCall("b", "code", {"path": "x"}))


def test_id_repeated_in_each_delta_is_one_call() -> None:
    assembly = ReplyBuilder("m/x")
    for piece in ('{"a"', ": 1", "}"):
        assembly.tool_call(0, "same", "shell", piece)
    assert content(assembly) == (ToolCall("same", "shell", {"a": 1}),)


def test_a_new_id_under_the_same_index_is_a_new_call() -> None:
    assembly = ReplyBuilder("m/x")
    assembly.tool_call(0, "a", "shell", '{"n": 1}')
    assembly.tool_call(0, "b", "shell", '{"n": 2}')
    assembly.tool_call(0, "", "", "")
    assert content(assembly) == (ToolCall("a", "shell", {"n": 1}), ToolCall("b", "shell", {"n": 2}))


def test_calls_without_ids_get_generated_ones() -> None:
    assembly = ReplyBuilder("m/x")
    assembly.tool_call(0, "", "shell", '{"n": 1}')
    assembly.tool_call(0, "", "shell", '{"n": 2}')
    assembly.tool_call(None, "", "shell", '{"n": 3}')
    calls = [block for block in content(assembly) if isinstance(block, ToolCall)]
    assert [call.arguments for call in calls] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert len({call.id for call in calls}) == 3
    assert all(call.id for call in calls)


def test_two_calls_with_one_id_are_distinguished() -> None:
    assembly = ReplyBuilder("m/x")
    assembly.tool_call(0, "same", "shell", "{}")
    assembly.tool_call(1, "same", "code", "{}")
    calls = [block for block in content(assembly) if isinstance(block, ToolCall)]
    assert [call.name for call in calls] == ["shell", "code"]
    assert calls[0].id != calls[1].id


@pytest.mark.parametrize(
    ("raw", "call"),
    [
        ("", ToolCall("a", "t", {})),
        ("null", ToolCall("a", "t", {})),
        ('{"x": "\\u00e9"}', ToolCall("a", "t", {"x": "é"})),
        ('"text"', ToolCall("a", "t", {}, '"text"')),
        ('{"x": 1', ToolCall("a", "t", {}, '{"x": 1')),
        ("[" * 5000, ToolCall("a", "t", {}, "[" * 5000)),
        ('{"x": "\ud800"}', ToolCall("a", "t", {}, '{"x": "\ud800"}')),
    ],
    ids=["empty", "null", "object", "string", "cut", "deep", "surrogate"],
)
def test_arguments_are_a_json_object_or_marked_invalid(raw: str, call: ToolCall) -> None:
    assembly = ReplyBuilder("m/x")
    assembly.tool_call(0, "a", "t", raw)
    assert content(assembly) == (call,)


def test_text_and_thinking_become_blocks_in_the_order_they_came() -> None:
    assembly = ReplyBuilder("m/x")
    assembly.thinking("hm")
    assembly.text("so ")
    assembly.text("it is")
    assembly.thinking("wait", "signed")
    assembly.text("no")
    assert content(assembly) == (Thinking("hm"), Text("so it is"), Thinking("wait", "signed"), Text("no"))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>why</think>Because.", (Thinking("why"), Text("Because."))),
        ("\n<think>\nwhy\n</think>\n\nBecause.", (Thinking("why\n"), Text("Because."))),
        ("<think>\n\n</think>\n\nBecause.", (Text("Because."),)),
        ("<think>one</think><think>two</think>x", (Thinking("onetwo"), Text("x"))),
        ("<think>never ends < </thin", (Thinking("never ends < </thin"),)),
        ("Write <think> first.", (Text("Write <think> first."),)),
        ("a < b and <thinking>", (Text("a < b and <thinking>"),)),
        ("<thi", (Text("<thi"),)),
        ("  plain", (Text("  plain"),)),
    ],
)
def test_think_tags_are_found_at_any_chunk_boundaries(
    text: str, expected: tuple[AssistantContent, ...], length: int
) -> None:
    assembly = ReplyBuilder("m/x")
    events: list[ModelEvent] = []
    for at in range(0, len(text), length):
        events += assembly.text(text[at : at + length])
    events += assembly.end("stop")
    last = events[-1]
    assert isinstance(last, ReplyEnd)
    assert last.message.content == expected
    deltas = "".join(event.delta for event in events if isinstance(event, BlockDelta))
    assert deltas == "".join(block.text for block in expected if isinstance(block, Text | Thinking))


def test_plain_text_is_not_buffered() -> None:
    tags = ThinkTagSplitter()
    assert tags.feed("Hello") == [("text", "Hello")]
    assert tags.feed(" <think>") == [("text", " <think>")]


def test_an_aborted_reply_keeps_its_open_calls_as_invalid() -> None:
    assembly = ReplyBuilder("m/x")
    assembly.text("now")
    assembly.tool_call(0, "a", "shell", '{"command": "rm')
    message = assembly.abort().message
    assert message.content == (Text("now"), ToolCall("a", "shell", {}, '{"command": "rm'))
    assert (message.stop_reason, message.error) == ("aborted", "Request was aborted")


@pytest.mark.parametrize("field", ["text", "thinking", "arguments"])
def test_text_beyond_the_limits_of_a_reply_is_not_searched_for_keys(field: str) -> None:
    redactor = Redactor(*(f"sk-planted-0123456789{number}" for number in range(5)))
    assembly = ReplyBuilder("m", ReplyLimits(text=1_000, thinking=1_000, call_arguments=1_000), redactor)
    begins_keys = "%73%6b%2d" * 430_000
    began = time.process_time()
    match field:
        case "text":
            assembly.text(begins_keys)
        case "thinking":
            assembly.thinking(begins_keys)
        case _:
            assembly.tool_call(0, "call_1", "shell", begins_keys)
    assert assembly.limit_error and time.process_time() - began < 5

"""Each field beside text, calls and errors with each odd value: the reply stays the same, in all three interfaces."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from errand.engine.core.messages import AssistantMessage
from errand.engine.models.anthropic.stream import MessageReader
from errand.engine.models.base import ReplyEnd
from errand.engine.models.http_model import ReplyReader
from errand.engine.models.http_stream import EventStream
from errand.engine.models.openai.responses_stream import ResponseReader
from errand.engine.models.openai.stream import ChunkReader
from errand.engine.models.reply.builder import ReplyBuilder
from errand.protocol.base import JsonValue

FOLDER = Path(__file__).parent / "streams"
ODD: tuple[JsonValue, ...] = (
    *(None, False, True, 0, 1, -1, 2.5, "", "x", "null", "0"),
    *([], [None], ["x"], [1], [[]], [{}], {}, {"a": 1}, {"text": None}),
)
# What a reply consists of, and what says where it belongs.
ESSENTIAL = frozenset(
    [
        "content",
        "text",
        "thinking",
        "signature",
        "reasoning",
        "reasoning_content",
        "delta",
        "deltas",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "choices",
        "type",
        "content_block",
        "input",
        "partial_json",
        "item",
        "response",
        "error",
        "message",
        "index",
        "output_index",
        "call_id",
        "id",
        "finish_reason",
        "output",
        "summary",
        "encrypted_content",
        "status",
        "stop_reason",
        "incomplete_details",
        "refusal",
        "part",
        "summary_index",
    ]
)
STREAMS: dict[str, Callable[[ReplyBuilder, str], ReplyReader]] = {
    "openai_parallel_tools": ChunkReader,
    "openrouter_reasoning_tools": ChunkReader,
    "anthropic_thinking_tools": MessageReader,
    "openai_responses_reasoning": ResponseReader,
}


def events_of(name: str) -> list[JsonValue]:
    stream = EventStream()
    body = (FOLDER / f"{name}.sse").read_bytes()
    events = [*stream.feed(body), *stream.finish()]
    return [json.loads(event.data) for event in events if event.data.startswith(b"{")]


def variants(value: JsonValue) -> Iterator[JsonValue]:
    """Copies of the value, each with another side field changed to another odd value."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in ESSENTIAL:
                yield from (value | {name: odd} for odd in ODD)
            yield from (value | {name: variant} for variant in variants(part))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from ([*value[:at], variant, *value[at + 1 :]] for variant in variants(part))


def message_of(name: str, events: list[JsonValue]) -> AssistantMessage:
    reader = STREAMS[name](ReplyBuilder("any/model"), "Test")
    for event in events:
        reader.read(json.dumps(event).encode())
    end = reader.end()[-1]
    assert isinstance(end, ReplyEnd)
    return end.message


@pytest.mark.parametrize("name", STREAMS)
def test_a_side_field_with_any_value_changes_nothing_in_a_reply(name: str) -> None:
    events = events_of(name)
    reference = message_of(name, events)
    changed = 0
    for at, event in enumerate(events):
        for variant in variants(event):
            message = message_of(name, [*events[:at], variant, *events[at + 1 :]])
            assert (message.content, message.stop_reason) == (reference.content, reference.stop_reason), json.dumps(
                variant
            )
            changed += 1
    assert changed > 100

"""Documented stream formats of providers: complete or split anywhere, each yields the same message."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from errand.engine.core.messages import AssistantContent, AssistantMessage, StopReason, Text, Thinking, ToolCall, Usage
from errand.engine.models.anthropic.messages_api import MessagesApi
from errand.engine.models.anthropic.stream import MessageReader
from errand.engine.models.base import ChatModel, ModelEvent, ReplyEnd
from errand.engine.models.catalog.providers import find
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.http_stream import EventStream, ServerEvent
from errand.engine.models.litellm.model import LiteLLMModel
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.openai.responses_api import ResponsesApi, reasons
from errand.engine.models.openai.responses_stream import ResponseReader
from errand.engine.models.openai.stream import ChunkReader
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.reply.builder import ReplyBuilder
from tests.engine.models.providers import ONCE, stored_key
from tests.support.model_replies import final, request_for
from tests.support.provider_servers import StreamPlayer
from tests.support.warm_library import warm_process

FOLDER = Path(__file__).parent / "streams"


@dataclass(frozen=True, slots=True)
class Stream:
    """A file and its content. A cost is added if the stream reports it or, through the library, names the model."""

    name: str
    model: str
    content: tuple[AssistantContent, ...]
    usage: Usage
    stop_reason: StopReason = "tool_use"

    @property
    def message(self) -> AssistantMessage:
        return AssistantMessage(self.content, self.stop_reason, None, self.model, self.usage)

    @property
    def body(self) -> bytes:
        return (FOLDER / f"{self.name}.sse").read_bytes()


FAST = (
    Stream(
        "openai_parallel_tools",
        "openai/any",
        (
            Text("Ich prüfe beide – Städte 🌤️."),
            ToolCall("call_DdmO9pD3xa9XTPNJ32zg2hcA", "get_weather", {"city": "Zürich"}),
            ToolCall("call_ABo5JUvbFx0iuwHdsCdXMZQ1", "get_weather", {"city": "Oslo", "days": 3}),
        ),
        Usage(82, 41, cache_read_tokens=64),
    ),
    Stream("openai_refusal", "openai/any", (Text("I'm sorry, but I can't help with that."),), Usage(40, 11), "stop"),
    Stream("openai_length", "openai/any", (Text("One, two, thr"),), Usage(9, 5), "length"),
    Stream(
        "deepseek_reasoning",
        "deepseek/any",
        (Thinking("9.11 has two decimals; 9.8 = 9.80."), Text("9.8 is greater.")),
        Usage(18, 30, cache_read_tokens=12),
        "stop",
    ),
    Stream(
        "openrouter_reasoning_tools",
        "openrouter/anthropic/any",
        (
            Thinking("The user wants a listing."),
            Text("I list the files."),
            ToolCall("toolu_01A09q90qw90lq917835lq9", "shell", {"command": "ls -la"}),
        ),
        Usage(410, 52, cache_read_tokens=300, cost_usd=0.00201),
    ),
    Stream(
        "ollama_index_zero",
        "ollama/any",
        (
            Thinking("Two cities, two calls."),
            ToolCall("call_8qkg4k1f", "get_weather", {"city": "Toronto"}),
            ToolCall("call_x2v0h9ne", "get_weather", {"city": "Paris"}),
        ),
        Usage(166, 54),
    ),
    Stream(
        "llama_cpp_tools",
        "llama_cpp/any",
        (
            Thinking("Look first."),
            Text("I look."),
            ToolCall("tC1kx0wWJ3mBvq7Zr2Yt5uQ8sE4nLd6f", "shell", {"command": "find . -name '*.py'"}),
        ),
        Usage(211, 37),
    ),
    Stream(
        "mistral_thinking_parts",
        "mistral/any",
        (Thinking("Adding two and two."), Text("Four.")),
        Usage(12, 18),
        "stop",
    ),
)
MESSAGES = (
    Stream(
        "anthropic_thinking_tools",
        "anthropic/any",
        (
            Thinking("The weather tool needs a city.", "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"),
            Text("Okay, let's check São Paulo and Oslo:"),
            ToolCall("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", {"city": "São Paulo"}),
            ToolCall("toolu_01BQ9LwY2mDz5kd2qvNcT8Xe", "get_weather", {"city": "Oslo"}),
        ),
        Usage(472, 89, cache_read_tokens=400),
    ),
)
RESPONSES = (
    Stream(
        "openai_responses_reasoning",
        "openai/o9",
        (
            Thinking(
                "**Looking around**\n\nI list it.\n\n**Then**\n\nI look where I am.",
                "reasoning:rs_1:gAAAAABpF-9zbM_w==",
            ),
            Text("Looking."),
            ToolCall("call_1", "shell", {"command": "ls"}),
            ToolCall("call_2", "shell", {"command": "pwd"}),
        ),
        Usage(1_200, 300, cache_read_tokens=1_024),
    ),
)
LIBRARY = (
    Stream(
        "gemini_thought_tools",
        "gemini/any",
        (
            Thinking("**Checking**\n\nA city is given."),
            Text("Ich schaue nach: Zürich."),
            ToolCall("made up", "get_weather", {"city": "Zürich"}),
            ToolCall("made up", "get_weather", {"city": "Oslo"}),
        ),
        Usage(58, 45, cache_read_tokens=40),
    ),
)


@asynccontextmanager
async def way_to(model_id: str, url: str) -> AsyncGenerator[ChatModel]:
    row = find(model_id.partition("/")[0])
    assert row is not None
    if row.kind == "litellm":
        process = warm_process()
        provider = LiteLLMModel(ModelEndpoint(row, url, stored_key), process)
        yield RecoveringModel(ModelSource(provider), ONCE)
        await process.close()
    else:
        connections = HttpPool()
        form = MessagesApi if row.kind == "anthropic" else ResponsesApi if reasons(model_id) else ChatCompletions
        provider = HttpModel(ModelEndpoint(row, url, stored_key), form, connections)
        yield RecoveringModel(ModelSource(provider), ONCE)
        await connections.close()


async def played(name: str, model_id: str, piece: int) -> AssistantMessage:
    body = (FOLDER / f"{name}.sse").read_bytes()
    async with StreamPlayer(body, piece) as player, way_to(model_id, player.url) as model:
        return without_side_fields(await final(model, request_for(model_id)))


def without_side_fields(message: AssistantMessage) -> AssistantMessage:
    """Remove the stored side fields: they name the port of the server."""
    blocks = (
        Thinking(block.text) if isinstance(block, Thinking) and block.signature.startswith("chat:") else block
        for block in message.content
    )
    return replace(message, content=tuple(blocks))


def without_made_up_ids(message: AssistantMessage) -> AssistantMessage:
    """Gemini's calls have no ids: their replacements differ each time."""
    ids = {call.id for call in message.tool_calls}
    assert len(ids) == len(message.tool_calls)
    blocks = (replace(block, id="made up") if isinstance(block, ToolCall) else block for block in message.content)
    return replace(message, content=tuple(blocks))


@pytest.mark.parametrize("piece", [0, 1, 7], ids=["whole", "by the byte", "by seven"])
@pytest.mark.parametrize("stream", [*FAST, *MESSAGES, *RESPONSES, *LIBRARY], ids=lambda stream: stream.name)
async def test_documented_streams_are_read_completely(stream: Stream, piece: int) -> None:
    message = await played(stream.name, stream.model, piece)
    assert (without_made_up_ids(message) if stream.name.startswith("gemini") else message) == stream.message


@pytest.mark.parametrize("stream", [*FAST, *MESSAGES, *RESPONSES, *LIBRARY], ids=lambda stream: stream.name)
async def test_text_tools_do_not_change_a_stream_without_calls_as_text(stream: Stream) -> None:
    async with StreamPlayer(stream.body) as player, way_to(stream.model, player.url) as model:
        message = await final(model, request_for(f"react/{stream.model}"))
    assert message.model == f"react/{stream.model}"
    message = replace(message, model=stream.model)
    assert (without_made_up_ids(message) if stream.name.startswith("gemini") else message) == stream.message


@pytest.mark.parametrize("stream", [*FAST, *MESSAGES, *RESPONSES], ids=lambda stream: stream.name)
def test_stream_split_at_any_byte_gives_the_same_events(stream: Stream) -> None:
    body = stream.body
    kind = MessageReader if stream in MESSAGES else ResponseReader if stream in RESPONSES else ChunkReader
    reader = kind(ReplyBuilder(stream.model), "Test")
    expected_events = _events_of(body)
    for event in expected_events:
        reader.read(event.data, event.name)
    assert last_of(reader.end()) == stream.message
    for cut in range(len(body)):
        assert _events_of(body[:cut], body[cut:]) == expected_events


async def test_error_in_the_middle_of_a_stream_keeps_received_content() -> None:
    message = await played("anthropic_overloaded", "anthropic/any", 0)
    assert (message.text, message.stop_reason) == ("Hello", "error")
    assert "verloaded" in (message.error or "")


def test_every_file_is_played_and_named_in_the_readme() -> None:
    files = {file.stem for file in FOLDER.glob("*.sse")}
    assert files == {stream.name for stream in (*FAST, *MESSAGES, *RESPONSES, *LIBRARY)} | {"anthropic_overloaded"}
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert [name for name in files if f"`{name}`" not in readme] == []


def _events_of(*parts: bytes) -> list[ServerEvent]:
    stream = EventStream()
    return [*(event for part in parts for event in stream.feed(part)), *stream.finish()]


def last_of(events: list[ModelEvent]) -> AssistantMessage:
    last = events[-1]
    assert isinstance(last, ReplyEnd)
    return last.message

"""The contract of all providers, with one suite: three formats over aiohttp, the library, a script, a proxy, XML."""

import asyncio
import itertools
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantContent, AssistantMessage, Text, Thinking, ToolCall
from errand.engine.models.base import BlockDelta, BlockEnd, BlockStart, ModelEvent, ReplyEnd, ReplyStart
from tests.engine.models.providers import OpenProvider, anthropic, fast, library, proxy, react, responses, scripted
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import collect, final, request_for
from tests.support.model_server import Call, Reply

NATIVE = {
    "openai_compatible": fast,
    "responses": responses,
    "anthropic": anthropic,
    "litellm": library,
    "scripted": scripted,
    "proxy": proxy,
}
ALL = NATIVE | {"react": react}


@pytest.fixture(params=[*ALL.values()], ids=[*ALL])
def open_provider(request: pytest.FixtureRequest) -> OpenProvider:
    return request.param


@pytest.fixture(params=[*NATIVE.values()], ids=[*NATIVE])
def native_provider(request: pytest.FixtureRequest) -> OpenProvider:
    """A provider that supports several calls in a reply, with their ids."""
    return request.param


WHOLE = Reply(
    thinking="First the tests, then the fix.",
    text="I will run the tests now — één moment. 🙂",
    calls=(Call("shell", {"command": "ls"}),),
)
TWO_CALLS = Reply(text="Both.", calls=(Call("shell", {"command": "pytest -q"}), Call("shell", {"command": "ls"})))


async def test_a_reply_arrives_whole(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([WHOLE], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert tuple(map(_unsigned, _numbered(message))) == (
        Thinking("First the tests, then the fix."),
        Text("I will run the tests now — één moment. 🙂"),
        ToolCall("call 2", "shell", {"command": "ls"}),
    )
    assert (message.stop_reason, message.error, message.model) == ("tool_use", None, provider.model_id)
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 0


async def test_events_come_in_order_and_their_deltas_add_up(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([WHOLE], tmp_path) as provider:
        events = await collect(provider.model, request_for(provider.model_id))
    assert isinstance(events[0], ReplyStart)
    assert isinstance(events[-1], ReplyEnd)
    assert [event for event in events if isinstance(event, ReplyStart | ReplyEnd)] == [events[0], events[-1]]
    starts = [(event.kind, event.content_index) for event in events if isinstance(event, BlockStart)]
    assert starts == [("thinking", 0), ("text", 1), ("tool_call", 2)]
    ends = [(event.kind, event.content_index) for event in events if isinstance(event, BlockEnd)]
    assert ends == starts
    assert _joined(events, 0) == WHOLE.thinking
    assert _joined(events, 1) == WHOLE.text
    assert _joined(events, 2) == '{"command":"ls"}'


async def test_two_calls_arrive_separately_under_their_ids(native_provider: OpenProvider, tmp_path: Path) -> None:
    async with native_provider([TWO_CALLS], tmp_path) as provider:
        events = await collect(provider.model, request_for(provider.model_id))
    last = events[-1]
    assert isinstance(last, ReplyEnd)
    assert last.message.content == (
        Text("Both."),
        ToolCall("call_0", "shell", {"command": "pytest -q"}),
        ToolCall("call_1", "shell", {"command": "ls"}),
    )
    assert (_joined(events, 1), _joined(events, 2)) == ('{"command":"pytest -q"}', '{"command":"ls"}')


async def test_the_partial_message_grows_with_each_delta(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([Reply(text="one two three four", piece_length=4)], tmp_path) as provider:
        events = await collect(provider.model, request_for(provider.model_id))
    texts = [event.partial.text for event in events if isinstance(event, BlockDelta)]
    assert texts[-1] == "one two three four"
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))


async def test_a_reply_of_text_alone_stops_with_stop(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([Reply(text="done")], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.text, message.stop_reason, message.error) == ("done", "stop", None)


async def test_a_refusal_is_a_message_and_not_an_exception(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([Reply(status=400, error="this is not possible")], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert message.stop_reason == "error"
    assert "this is not possible" in (message.error or "")


async def test_cancel_keeps_received_content_and_ends_the_reply_as_aborted(
    open_provider: OpenProvider, tmp_path: Path
) -> None:
    cancel = CancelSignal()
    async with open_provider([Reply(text="abcdefgh" * 50, piece_length=8, stall_after=4)], tmp_path) as provider:
        seen = ""
        last: ModelEvent | None = None
        async with (
            asyncio.timeout(WAIT_LIMIT_S),
            aclosing(provider.model.stream(request_for(provider.model_id), cancel)) as events,
        ):
            async for last in events:
                if isinstance(last, BlockDelta):
                    seen += last.delta
                    if len(seen) >= 16:
                        cancel.set()
        if provider.server is not None:
            async with asyncio.timeout(WAIT_LIMIT_S):
                await provider.server.requests[0].gone.wait()
    assert isinstance(last, ReplyEnd)
    assert (last.message.stop_reason, last.message.error) == ("aborted", "Request was aborted")
    assert last.message.text.startswith("abcdefghabcdefgh")
    assert len(last.message.text) < 400


async def test_signal_set_before_the_call_prevents_the_request(open_provider: OpenProvider, tmp_path: Path) -> None:
    cancel = CancelSignal()
    cancel.set()
    async with open_provider([Reply(text="never")], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id), cancel)
        assert provider.server is None or provider.server.requests == []
    assert (message.stop_reason, message.content) == ("aborted", ())


async def test_closing_the_model_ends_its_streams_as_aborted(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([Reply(text="abcdefgh" * 500, stall_after=3)], tmp_path) as provider:
        begun = asyncio.Event()

        async def read() -> AssistantMessage:
            message = AssistantMessage()
            async with aclosing(provider.model.stream(request_for(provider.model_id), CancelSignal())) as events:
                async for event in events:
                    begun.set()
                    if isinstance(event, ReplyEnd):
                        message = event.message
            return message

        reading = asyncio.create_task(read())
        await begun.wait()
        await provider.model.close()
        async with asyncio.timeout(WAIT_LIMIT_S):
            message = await reading
    assert message.stop_reason == "aborted"


@pytest.mark.parametrize("sent", [5, 600])
async def test_leaving_a_stream_early_closes_its_request(
    open_provider: OpenProvider, tmp_path: Path, sent: int
) -> None:
    """Even if more data has arrived than was read."""
    async with open_provider([Reply(text="abcdefgh" * 700, stall_after=sent)], tmp_path) as provider:
        async with aclosing(provider.model.stream(request_for(provider.model_id), CancelSignal())) as events:
            async for event in events:
                if isinstance(event, BlockDelta):
                    break
        if provider.server is not None:
            async with asyncio.timeout(WAIT_LIMIT_S):
                await provider.server.requests[0].gone.wait()


async def test_twenty_simultaneous_streams_do_not_mix(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([Reply(text="same for all", piece_length=2)] * 20, tmp_path) as provider:
        async with asyncio.timeout(WAIT_LIMIT_S):
            replies = await asyncio.gather(*(final(provider.model, request_for(provider.model_id)) for _ in range(20)))
    assert {reply.text for reply in replies} == {"same for all"}


def _numbered(message: AssistantMessage) -> tuple[AssistantContent, ...]:
    """The content with calls named by index, since not every provider carries ids."""
    blocks = enumerate(message.content)
    return tuple(replace(block, id=f"call {at}") if isinstance(block, ToolCall) else block for at, block in blocks)


def _joined(events: list[ModelEvent], index: int) -> str:
    return "".join(event.delta for event in events if isinstance(event, BlockDelta) and event.content_index == index)


def _unsigned(block: AssistantContent) -> AssistantContent:
    """Thoughts that came with a call name their server."""
    return Thinking(block.text) if isinstance(block, Thinking) else block

"""The Agent: guards, state, queues, listeners, aborting and cancelling."""

import asyncio

import pytest

from errand.engine.agent.loop.agent import Agent, AgentOptions
from errand.engine.agent.loop.events import AgentEnd, AgentEvent, MessageEnd, MessageUpdate, ToolExecutionStart
from errand.engine.agent.loop.hooks import FinishedTurn, Hooks, NextTurn
from errand.engine.core.cancel import CancelSignal, stopped_by
from errand.engine.core.errors import AgentBusy, IllegalMove
from errand.engine.core.messages import AssistantMessage, CustomMessage, Text, ToolCall, user_text
from errand.engine.models.base import BlockDelta, ModelOptions, ReplyEnd, ReplyStart, Retry
from tests.support.loop_parts import EchoTool, OpenStream, StuckTool, WrittenStream, calling, reply


async def test_a_second_prompt_or_continue_during_a_run_is_refused_and_the_run_goes_on() -> None:
    stream = OpenStream()
    agent = Agent(AgentOptions(stream=stream, model="test/model"))
    running = asyncio.create_task(agent.prompt("one"))
    await stream.started.wait()

    with pytest.raises(AgentBusy, match=r"Use steer\(\) or follow_up\(\) to queue messages, or wait for completion\."):
        await agent.prompt("two")
    with pytest.raises(AgentBusy, match="Wait for completion before continuing"):
        await agent.continue_()
    with pytest.raises(AgentBusy, match="Wait for completion before resetting"):
        agent.reset()

    agent.abort(stopped_by("enough"))
    agent.abort(stopped_by("again"))
    await running
    assert stream.cancel is not None
    assert stream.cancel.cause == stopped_by("enough")
    assert agent.state.error == "Request was aborted"
    assert agent.state.messages[-1] == AssistantMessage((Text("so far"),), "aborted", "Request was aborted")


async def test_continue_needs_something_to_continue_from() -> None:
    agent = Agent(AgentOptions(stream=WrittenStream(), model="test/model"))

    with pytest.raises(IllegalMove, match=r"^No messages to continue from$"):
        await agent.continue_()
    agent.set_messages([user_text("q"), AssistantMessage((Text("a"),))])
    with pytest.raises(IllegalMove, match=r"^Cannot continue from message role: assistant$"):
        await agent.continue_()


async def test_continue_goes_on_from_a_message_of_a_custom_role() -> None:
    stream = WrittenStream(reply("ok"))
    agent = Agent(AgentOptions(stream=stream, model="test/model", messages=(user_text("q"), CustomMessage("note"))))

    await agent.continue_()

    assert stream.requests[0].messages == (user_text("q"),)
    assert agent.state.messages[-1] == AssistantMessage((Text("ok"),))


async def test_options_of_a_run_reach_the_model() -> None:
    stream = WrittenStream(reply("ok"))

    async def key(model: str) -> str | None:
        return f"key of {model}"

    agent = Agent(
        AgentOptions(
            stream=stream,
            model="test/model",
            system_prompt="Be brief.",
            tools=(EchoTool(),),
            thinking_level="xhigh",
            temperature=0.5,
            max_tokens=10,
            session_id="s1",
            hooks=Hooks(get_api_key=key),
        )
    )

    await agent.prompt([user_text("one"), user_text("two")])

    request = stream.requests[0]
    assert request.messages == (user_text("one"), user_text("two"))
    assert (request.model, request.system_prompt) == ("test/model", "Be brief.")
    assert [tool.name for tool in request.tools] == ["echo"]
    assert request.options == ModelOptions("key of test/model", "xhigh", 0.5, 10, "s1")


async def test_settings_between_runs_apply_to_the_next_run() -> None:
    stream = WrittenStream(reply("ok"))
    agent = Agent(AgentOptions(stream=stream, model="test/model"))

    agent.set_model("test/other")
    agent.set_thinking_level("low")
    agent.set_system_prompt("New.")
    agent.set_tools([EchoTool()])
    await agent.prompt("go")

    request = stream.requests[0]
    assert (request.model, request.system_prompt, request.options.thinking_level) == ("test/other", "New.", "low")
    assert [tool.name for tool in request.tools] == ["echo"]


async def test_prepare_next_turn_may_change_model_thinking_and_context() -> None:
    stream = WrittenStream(calling("echo"), reply("ok"))

    async def prepare(turn: FinishedTurn, cancel: CancelSignal) -> NextTurn:
        return NextTurn(messages=(user_text("summary"),), model="test/small", thinking_level="off")

    agent = Agent(
        AgentOptions(
            stream=stream,
            model="test/model",
            thinking_level="high",
            tools=(EchoTool(),),
            hooks=Hooks(prepare_next_turn=prepare),
        )
    )
    await agent.prompt("go")

    request = stream.requests[1]
    assert (request.model, request.options.thinking_level) == ("test/small", "off")
    assert request.messages == (user_text("summary"),)
    assert len(agent.state.messages) == 4


async def test_state_is_updated_before_listeners_are_called_and_listeners_are_awaited_in_order() -> None:
    agent = Agent(
        AgentOptions(stream=WrittenStream(calling("echo"), reply("ok"), reply("ok")), model="m", tools=(EchoTool(),))
    )
    heard: list[str] = []

    async def slow(event: AgentEvent) -> None:
        await asyncio.sleep(0)
        match event:
            case ToolExecutionStart(call_id):
                assert agent.state.pending_tool_calls == {call_id}
            case MessageUpdate(message):
                assert agent.state.streaming_message == message
            case MessageEnd(message):
                assert agent.state.messages[-1] == message
                assert agent.state.streaming_message is None
            case AgentEnd():
                assert agent.state.is_streaming
            case _:
                pass
        heard.append("slow")

    async def quick(event: AgentEvent) -> None:
        assert heard[-1] == "slow"
        heard.append("quick")

    agent.subscribe(slow)
    unsubscribe = agent.subscribe(quick)
    await agent.prompt("go")
    assert heard == ["slow", "quick"] * (len(heard) // 2)

    unsubscribe()
    unsubscribe()
    heard.clear()
    agent.set_messages([])
    await asyncio.gather(agent.prompt("again"), agent.wait_for_idle())
    assert set(heard) == {"slow"}


async def test_waiting_for_idle_waits_for_listeners_and_returns_at_once_when_idle() -> None:
    stream = OpenStream()
    agent = Agent(AgentOptions(stream=stream, model="m"))
    may_end, at_end = asyncio.Event(), asyncio.Event()

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, AgentEnd):
            at_end.set()
            await may_end.wait()

    agent.subscribe(listen)
    await agent.wait_for_idle()
    running = asyncio.create_task(agent.prompt("go"))
    await stream.started.wait()
    agent.abort()
    idle = asyncio.create_task(agent.wait_for_idle())
    await at_end.wait()
    assert not idle.done()
    may_end.set()
    await idle
    assert not agent.state.is_streaming
    await running


async def test_queues_can_be_read_and_cleared_and_reset_clears_everything() -> None:
    agent = Agent(AgentOptions(stream=WrittenStream(), model="m", messages=(user_text("q"),)))
    agent.abort()
    agent.steer("S")
    agent.follow_up(user_text("F"))
    assert (agent.queued_steering, agent.queued_follow_ups) == ((user_text("S"),), (user_text("F"),))

    agent.clear_queues(follow_ups=False)
    assert agent.queued_steering == ()
    agent.clear_queues(steering=False)
    agent.steer("S")
    agent.reset()

    assert (agent.queued_steering, agent.queued_follow_ups, agent.state.messages) == ((), (), [])


async def test_the_error_of_a_run_is_cleared_when_the_next_starts() -> None:
    failed = AssistantMessage((), "error", "overloaded")
    agent = Agent(AgentOptions(stream=WrittenStream([ReplyEnd(failed)], reply("ok")), model="m"))

    await agent.prompt("go")
    assert agent.state.error == "overloaded"
    agent.set_messages(agent.state.messages[:-1])
    await agent.continue_()
    assert agent.state.error is None
    assert agent.state.messages == [user_text("go"), AssistantMessage((Text("ok"),))]


async def test_retry_continues_in_the_same_message() -> None:
    void = AssistantMessage((Text("par"),))
    final_message = AssistantMessage((Text("whole"),))
    events = (
        ReplyStart(AssistantMessage()),
        BlockDelta("text", 0, "par", void),
        Retry(1, 3, 0.0, "cut", AssistantMessage()),
        ReplyStart(AssistantMessage()),
        BlockDelta("text", 0, "whole", final_message),
        ReplyEnd(final_message),
    )
    agent = Agent(AgentOptions(stream=WrittenStream(events), model="m"))
    seen: list[str] = []

    async def listen(event: AgentEvent) -> None:
        seen.append(type(event.event).__name__ if isinstance(event, MessageUpdate) else type(event).__name__)

    agent.subscribe(listen)
    await agent.prompt("go")

    assert seen[4:10] == ["MessageStart", "BlockDelta", "Retry", "BlockDelta", "MessageEnd", "TurnEnd"]
    assert agent.state.messages[-1] == final_message


@pytest.mark.parametrize(
    ("ending", "text"), [((RuntimeError("gone"),), "gone"), ((), "The model's stream ended without a final message")]
)
async def test_broken_stream_keeps_the_content_so_far(ending: tuple[Exception, ...], text: str) -> None:
    start = ReplyStart(AssistantMessage((Text("so far"),)))
    agent = Agent(AgentOptions(stream=WrittenStream((start, *ending)), model="test/model"))
    seen: list[str] = []

    async def listen(event: AgentEvent) -> None:
        seen.append(type(event).__name__)

    agent.subscribe(listen)
    await agent.prompt("go")

    assert seen[4:] == ["MessageStart", "MessageEnd", "TurnEnd", "AgentEnd"]
    last = agent.state.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.text, last.stop_reason) == ("so far", "error")
    assert agent.state.error is not None
    assert agent.state.error.startswith(text)


async def test_invalid_json_arguments_are_reported_to_the_model() -> None:
    stream = WrittenStream(calling("echo", invalid='{"value": '), reply("ok"))
    agent = Agent(AgentOptions(stream=stream, model="m", tools=(EchoTool(),)))

    await agent.prompt("go")

    result = stream.requests[1].messages[-1]
    assert result.role == "tool_result"
    assert result.is_error
    assert result.content[0] == Text(
        'Validation failed for tool "echo":\n  - arguments: not a valid JSON object\n\n'
        'Received arguments:\n{"value": \n\nSend the call again with valid JSON.'
    )


async def test_a_tool_that_is_cancelled_from_inside_is_an_error_result() -> None:
    stream = WrittenStream(calling("stuck", {"how": "cancelled"}), reply("ok"))
    agent = Agent(AgentOptions(stream=stream, model="m", tools=(StuckTool(),)))

    await agent.prompt("go")

    result = agent.state.messages[2]
    assert result.role == "tool_result"
    assert result.content == (Text("Operation aborted"),)
    assert agent.state.messages[-1] == AssistantMessage((Text("ok"),))


async def test_cancelling_the_task_of_a_run_closes_the_stream_and_frees_the_agent() -> None:
    stream = OpenStream()
    agent = Agent(AgentOptions(stream=stream, model="m"))
    running = asyncio.create_task(agent.prompt("go"))
    await stream.started.wait()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert stream.closed.is_set()
    assert stream.cancel is not None
    assert stream.cancel.is_set
    assert not agent.state.is_streaming
    await agent.wait_for_idle()


async def test_cancelling_the_task_of_a_run_ends_every_tool_and_leaves_no_task() -> None:
    message = AssistantMessage((ToolCall("a", "stuck", {}), ToolCall("b", "stuck", {})), "tool_use")
    tool = StuckTool()
    agent = Agent(AgentOptions(stream=WrittenStream([ReplyEnd(message)]), model="m", tools=(tool,)))
    before = asyncio.all_tasks()
    running = asyncio.create_task(agent.prompt("go"))
    while tool.running < 2:
        await tool.changed.wait()
        tool.changed.clear()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert tool.running == 0
    assert asyncio.all_tasks() == before


async def test_cancel_signal_of_the_caller_cancels_the_run() -> None:
    stream = OpenStream()
    agent = Agent(AgentOptions(stream=stream, model="m"))
    cancel = CancelSignal()
    running = asyncio.create_task(agent.prompt("go", cancel))
    await stream.started.wait()

    cancel.set()
    await running

    assert stream.cancel is cancel
    assert agent.state.messages[-1].role == "assistant"


async def test_a_listener_that_raises_fails_the_prompt_and_frees_the_agent() -> None:
    agent = Agent(AgentOptions(stream=WrittenStream(reply("ok")), model="m"))

    async def listen(event: AgentEvent) -> None:
        raise OSError("disk full")

    unsubscribe = agent.subscribe(listen)
    with pytest.raises(OSError, match="disk full"):
        await agent.prompt("go")
    unsubscribe()

    assert not agent.state.is_streaming
    await agent.prompt("again")
    assert agent.state.messages[-1] == AssistantMessage((Text("ok"),))

"""Tool batches of the loop: order, skipping, aborting, terminating, hooks around a call."""

import asyncio

from errand.engine.agent.loop.agent import Agent, AgentOptions
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, ToolCall, ToolResultMessage, text_of
from errand.engine.models.base import ReplyEnd
from errand.engine.tools.base import ExecutionMode, ParallelWhere
from errand.engine.tools.results import OnUpdate, ToolResult, text_result
from errand.protocol.base import JsonObject
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import WrittenStream, call, calls, echo, reply, says, story, told, tool, trace

SKIPPED = "Skipped due to queued user message."
_ACTION: JsonObject = {"type": "object", "properties": {"action": {"type": "string"}}}
ABORTED_TURN = ["turn_start", "assistant aborted:  (Request was aborted)", "turn_end"]


def middle(lines: list[str]) -> list[str]:
    """The events between the first reply that calls tools and the end of its turn."""
    begin = lines.index("assistant tool_use: ") + 1
    return lines[begin : lines.index("turn_end", begin)]


async def test_one_sequential_tool_makes_the_whole_batch_sequential() -> None:
    slow = {**tool("slow", [{"return": "done"}]), "execution_mode": "sequential"}

    lines = await story(
        {"tools": [echo(), slow], "replies": [{"blocks": [call("a"), call("b", "slow"), call("c")]}, says("end")]}
    )

    assert middle(lines) == [
        "start a",
        "end a: a",
        "result a: a",
        "start b",
        "end b: done",
        "result b: done",
        "start c",
        "end c: c",
        "result c: c",
    ]


async def test_parallel_calls_end_in_order_of_completion_and_answer_in_order_of_the_calls() -> None:
    lines = await story(
        {
            "tools": [echo(a=[{"sleep": 30}, {"return": "slow"}])],
            "replies": [calls("a", "b"), says("end")],
        }
    )

    assert middle(lines) == ["start a", "start b", "end b: b", "end a: slow", "result a: slow", "result b: b"]


async def test_steering_skips_the_parallel_calls_that_have_not_started() -> None:
    lines = await story(
        {
            "tools": [echo()],
            "options": {"steering": "skip_remaining"},
            "on_event": [{"event": "tool_execution_start", "nth": 1, "do": [{"steer": "stop"}]}],
            "replies": [calls("a", "b", "c"), says("end")],
        }
    )

    assert middle(lines) == [
        "start a",
        "start b",
        f"fail b: {SKIPPED}",
        "start c",
        f"fail c: {SKIPPED}",
        "end a: a",
        "result a: a",
        f"result b: {SKIPPED}",
        f"result c: {SKIPPED}",
    ]
    assert lines[-6:] == ["turn_end", "turn_start", "user: stop", "assistant stop: end", "turn_end", "agent_end 7"]


async def test_steering_during_a_reply_skips_all_but_the_first_call() -> None:
    reply = {"blocks": [{"text": ["", {"steer": "wait"}]}, call("a"), call("b")]}

    lines = await story({"tools": [echo()], "replies": [reply, says("end")]}, "seed")

    assert middle(lines)[:4] == ["start a", "end a: a", "result a: a", "start b"]
    assert f"fail b: {SKIPPED}" in lines
    assert lines.count("user: wait") == 1


async def test_abort_gives_a_result_to_calls_that_did_not_run() -> None:
    lines = await story(
        {"tools": [echo(a=[{"abort": True}, {"return": "a"}])], "replies": [calls("a", "b"), says("never")]}, "seed"
    )

    assert middle(lines) == [
        "start a",
        "end a: a",
        "result a: a",
        "start b",
        "fail b: Operation aborted",
        "result b: Operation aborted",
    ]
    assert lines[-4:] == [*ABORTED_TURN, "agent_end 5"]


async def test_an_abort_in_a_parallel_batch_lets_running_calls_end_by_themselves() -> None:
    patient = [{"emit": "on"}, {"sleep": 5000, "honour_abort": True}, {"return": "never"}]

    lines = await story(
        {
            "tools": [echo(a=patient, b=patient)],
            "on_event": [{"event": "tool_execution_update", "nth": 2, "do": [{"abort": True}, {"abort": True}]}],
            "replies": [calls("a", "b"), says("never")],
        }
    )

    assert middle(lines)[:4] == ["start a", "start b", "update a: on", "update b: on"]
    assert sorted(middle(lines)[4:6]) == ["fail a: aborted by signal", "fail b: aborted by signal"]
    assert lines[-4:] == [*ABORTED_TURN, "agent_end 5"]


async def test_an_abort_while_calls_are_prepared_runs_none_of_them() -> None:
    lines = await story(
        {
            "tools": [echo()],
            "options": {"before_tool_call": {"b": {"abort": True}}},
            "replies": [calls("a", "b", "c"), says("never")],
        }
    )

    assert middle(lines) == [
        "start a",
        "start b",
        "fail b: Operation aborted",
        "start c",
        "fail c: Operation aborted",
        "fail a: Operation aborted",
        "result a: Operation aborted",
        "result b: Operation aborted",
        "result c: Operation aborted",
    ]


async def test_batch_terminates_only_if_every_result_terminates() -> None:
    end = [{"return": "fin", "terminate": True}]

    lines = await story({"tools": [echo(a=end, b=end)], "replies": [calls("a", "b"), says("never")]})

    assert lines[-2:] == ["turn_end", "agent_end 4"]


async def test_queued_messages_still_run_after_a_batch_that_terminates() -> None:
    end = [{"steer": "S"}, {"follow_up": "F"}, {"return": "fin", "terminate": True}]

    lines = await story({"tools": [echo(a=end)], "replies": [calls("a"), says("one"), says("two")]})

    assert [line for line in lines if line.startswith(("user", "assistant"))] == [
        "user: go",
        "assistant tool_use: ",
        "user: S",
        "assistant stop: one",
        "user: F",
        "assistant stop: two",
    ]


async def test_a_call_that_is_blocked_may_terminate_the_run() -> None:
    blocked = {"a": {"block": True, "reason": "no", "terminate": True}}

    lines = await story(
        {"tools": [echo()], "options": {"before_tool_call": blocked}, "replies": [calls("a"), says("never")]}
    )

    assert lines[-4:] == ["fail a: no", "result a: no", "turn_end", "agent_end 3"]


async def test_hooks_that_raise_become_error_results() -> None:
    options = {"before_tool_call": {"a": {"raise": "before"}}, "after_tool_call": {"b": {"raise": "after"}}}

    lines = await story({"tools": [echo()], "options": options, "replies": [calls("a", "b"), says("end")]})

    assert "fail a: before" in lines
    assert "fail b: after" in lines
    assert lines[-1] == "agent_end 5"


async def test_hooks_are_not_called_for_invalid_calls() -> None:
    options = {"before_tool_call": {"a": {"abort": True}}, "after_tool_call": {"a": {"text": "changed"}}}

    lines = await story(
        {"tools": [echo()], "options": options, "replies": [{"blocks": [call("a", "nope")]}, says("end")]}
    )

    assert "fail a: Tool nope not found" in lines
    assert "assistant stop: end" in lines


async def test_after_hook_replaces_only_the_fields_it_sets() -> None:
    scenario = {
        "tools": [echo(a=[{"return": "secret", "details": {"kept": 1}}])],
        "options": {"after_tool_call": {"a": {"text": "hidden", "is_error": True}}},
        "replies": [calls("a"), says("end")],
    }

    recorded = await trace(scenario)

    assert "fail a: hidden" in told(recorded)
    assert {"kept": 1} in [message.get("details") for message in recorded.final_messages]


async def test_no_call_of_a_reply_that_was_cut_runs() -> None:
    cut = {**calls("a", "b"), "stop": "length"}

    lines = await story({"tools": [echo()], "replies": [cut, says("end")]})

    refusals = [line for line in lines if line.startswith("fail")]
    assert len(refusals) == 2
    assert all("hit the output token limit" in line for line in refusals)
    assert lines[-2:] == ["turn_end", "agent_end 5"]


async def test_updates_after_the_return_are_dropped_and_those_before_come_before_the_end() -> None:
    script = [{"emit": "1"}, {"detach": [{"sleep": 5}, {"emit": "late"}]}, {"emit": "2"}, {"return": "done"}]
    reply = says({"sleep": 20}, "end")

    lines = await story({"tools": [echo(a=script)], "replies": [calls("a"), reply]})

    assert middle(lines) == ["start a", "update a: 1", "update a: 2", "end a: done", "result a: done"]
    assert "update a: late" not in lines


async def test_arguments_are_prepared_before_they_are_checked() -> None:
    renaming = {**echo(), "prepare_arguments": {"rename": {"old": "value"}}}
    renaming["parameters"] = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    reply = {"blocks": [{"tool_call": {"id": "a", "name": "echo", "args": {"old": 5}}}]}

    recorded = await trace({"tools": [renaming], "replies": [reply, says("end")]})

    assert "end a: 5" in told(recorded)
    starts = [event for event in recorded.events if event["type"] == "tool_execution_start"]
    assert starts[0]["args"] == {"old": 5}


async def test_update_is_delivered_before_later_events_of_other_calls() -> None:
    script = [{"emit": "1"}, {"emit": "2"}, {"sleep": 20}, {"return": "late"}]

    lines = await story({"tools": [echo(a=script)], "replies": [calls("a", "b"), says("end")]})

    assert middle(lines)[2:6] == ["update a: 1", "update a: 2", "end b: b", "end a: late"]


async def test_abort_on_an_update_prevents_the_next_call() -> None:
    lines = await story(
        {
            "tools": [echo(a=[{"emit": "1"}, {"return": "a"}])],
            "on_event": [{"event": "tool_execution_update", "nth": 1, "do": [{"abort": True}]}],
            "replies": [calls("a", "b"), says("never")],
        }
    )

    assert "fail b: Operation aborted" in lines
    assert "end a: a" in lines


class _Meeting:
    """A read waits until both reads are under way; a write keeps what a read reports."""

    name = "meeting"
    label = "Meeting"
    description = "Meets."
    parameters = _ACTION
    execution_mode: ExecutionMode | ParallelWhere = ParallelWhere("action", frozenset({"read"}))

    def __init__(self) -> None:
        self.text = "old"
        self.together = asyncio.Barrier(2)

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        match arguments.get("action"):
            case "write":
                await asyncio.sleep(0)
                self.text = "new"
            case "read":
                async with asyncio.timeout(WAIT_LIMIT_S):
                    await self.together.wait()
            case _:
                pass
        return text_result(self.text)


async def _results(*actions: str) -> list[str]:
    calls = tuple(ToolCall(f"c{at}", "meeting", {"action": action}) for at, action in enumerate(actions))
    stream = WrittenStream((ReplyEnd(AssistantMessage(calls, "tool_use")),), reply("end"))
    agent = Agent(AgentOptions(stream=stream, model="m", tools=(_Meeting(),)))
    await agent.prompt("go")
    return [text_of(message) for message in agent.state.messages if isinstance(message, ToolResultMessage)]


async def test_calls_of_one_tool_run_in_parallel_if_their_arguments_allow_it() -> None:
    assert await _results("read", "read") == ["old", "old"]


async def test_call_that_follows_a_write_in_the_same_reply_sees_it() -> None:
    assert await _results("look", "write", "look") == ["old", "new", "new"]


async def test_unknown_tool_is_answered_with_the_names_that_are_near() -> None:
    lines = await story(
        {"tools": [echo()], "replies": [{"blocks": [call("a", "ecko"), call("b", "zzz")]}, says("end")]}
    )

    assert middle(lines)[-2:] == ["result a: Tool ecko not found. Did you mean echo?", "result b: Tool zzz not found"]

"""The order of concurrent events: parallel calls, aborts, updates and queues."""

from tests.support.loop_parts import call, calls, echo, says, story, tool

ABORT: dict[str, object] = {"abort": True}
WAITS = [{"emit": "on it"}, {"sleep": 5000, "honour_abort": True}, {"return": "never"}]


def middle(lines: list[str]) -> list[str]:
    """The events between the first reply that calls tools and the end of its turn."""
    begin = lines.index("assistant tool_use: ") + 1
    return lines[begin : lines.index("turn_end", begin)]


async def test_abort_reaches_parallel_calls_in_the_order_in_which_they_wait() -> None:
    lines = await story(
        {
            "tools": [tool("echo", WAITS)],
            "replies": [calls("a", "b", "c")],
            "steps": [
                {"start_prompt": "go"},
                {"wait_event": {"event": "tool_execution_update", "nth": 3}},
                ABORT,
                {"join": True},
            ],
        }
    )

    assert middle(lines)[6:] == [
        *(f"fail {name}: aborted by signal" for name in "abc"),
        *(f"result {name}: aborted by signal" for name in "abc"),
    ]


async def test_call_that_aborts_ends_and_prevents_later_calls() -> None:
    lines = await story(
        {"tools": [echo(a=[ABORT, {"return": "went on"}])], "replies": [calls("a", "b"), says("never")]},
    )

    assert lines[4:] == [
        "start a",
        "start b",
        "fail b: Operation aborted",
        "end a: went on",
        "result a: went on",
        "result b: Operation aborted",
        "turn_end",
        "turn_start",
        "assistant aborted:  (Request was aborted)",
        "turn_end",
        "agent_end 5",
    ]


async def test_abort_on_the_first_update_prevents_all_later_calls() -> None:
    lines = await story(
        {
            "tools": [tool("echo", [{"emit": "half"}, {"return": "whole"}])],
            "on_event": [{"event": "tool_execution_update", "nth": 1, "do": [ABORT]}],
            "replies": [calls("a", "b", "c")],
        }
    )

    assert middle(lines)[3:] == [
        "update a: half",
        "fail b: Operation aborted",
        "fail c: Operation aborted",
        "end a: whole",
        "result a: whole",
        "result b: Operation aborted",
        "result c: Operation aborted",
    ]


async def test_background_work_of_a_tool_may_send_updates_until_the_tool_returns() -> None:
    left = [{"emit": "at once"}, {"sleep": 10}, {"emit": "in time"}, {"sleep": 40}, {"emit": "too late"}]

    lines = await story(
        {
            "tools": [
                echo(a=[{"detach": left}, {"sleep": 30}, {"return": "done"}], b=[{"sleep": 80}, {"return": "b"}])
            ],
            "replies": [calls("a", "b"), says("end")],
        }
    )

    assert middle(lines)[2:] == [
        "update a: at once",
        "update a: in time",
        "end a: done",
        "end b: b",
        "result a: done",
        "result b: b",
    ]


async def test_invalid_calls_end_before_parallel_calls_start() -> None:
    lines = await story(
        {
            "tools": [echo()],
            "options": {"before_tool_call": {"c": {"block": True}}},
            "replies": [{"blocks": [call("a"), call("b", "unknown"), call("c"), call("d")]}, says("end")],
        }
    )

    assert middle(lines)[:8] == [
        "start a",
        "start b",
        "fail b: Tool unknown not found",
        "start c",
        "fail c: Tool execution was blocked",
        "start d",
        "end a: a",
        "end d: d",
    ]


async def test_aborted_run_publishes_taken_steering_messages_and_keeps_the_rest_queued() -> None:
    lines = await story(
        {
            "tools": [
                echo(a=[{"steer": "first"}, {"steer": "second"}, {"follow_up": "later"}, ABORT, {"return": "a"}])
            ],
            "replies": [calls("a"), says("never"), says("end"), says("end")],
            "steps": [{"prompt": "go"}, {"continue": True}],
        }
    )

    assert lines[lines.index("result a: a") + 1 :] == [
        "turn_end",
        "turn_start",
        "user: first",
        "assistant aborted:  (Request was aborted)",
        "turn_end",
        "agent_end 5",
        "agent_start",
        "turn_start",
        "user: second",
        "assistant stop: end",
        "turn_end",
        "turn_start",
        "user: later",
        "assistant stop: end",
        "turn_end",
        "agent_end 4",
    ]


async def test_queued_message_fulfils_a_promised_turn_without_an_additional_one() -> None:
    lines = await story(
        {
            "options": {"finish_turn": ["continue", "continue"]},
            "replies": [says("one", {"follow_up": "more"}), says("two"), says("three"), says("never")],
        }
    )

    assert [line for line in lines if line.startswith(("user", "assistant", "agent_end"))] == [
        "user: go",
        "assistant stop: one",
        "user: more",
        "assistant stop: two",
        "assistant stop: three",
        "agent_end 5",
    ]


async def test_steering_during_the_end_of_the_last_turn_starts_another_turn() -> None:
    lines = await story(
        {
            "on_event": [{"event": "turn_end", "nth": 1, "do": [{"steer": "wait"}]}],
            "replies": [says("done"), says("really done")],
        }
    )

    assert lines[3:] == [
        "assistant stop: done",
        "turn_end",
        "turn_start",
        "user: wait",
        "assistant stop: really done",
        "turn_end",
        "agent_end 4",
    ]


async def test_sequential_call_blocked_by_an_abort_reports_the_rest_as_aborted() -> None:
    lines = await story(
        {
            "tools": [echo()],
            "options": {"before_tool_call": {"b": {"abort": True, "block": True, "reason": "no"}}},
            "replies": [calls("a", "b", "c"), says("never")],
        },
        profile="seed",
    )

    assert [line for line in middle(lines) if line.startswith("result")] == [
        "result a: a",
        "result b: Operation aborted",
        "result c: Operation aborted",
    ]

"""Turns of the loop: queues, hooks around a turn, replies that fail."""

from tests.support.loop_parts import calls, echo, says, story, told, trace


def talk(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(("user", "assistant", "agent_end", "refused"))]


async def test_finish_turn_end_leaves_the_queues_as_they_were() -> None:
    scenario = {
        "tools": [echo(a=[{"steer": "S"}, {"follow_up": "F"}, {"return": "a"}])],
        "options": {"finish_turn": ["end"], "steering_mode": "all"},
        "replies": [calls("a", "b"), says("one"), says("two")],
        "steps": [{"prompt": "go"}, {"continue": True}],
    }

    lines = await story(scenario, "seed")

    assert talk(lines) == [
        "user: go",
        "assistant tool_use: ",
        "agent_end 4",
        "user: S",
        "assistant stop: one",
        "user: F",
        "assistant stop: two",
        "agent_end 4",
    ]


async def test_finish_turn_continue_causes_another_turn() -> None:
    lines = await story({"options": {"finish_turn": ["continue"]}, "replies": [says("one"), says("two")]})

    assert talk(lines) == ["user: go", "assistant stop: one", "assistant stop: two", "agent_end 3"]


async def test_messages_of_prepare_next_turn_come_before_those_of_the_queues() -> None:
    options = {"prepare_next_turn": [None, ["P1", "P2"]]}
    scenario = {
        "tools": [echo(b=[{"steer": "S"}, {"return": "b"}])],
        "options": options,
        "replies": [calls("a"), calls("b"), says("end")],
    }

    lines = await story(scenario)

    assert talk(lines)[2:] == [
        "assistant tool_use: ",
        "user: P1",
        "user: P2",
        "user: S",
        "assistant stop: end",
        "agent_end 9",
    ]


async def test_follow_ups_are_read_one_at_a_time_after_steering() -> None:
    first = says({"follow_up": "F1"}, {"follow_up": "F2"}, {"steer": "S"}, "one")

    lines = await story({"replies": [first, says("two"), says("three"), says("four")]})

    assert talk(lines) == [
        "user: go",
        "assistant stop: one",
        "user: S",
        "assistant stop: two",
        "user: F1",
        "assistant stop: three",
        "user: F2",
        "assistant stop: four",
        "agent_end 8",
    ]


async def test_a_stream_function_that_raises_gives_the_whole_failing_sequence() -> None:
    recorded = await trace(
        {"replies": [{"throw": "no route"}, says("back")], "steps": [{"prompt": "go"}, {"prompt": "again"}]}
    )

    assert told(recorded)[:7] == [
        "agent_start",
        "turn_start",
        "user: go",
        "assistant error:  (no route)",
        "turn_end",
        "agent_end 1",
        "agent_start",
    ]
    assert recorded.final_error is None


async def test_a_transform_that_raises_fails_the_run_and_not_the_prompt() -> None:
    recorded = await trace({"options": {"transform_context": {"raise": "too long"}}, "replies": []})

    assert talk(told(recorded)) == ["user: go", "assistant error:  (too long)", "agent_end 1"]
    assert recorded.final_error == "too long"
    assert recorded.llm_calls == []


async def test_failed_model_call_leaves_the_queues_unchanged() -> None:
    failing = {"blocks": [{"text": ["part", {"steer": "S"}]}], "stop": "error", "error": "overloaded"}

    lines = await story({"replies": [failing, says("ok")], "steps": [{"prompt": "go"}, {"continue": True}]})

    assert talk(lines) == [
        "user: go",
        "assistant error: part (overloaded)",
        "agent_end 2",
        "user: S",
        "assistant stop: ok",
        "agent_end 2",
    ]


async def test_complete_calls_in_a_failed_reply_never_run() -> None:
    lines = await story({"tools": [echo()], "replies": [{**calls("a"), "stop": "error", "error": "cut"}]})

    assert lines[-3:] == ["assistant error:  (cut)", "turn_end", "agent_end 2"]
    assert "start a" not in lines


async def test_reply_without_a_start_event_is_a_complete_message() -> None:
    recorded = await trace({"replies": [{**says("all"), "no_start": True}]})

    kinds = [event["type"] for event in recorded.events]
    assert kinds[4:6] == ["message_start", "message_end"]
    assert "assistant stop: all" in told(recorded)


async def test_an_empty_reply_is_a_message_and_ends_the_run() -> None:
    lines = await story({"replies": [{"stop": "toolUse"}]})

    assert lines[-3:] == ["assistant tool_use: ", "turn_end", "agent_end 2"]


async def test_steering_before_the_run_is_read_in_the_first_turn() -> None:
    lines = await story({"replies": [says("ok")], "steps": [{"steer": "S"}, {"prompt": "go"}]})

    assert talk(lines) == ["user: go", "user: S", "assistant stop: ok", "agent_end 3"]


async def test_conversions_apply_to_one_request_and_are_never_stored() -> None:
    recorded = await trace(
        {
            "initial_messages": [{"role": "note", "text": "n"}, {"role": "hint", "text": "h"}],
            "options": {"transform_context": {"append": "extra"}, "convert_to_llm": {"as_user": ["hint"]}},
            "replies": [says("ok")],
        }
    )

    assert recorded.llm_calls == [[{"role": "user", "text": text} for text in ("h", "go", "extra")]]
    assert [message["role"] for message in recorded.final_messages] == ["note", "hint", "user", "assistant"]

"""Behaviours 160 to 163: several agents of one conversation, from a terminal."""

import msgspec

from tests.support.errand import Errand
from tests.support.model_server import ModelServer, Reply
from tests.support.task_replies import shell

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def added(errand: Errand, *arguments: str) -> tuple[str, str]:
    """The ids of an agent that was added, and of its conversation."""
    done = await errand.run("agents", "add", *arguments)
    assert done.code == 0, done.err
    words = done.out.split()
    return words[words.index("now:") + 1], words[-1]


async def test_160_agents_are_added_addressed_listed_and_removed(errand: Errand) -> None:
    replies = [Reply(text="Anna speaking."), Reply(text="Coder speaking.")]
    async with ModelServer(replies=replies) as server:
        anna, place = await added(errand, "--name", "Anna")
        coder, same = await added(errand, place, "--personality", "coder", "--color", "teal")
        assert same == place
        chat = ("run", "--conversation", place, "--mode", "chat", *MODEL, server.url)
        first = await errand.run(*chat, "hello")
        assert (first.code, "Anna speaking." in first.out) == (0, True)
        second = await errand.run(*chat, "--agent", "coder", "and you?")
        assert (second.code, "Coder:\nCoder speaking." in second.out) == (0, True)
        said = [str(one["content"]) for one in server.requests[1].messages if one["role"] != "system"]
        assert said == ["hello", "[Anna]: Anna speaking.", "and you?"]
    listed = await errand.run("agents", place)
    assert [line.split()[0] for line in listed.out.splitlines()] == ["Anna", "Coder"]
    heads = [msgspec.json.decode(line)["headId"] for line in (await errand.run("agents", place, "--json")).out.split()]
    assert len(set(heads)) == 1
    assert (await errand.run("agents", "remove", coder)).out.startswith("Coder takes part no more.")
    assert coder not in (await errand.run("agents", place)).out
    assert anna in (await errand.run("agents")).out


async def test_161_a_round_goes_on_by_itself(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="One."), Reply(text="Two.")]) as server:
        _, place = await added(errand, "--name", "Anna")
        await added(errand, place, "--name", "Bert")
        told = await errand.run("agents", "turns", place, "--rule", "round_robin", "--most", "5")
        assert told.out == "round robin, at most 5 replies in a row\n"
        done = await errand.run("run", "--conversation", place, "--mode", "chat", *MODEL, server.url, "count")
        assert done.code == 0
        await server.request(1)
        await errand.task("completed")
    moderated = await errand.run("agents", "turns", place, "--moderator", "@bert")
    assert moderated.out == "moderator, at most 5 replies in a row\n"


async def test_162_what_is_wrong_is_said_and_what_to_do(errand: Errand) -> None:
    _, place = await added(errand, "--name", "Anna")
    for arguments, words in {
        ("agents", "conv_none"): "no conversation",
        ("agents", "remove", "none"): "no agent",
        ("agents", "add", place, "--color", "mauve"): "no colour",
        ("agents", "add", place, "--personality", "none"): "no personality",
        ("agents", "turns", place, "--rule", "moderator"): "moderates",
        ("agents", "a", "b", "c"): "errand agents remove",
        ("run", "--agent", "Anna", "x"): "--conversation",
        ("run", "--conversation", place, "--agent", "Bert", "x"): "There are: Anna.",
    }.items():
        done = await errand.run(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert words in done.err


async def test_163_events_as_other_interfaces_have_them(errand: Errand) -> None:
    replies = [shell("echo hi"), Reply(text="It said hi."), Reply(text="Hello!")]
    async with ModelServer(replies=replies) as server:
        thoughts = await errand.run(
            "run", "--events", "react", "--approve", "all", "--mode", "chat", *MODEL, server.url, "x"
        )
        chat = await errand.run("run", "--events", "agent", "--mode", "chat", *MODEL, server.url, "y")
    events = [msgspec.json.decode(line) for line in thoughts.out.splitlines()]
    assert [event["event"] for event in events] == ["Thought", "ToolCall", "ToolOutput", "FinalResponse"]
    assert (events[1]["name"], events[-1]["text"]) == ("shell", "It said hi.")
    events = [msgspec.json.decode(line) for line in chat.out.splitlines()]
    assert {event["event"] for event in events} >= {"AgentCreated", "ChatStart", "ChatContent", "ChatComplete"}
    assert "".join(event["content"] for event in events if event["event"] == "ChatContent") == "Hello!"
    (complete,) = [event for event in events if event["event"] == "ChatComplete"]
    assert complete["usage"]["output_tokens"] == 20

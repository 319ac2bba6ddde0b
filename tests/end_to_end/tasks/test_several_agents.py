"""Behaviours 160 to 167: several agents in one conversation, from a terminal and with racing clients."""

import asyncio

import msgspec

from errand.client.connection import Connection
from errand.client.subscription import ConnectionMessage
from errand.protocol.agents import AGENT_DELETE, AGENT_LIST, Agent, AgentIdParams, AgentListParams
from errand.protocol.conversations import (
    AGENT_CHAT,
    CONVERSATION_TREE,
    AgentChatParams,
    AgentChatResult,
    ConversationTreeParams,
)
from errand.protocol.events import AgentUpdate, EventRecord
from tests.support.command_line import Errand, connected, ended
from tests.support.model_replies import shell
from tests.support.model_server import ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def added(errand: Errand, *arguments: str) -> tuple[str, str]:
    """The ids of an added agent and its conversation."""
    done = await errand.run("agents", "add", *arguments)
    assert done.code == 0, done.err
    words = done.out.split()
    return words[words.index("Added") + 2], words[-1]


async def test_agents_are_added_addressed_listed_and_removed(errand: Errand) -> None:
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
        assert said == ["hello\n\n[Anna]: Anna speaking.\n\nand you?"]
    listed = await errand.run("agents", place)
    assert [line.split()[0] for line in listed.out.splitlines()] == ["Anna", "Coder"]
    heads = [msgspec.json.decode(line)["headId"] for line in (await errand.run("agents", place, "--json")).out.split()]
    assert len(set(heads)) == 1
    assert (await errand.run("agents", "remove", coder)).out.startswith("Removed Coder.")
    assert coder not in (await errand.run("agents", place)).out
    assert anna in (await errand.run("agents")).out


async def test_a_round_goes_on_by_itself(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="One."), Reply(text="Two.")]) as server:
        _, place = await added(errand, "--name", "Anna")
        await added(errand, place, "--name", "Bert")
        told = await errand.run("agents", "turns", place, "--rule", "round_robin", "--most", "5")
        assert told.out == "round robin, at most 5 replies in a row\n"
        done = await errand.run("run", "--conversation", place, "--mode", "chat", *MODEL, server.url, "count")
        assert done.code == 0
        assert ("One." in done.out, "Bert:\nTwo." in done.out) == (True, True), "the whole round is shown"
    moderated = await errand.run("agents", "turns", place, "--moderator", "@bert")
    assert moderated.out == "moderator, at most 5 replies in a row\n"


async def test_what_is_wrong_is_said_and_what_to_do(errand: Errand) -> None:
    _, place = await added(errand, "--name", "Anna")
    for arguments, words in {
        ("agents", "conv_none"): "No conversation",
        ("agents", "remove", "none"): "No agent has the id",
        ("agents", "add", place, "--color", "mauve"): "is not a colour",
        ("agents", "add", place, "--personality", "none"): "no personality",
        ("agents", "turns", place, "--rule", "moderator"): "moderates",
        ("agents", "a", "b", "c"): "errand agents remove",
        ("run", "--agent", "Anna", "x"): "--conversation",
        ("run", "--conversation", place, "--agent", "Bert", "x"): "There are: Anna.",
    }.items():
        done = await errand.run(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert words in done.err


async def test_events_as_other_interfaces_have_them(errand: Errand) -> None:
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


async def test_two_clients_that_ask_one_agent_at_once_both_get_their_reply_and_learn_of_the_other(
    errand: Errand,
) -> None:
    agent_id, place = await added(errand, "--name", "Anna")
    answer = ModelServer(answer=lambda request: Reply(text=f"re: {request.messages[-1]['content']}"))
    async with answer as server, connected(errand) as one, connected(errand) as two:
        await one.subscribe_scope(place, "full")
        told: list[Agent] = []
        one.subscribe(lambda message: told.extend(_agents(message)))

        async def ask(client: Connection, prompt: str) -> AgentChatResult:
            params = AgentChatParams(
                agent_id=agent_id, prompt=prompt, version=1, model="openai_compatible/test-model", api_base=server.url
            )
            return await client.call(AGENT_CHAT, params)

        first, second = await asyncio.gather(ask(one, "a"), ask(two, "b"))
        for chat in (first, second):
            assert (await ended(one, chat.task)).summary == f"re: {chat.task.prompt}"
        kept, beside = (first, second) if second.branched else (second, first)
        assert (kept.branched, kept.agent.id, beside.agent.beside) == (False, agent_id, agent_id)
        assert kept.position.conversation_id == beside.position.conversation_id == place
        assert kept.position.node_id != beside.position.node_id
        assert any(agent.beside == agent_id for agent in told)
        await one.call(AGENT_DELETE, AgentIdParams(agent_id=beside.agent.id))
        listed = (await one.call(AGENT_LIST, AgentListParams(conversation_id=place))).agents
        assert [agent.id for agent in listed] == [agent_id]
        tree = await one.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=place))
        assert sorted(node.text for node in tree.nodes) == ["a", "b", "re: a", "re: b"]


def _agents(message: ConnectionMessage) -> list[Agent]:
    if isinstance(message, EventRecord) and isinstance(message.event, AgentUpdate):
        return [message.event.agent]
    return []


async def test_a_conversation_without_agents_is_still_read_and_goes_on(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="One."), Reply(text="Two.")]) as server:
        agent_id, place = await added(errand, "--name", "Anna")
        run = ("run", "--conversation", place, "--mode", "chat", *MODEL, server.url)
        await errand.run(*run, "first")
        await errand.run("agents", "remove", agent_id)
        async with connected(errand) as client:
            shown = (await client.subscribe_scope(place, "full")).snapshot
            assert shown is not None and len(shown.nodes) == 2
        assert "Two." in (await errand.run(*run, "second")).out
        said = [str(one["content"]) for one in server.requests[1].messages if one["role"] != "system"]
        assert said == ["first\n\n[Anna]: One.\n\nsecond"]
    for form in ("markdown", "html"):
        file = errand.folder / f"conversation.{form}"
        assert (await errand.run("export", place, "--format", form, "--to", str(file))).code == 0
        page = file.read_text()
        assert ("Anna" in page, "Assistant" in page) == (True, True), "who has left has written it all the same"


async def test_a_task_is_given_a_personality_by_its_name(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Once upon a time.")]) as server:
        unknown = await errand.run("run", "--personality", "nobody", *MODEL, server.url, "tell")
        assert unknown.code == 2 and "There are: Assistant, Coder" in unknown.err
        done = await errand.run("run", "--personality", "WRITER", *MODEL, server.url, "tell")
        assert done.code == 0
        (request,) = server.requests
        assert "You are Errand's writer" in str(request.messages[0]["content"])
    _, place = await added(errand, "--personality", "Coder")
    assert (await errand.run("agents", place)).out.startswith("Coder ")


async def test_a_round_is_followed_in_json_and_events_and_its_end_is_told(errand: Errand) -> None:
    async with ModelServer(answer=lambda request: Reply(text=f"Reply {request.turn}.")) as server:
        _, place = await added(errand, "--name", "Anna")
        await added(errand, place, "--name", "Bert")
        await added(errand, place, "--name", "Cleo")
        await errand.run("agents", "turns", place, "--rule", "round_robin", "--most", "2")
        run = ("run", "--conversation", place, "--mode", "chat", *MODEL, server.url)
        done = await errand.run(*run, "--json", "count")
        lines = [msgspec.json.decode(line) for line in done.out.splitlines()]
        results = [line for line in lines if line.get("type") == "result"]
        assert [result["status"] for result in results] == ["completed", "completed"]
        assert results[1]["follows"] == results[0]["id"]
        told = await errand.run(*run, "go on")
        assert "The limit of 2 replies in a row is reached." in told.out
        events = [
            msgspec.json.decode(line)
            for line in (await errand.run(*run, "--events", "react", "x")).out.split("\n")
            if line
        ]
        assert [event["event"] for event in events] == ["FinalResponse", "FinalResponse"]

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
    added_line = done.out.split()
    return added_line[added_line.index("Added") + 2], added_line[-1]


async def test_agents_are_added_addressed_listed_and_removed(errand: Errand) -> None:
    replies = [Reply(text="Anna speaking."), Reply(text="Coder speaking.")]
    async with ModelServer(replies=replies) as server:
        anna, conversation_id = await added(errand, "--name", "Anna")
        coder, same = await added(errand, conversation_id, "--personality", "coder", "--color", "teal")
        assert same == conversation_id
        chat = ("run", "--conversation", conversation_id, "--mode", "chat", *MODEL, server.url)
        first = await errand.run(*chat, "hello")
        assert (first.code, "Anna speaking." in first.out) == (0, True)
        second = await errand.run(*chat, "--agent", "coder", "and you?")
        assert (second.code, "Coder:\nCoder speaking." in second.out) == (0, True)
        contents = [str(message["content"]) for message in server.requests[1].messages if message["role"] != "system"]
        assert contents == ["hello\n\n[Anna]: Anna speaking.\n\nand you?"]
    listed = await errand.run("agents", conversation_id)
    assert [line.split()[0] for line in listed.out.splitlines()] == ["Anna", "Coder"]
    heads = [
        msgspec.json.decode(line)["headId"]
        for line in (await errand.run("agents", conversation_id, "--json")).out.split()
    ]
    assert len(set(heads)) == 1
    assert (await errand.run("agents", "remove", coder)).out.startswith("Removed Coder.")
    assert coder not in (await errand.run("agents", conversation_id)).out
    assert anna in (await errand.run("agents")).out


async def test_a_round_goes_on_by_itself(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="One."), Reply(text="Two.")]) as server:
        _, conversation_id = await added(errand, "--name", "Anna")
        await added(errand, conversation_id, "--name", "Bert")
        changed = await errand.run("agents", "turns", conversation_id, "--rule", "round_robin", "--most", "5")
        assert changed.out == "round robin, at most 5 replies in a row\n"
        done = await errand.run("run", "--conversation", conversation_id, "--mode", "chat", *MODEL, server.url, "count")
        assert done.code == 0
        assert ("One." in done.out, "Bert:\nTwo." in done.out) == (True, True), "the whole round is shown"
    moderated = await errand.run("agents", "turns", conversation_id, "--moderator", "@bert")
    assert moderated.out == "moderator, at most 5 replies in a row\n"


async def test_what_is_wrong_is_said_and_what_to_do(errand: Errand) -> None:
    _, conversation_id = await added(errand, "--name", "Anna")
    for arguments, error in {
        ("agents", "conv_none"): "No conversation",
        ("agents", "remove", "none"): "No agent has the id",
        ("agents", "add", conversation_id, "--color", "mauve"): "is not a colour",
        ("agents", "add", conversation_id, "--personality", "none"): "no personality",
        ("agents", "turns", conversation_id, "--rule", "moderator"): "moderates",
        ("agents", "a", "b", "c"): "errand agents remove",
        ("run", "--agent", "Anna", "x"): "--conversation",
        ("run", "--conversation", conversation_id, "--agent", "Bert", "x"): "There are: Anna.",
    }.items():
        done = await errand.run(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert error in done.err


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
    agent_id, conversation_id = await added(errand, "--name", "Anna")
    answer = ModelServer(answer=lambda request: Reply(text=f"re: {request.messages[-1]['content']}"))
    async with answer as server, connected(errand) as first_client, connected(errand) as two:
        await first_client.subscribe_scope(conversation_id, "full")
        updates: list[Agent] = []
        first_client.subscribe(lambda message: updates.extend(_agents(message)))

        async def ask(client: Connection, prompt: str) -> AgentChatResult:
            params = AgentChatParams(
                agent_id=agent_id, prompt=prompt, version=1, model="openai_compatible/test-model", api_base=server.url
            )
            return await client.call(AGENT_CHAT, params)

        first, second = await asyncio.gather(ask(first_client, "a"), ask(two, "b"))
        for chat in (first, second):
            assert (await ended(first_client, chat.task)).outcome.summary == f"re: {chat.task.request.prompt}"
        main, branched = (first, second) if second.branched else (second, first)
        assert (main.branched, main.agent.id, branched.agent.beside) == (False, agent_id, agent_id)
        assert main.position.conversation_id == branched.position.conversation_id == conversation_id
        assert main.position.node_id != branched.position.node_id
        assert any(agent.beside == agent_id for agent in updates)
        await first_client.call(AGENT_DELETE, AgentIdParams(agent_id=branched.agent.id))
        listed = (await first_client.call(AGENT_LIST, AgentListParams(conversation_id=conversation_id))).agents
        assert [agent.id for agent in listed] == [agent_id]
        tree = await first_client.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=conversation_id))
        assert sorted(node.text for node in tree.nodes) == ["a", "b", "re: a", "re: b"]


def _agents(message: ConnectionMessage) -> list[Agent]:
    if isinstance(message, EventRecord) and isinstance(message.event, AgentUpdate):
        return [message.event.agent]
    return []


async def test_a_conversation_without_agents_is_still_read_and_goes_on(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="One."), Reply(text="Two.")]) as server:
        agent_id, conversation_id = await added(errand, "--name", "Anna")
        run = ("run", "--conversation", conversation_id, "--mode", "chat", *MODEL, server.url)
        await errand.run(*run, "first")
        await errand.run("agents", "remove", agent_id)
        async with connected(errand) as client:
            snapshot = (await client.subscribe_scope(conversation_id, "full")).snapshot
            assert snapshot is not None and len(snapshot.nodes) == 2
        assert "Two." in (await errand.run(*run, "second")).out
        contents = [str(message["content"]) for message in server.requests[1].messages if message["role"] != "system"]
        assert contents == ["first\n\n[Anna]: One.\n\nsecond"]
    for form in ("markdown", "html"):
        file = errand.folder / f"conversation.{form}"
        assert (await errand.run("export", conversation_id, "--format", form, "--to", str(file))).code == 0
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
    _, conversation_id = await added(errand, "--personality", "Coder")
    assert (await errand.run("agents", conversation_id)).out.startswith("Coder ")


async def test_a_round_is_followed_in_json_and_events_and_its_end_is_told(errand: Errand) -> None:
    async with ModelServer(answer=lambda request: Reply(text=f"Reply {request.turn}.")) as server:
        _, conversation_id = await added(errand, "--name", "Anna")
        await added(errand, conversation_id, "--name", "Bert")
        await added(errand, conversation_id, "--name", "Cleo")
        await errand.run("agents", "turns", conversation_id, "--rule", "round_robin", "--most", "2")
        run = ("run", "--conversation", conversation_id, "--mode", "chat", *MODEL, server.url)
        done = await errand.run(*run, "--json", "count")
        lines = [msgspec.json.decode(line) for line in done.out.splitlines()]
        results = [line for line in lines if line.get("type") == "result"]
        assert [result["status"] for result in results] == ["completed", "completed"]
        assert results[1]["follows"] == results[0]["id"]
        answered = await errand.run(*run, "go on")
        assert "The limit of 2 replies in a row is reached." in answered.out
        events = [
            msgspec.json.decode(line)
            for line in (await errand.run(*run, "--events", "react", "x")).out.split("\n")
            if line
        ]
        assert [event["event"] for event in events] == ["FinalResponse", "FinalResponse"]

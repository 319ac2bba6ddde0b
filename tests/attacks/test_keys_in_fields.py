"""A key in a first message: no field that is made of the message has it, wherever the field goes."""

import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from errand.protocol.agents import AGENT_LIST, AgentListParams
from errand.protocol.base import JsonObject
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_FIND_NODES,
    CONVERSATION_LIST,
    CONVERSATION_SEARCH,
    CONVERSATION_TREE,
    ConversationChangeParams,
    ConversationFindNodesParams,
    ConversationListParams,
    ConversationSearchParams,
    ConversationTreeParams,
)
from errand.protocol.usage import USAGE_REPORT, UsageReportParams
from tests.end_to_end.terminal.test_memory import indexed
from tests.support.command_line import Errand, connected
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import PYTHON

OF_OTHERS = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0"
OWN = "my-secret-q9w8e7r6t5y4u3i2"
SERVER = Path(__file__).parents[1] / "support" / "mcp_leaky_server.py"
CHAT = ("run", "--approve", "all", "--model", "openai/test-model")


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def pieces(key: str) -> list[str]:
    """The parts of a key that count as that key: twelve characters, without the beginning that all of its kind have."""
    return [key[at : at + 12] for at in range(4, len(key) - 12)]


def holds_key(text: str) -> bool:
    return any(piece in text for key in (OF_OTHERS, OWN) for piece in pieces(key))


def read_files(path: Path) -> list[tuple[str, str]]:
    """The names and contents of a file, or of those in a folder."""
    return [(file.name, file.read_text()) for file in ([path] if path.is_file() else sorted(path.iterdir()))]


async def chat(errand: Errand, server: ModelServer, *texts: str) -> str:
    """Runs a task for each text; returns what the terminal said."""
    output = ""
    for text in texts:
        variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": OWN}
        done = await errand.run(*CHAT, text, variables=variables)
        assert done.code == 0, done.err
        output += done.out + done.err
    await indexed(errand)
    return output


# The limit of a title falls at every kind of position within the key.
@pytest.mark.parametrize(
    "before", ["", "use ", "the tide tables need the key ", "the tide tables of the harbour need key "]
)
async def test_no_field_made_of_a_message_has_its_key(own_errand: Errand, tmp_path: Path, before: str) -> None:
    messages = [f"{before}{key} for the tide tables, please" for key in (OF_OTHERS, OWN)]
    async with ModelServer(answer=lambda request: Reply(text="Noted.")) as server:
        await chat(own_errand, server, *messages)
        await chat(own_errand, server, "Where are the tide tables of the harbour?")
        requests = [msgspec.json.encode(request.messages).decode() for request in server.requests]
    assert "tide tables" in requests[-1] and not holds_key(requests[-1]), "recalled entries reach other models"
    outputs = [
        (await own_errand.run(*command)).out
        for command in (
            ("memory", "search", "tide tables"),
            ("memory", "search", "tide tables", "--json"),
            ("list",),
            ("list", "--json"),
            ("usage", "--by", "conversation"),
            ("search", "tide"),
        )
    ]
    assert not any(map(holds_key, outputs)), outputs
    async with connected(own_errand) as client:
        conversations = (await client.call(CONVERSATION_LIST, ConversationListParams())).conversations
        with_keys = [conversation.id for conversation in conversations if "harbour?" not in conversation.title]
        assert len(with_keys) == 2
        results = [
            conversations,
            await client.call(CONVERSATION_SEARCH, ConversationSearchParams(text="tide")),
            await client.call(CONVERSATION_SEARCH, ConversationSearchParams(text="please")),
            await client.call(AGENT_LIST, AgentListParams()),
            await client.call(USAGE_REPORT, UsageReportParams()),
        ]
        for number in with_keys:
            results += [
                (await client.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=number))).nodes,
                await client.call(CONVERSATION_FIND_NODES, ConversationFindNodesParams(conversation_id=number)),
            ]
        encoded = [msgspec.json.encode(result).decode() for result in results]
        assert next((text for text in encoded if holds_key(text)), "") == ""
        for key in (OF_OTHERS, OWN):
            change = ConversationChangeParams(conversation_id=with_keys[0], title=f"{before}{key[:20]}…")
            assert not holds_key((await client.call(CONVERSATION_CHANGE, change)).conversation.title)
    for form in ("json", "markdown", "html"):
        assert (await own_errand.run("export", "--to", str(tmp_path / form), "--format", form)).code == 0
    exports = {name: text for form in ("json", "markdown", "html") for name, text in read_files(tmp_path / form)}
    assert exports and not any(holds_key(f"{name}\n{text}") for name, text in exports.items())


async def test_titles_that_were_stored_with_a_key_leave_without_it(own_errand: Errand, tmp_path: Path) -> None:
    titles = (f"use {OF_OTHERS} here", f"use {OF_OTHERS[:18]}…", f"the tides need {OWN}", f"use {OWN[:-4]}…")
    async with ModelServer(answer=lambda request: Reply(text="Noted.")) as server:
        await chat(own_errand, server, *(f"The tide tables are on the second page of {book}." for book in "ABCD"))
        assert (await own_errand.run("engine", "--stop")).code == 0
        with closing(sqlite3.connect(own_errand.home / "errand.db")) as connection, connection:
            rows = connection.execute("SELECT id FROM conversations").fetchall()
            for (number,), title in zip(rows, titles, strict=True):
                renamed = "title = ?1, body = json_set(body, '$.title', ?1)"
                connection.execute(f"UPDATE conversations SET {renamed} WHERE id = ?2", (title, number))
                changed = "json_set(body, '$.event.conversation.title', ?1)"
                is_of_title = "body LIKE '%\"conversationUpdate\"%' AND body LIKE '%' || ?2 || '%'"
                connection.execute(f"UPDATE events SET body = {changed} WHERE {is_of_title}", (title, number))
        await chat(own_errand, server, "Where are the tide tables?")
        sent = msgspec.json.encode(server.requests[-1].body).decode()
    assert "second page" in sent and not holds_key(sent)
    commands = (("list",), ("list", "--json"), ("memory", "search", "tide", "--json"), ("search", "second", "--json"))
    outputs = [(await own_errand.run(*command)).out for command in commands]
    async with connected(own_errand) as client:
        messages: list[str] = []
        client.subscribe(lambda message: messages.append(msgspec.json.encode(message).decode()))
        snapshot = (await client.subscribe_scope()).snapshot
        await client.unsubscribe_scope()
        await client.subscribe_scope(after=0, epoch=client.welcome.epoch)
    assert any("conversationUpdate" in message for message in messages) and snapshot is not None
    assert not any(map(holds_key, (*outputs, *messages, msgspec.json.encode(snapshot.conversations).decode())))
    for form in ("json", "markdown", "html"):
        assert (await own_errand.run("export", "--to", str(tmp_path / form), "--format", form)).code == 0
        assert not any(holds_key(f"{name}\n{text}") for name, text in read_files(tmp_path / form))


async def test_the_line_of_a_call_that_was_cut_in_a_key_has_none_of_it(own_errand: Errand) -> None:
    filler = "echo the tide tables; " * 44
    commands = [f"{filler}{'x' * length} {OF_OTHERS}; true" for length in range(4, 34, 6)]
    assert len(commands[0]) > 1_000

    replies = [Reply(calls=tuple(Call("shell", {"command": command}) for command in commands)), Reply(text="Done.")]
    async with ModelServer(replies=replies) as server:
        output = await chat(own_errand, server, "look at the tide tables")
    entries: list[JsonObject] = (await own_errand.run("memory", "search", "tide", "--json")).lines
    assert entries and not holds_key(msgspec.json.encode(entries).decode())
    assert not holds_key(output)


async def test_names_of_tools_and_arguments_leave_without_keys(own_errand: Errand, tmp_path: Path) -> None:
    calls = (Call(f"mcp_{OF_OTHERS}", {"a": 1}), Call("shell", {"command": "true", OF_OTHERS: {OF_OTHERS: OWN}}))
    async with ModelServer(replies=[Reply(calls=calls), Reply(text="Done.")]) as server:
        printed = await chat(own_errand, server, "look at the tide tables")
    assert "no such tool" in printed and not holds_key(printed)
    for form in ("json", "markdown", "html"):
        assert (await own_errand.run("export", "--to", str(tmp_path / form), "--format", form)).code == 0
        files = read_files(tmp_path / form)
        assert files and not any(holds_key(f"{name}\n{text}") for name, text in files)


@pytest.mark.parametrize(
    "key",
    [
        OF_OTHERS,
        OWN,
        _encoded(f"token {OF_OTHERS}"),
        _encoded(OWN),
        OWN.encode().hex(),
    ],
)
async def test_nothing_that_a_server_says_of_itself_has_a_key(own_errand: Errand, key: str) -> None:
    variables = {"OPENAI_API_KEY": OWN}
    command = (PYTHON, "-I", "-S", str(SERVER), key)
    await own_errand.run("keys", variables=variables)
    assert (await own_errand.run("mcp", "add", "leaky", "--", *command, variables=variables)).code == 0
    replies = [
        Reply(calls=(Call("mcp", {"operation": "list"}), Call("leaky__echo", {"text": "x"}))),
        Reply(text="Done."),
    ]
    outputs = [
        (await own_errand.run(*command, variables=variables)).out
        for command in (("mcp", "show", "leaky"), ("mcp", "prompt", "leaky/ask", "city=Rome"), ("mcp", "log", "leaky"))
    ]
    async with ModelServer(replies=replies) as server:
        outputs.append(await chat(own_errand, server, "look at the tide tables"))
        sent = [msgspec.json.encode(request.body).decode() for request in server.requests]
    assert "leaky__echo" in sent[0] and "does not want" in sent[1] and "db:" in sent[1]
    lines = [line for line in "\n".join((*sent, *outputs)).splitlines() if SERVER.name not in line]
    assert next((line for line in lines if any(piece in line for piece in pieces(key))), "") == ""

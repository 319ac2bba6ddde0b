"""Export, import and deletion of conversations on the command line."""

from pathlib import Path

import msgspec

from errand.client.connection import Connection
from errand.client.launch import read_endpoint
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_LIST,
    Conversation,
    ConversationChangeParams,
    ConversationListParams,
)
from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.model_server import ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def conversations(errand: Errand, *, archive: bool = False) -> tuple[Conversation, ...]:
    """The engine's conversations; `archive` archives all of them."""
    paths = Paths(errand.home)
    connection = Connection(lambda: read_endpoint(paths), "test")
    await connection.open()
    try:
        listed = (await connection.call(CONVERSATION_LIST, ConversationListParams())).conversations
        for conversation in listed if archive else ():
            params = ConversationChangeParams(conversation_id=conversation.id, archived=True)
            await connection.call(CONVERSATION_CHANGE, params)
        return listed
    finally:
        await connection.close()


async def test_a_conversation_is_exported_deleted_and_taken_in_again(own_errand: Errand, workspace: Path) -> None:
    async with ModelServer(answer=lambda _: Reply(text="Forty-two.")) as server:
        assert (await own_errand.run("run", *MODEL, server.url, "what is it?")).code == 0
    exported = await own_errand.run("export", "--to", "all.jsonl")
    assert (exported.code, exported.err) == (0, "")
    assert exported.out.startswith(f"1 conversation with 2 messages written to {workspace / 'all.jsonl'}")
    again = await own_errand.run("export", "--to", "all.jsonl")
    assert again.code == 1 and "is there already" in again.err
    pages = await own_errand.run("export", "--format", "markdown", "--to", "pages")
    assert pages.code == 0
    (page,) = (workspace / "pages").glob("*.md")
    assert "## You\n\nwhat is it?" in page.read_text() and "Forty-two." in page.read_text()
    (conversation,) = await conversations(own_errand, archive=True)
    counted = await own_errand.run("prune", "--days", "1")
    assert counted.out.startswith("0 conversations with 0 messages")
    asked = await own_errand.run("delete", conversation.id[-8:])
    assert asked.code == 2 and "Confirm with --yes" in asked.err
    assert asked.out.startswith(f"{conversation.id[-8:]}  what is it?  last changed ")
    deleted = await own_errand.run("delete", conversation.id[-8:], "--yes")
    assert (deleted.code, deleted.out) == (0, f"Deleted {conversation.id[-8:]}: what is it?\n")
    assert (await own_errand.run("delete", conversation.id)).code == 2
    taken = await own_errand.run("import", "all.jsonl")
    assert (taken.code, taken.out) == (0, "Imported: 1 conversation, 2 messages.\n")
    (came,) = await conversations(own_errand)
    own = str(own_errand.home / "workspaces" / conversation.id)
    named = conversation.workspace
    assert came == msgspec.structs.replace(conversation, workspace=own, proposed_workspace=named, imported_folder=named)
    results = await own_errand.run("search", "--json", "forty")
    assert [line["conversationId"] for line in results.lines] == [conversation.id]


async def test_a_file_that_is_no_export_is_refused_in_a_line(own_errand: Errand, workspace: Path) -> None:
    (workspace / "notes.txt").write_bytes(msgspec.json.encode({"a": 1}))
    refused = await own_errand.run("import", "notes.txt")
    assert refused.code == 2
    assert "is not a file that Errand exported" in refused.err and "Nothing was imported." in refused.err

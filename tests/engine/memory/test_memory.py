"""Memory of a whole engine: what it has of conversations, what it leaves out, and how it heals."""

import asyncio
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.data.remover import Remover
from errand.engine.memory.index_thread import IndexUnavailable
from errand.engine.memory.vectors import embedded
from errand.engine.storage.records import conversations as conversation_rows
from errand.engine.storage.records import nodes as node_rows
from errand.engine.storage.records import removal
from errand.engine.storage.records.removal import Removal
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Node
from errand.protocol.events import ConversationUpdate
from errand.protocol.memory import MemoryFilter, MemoryItem, MemoryListParams, MemoryPruneParams, MemorySearchParams
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.stored_records import on_both
from tests.support.web_site import web_site


async def said(engine: EngineParts, prompt: str, conversation_id: str | None = None) -> str:
    """A finished conversation with this message, which memory has; its id."""
    task = await engine.start(prompt, mode="chat", conversation_id=conversation_id)
    await engine.watcher.end(task.id)
    await remembered(engine)
    return task.conversation_id


async def found(engine: EngineParts, text: str) -> list[str]:
    result = await engine.services.memory.reader.search(MemorySearchParams(text=text), CancelSignal())
    return [hit.text for hit in result.hits]


async def entries(engine: EngineParts) -> list[MemoryItem]:
    """All, oldest first."""
    page = await engine.services.memory.reader.page(MemoryListParams(limit=500))
    assert not page.has_more
    return list(reversed(page.items))


async def test_messages_calls_and_results_are_remembered_with_who_said_them(tmp_path: Path) -> None:
    replies = [Reply(text="I look.", calls=(Call("shell", {"command": "echo tangerine"}),)), Reply(text="It works.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        await engine.watcher.end((await engine.start("please look", mode="chat")).id)
        await remembered(engine)
        rows = [(entry.role, entry.speaker, entry.text) for entry in await entries(engine)]
        tangerine = await found(engine, "tangerine")
    assert rows[0] == ("user", "User", "please look")
    assert rows[1] == ("agent", "Assistant", "I look.\n[shell: echo tangerine]")
    assert rows[2][:2] == ("tool", "shell")
    assert "tangerine" in rows[2][2]
    assert rows[3] == ("agent", "Assistant", "It works.")
    assert len(tangerine) >= 2


async def test_secrets_never_reach_memory(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ, use it for the boat")
        (first, *_) = await entries(engine)
    stored = b"".join(file.read_bytes() for file in (tmp_path / "data" / "memory").rglob("*") if file.is_file())
    assert "boat" in first.text
    assert "abcdefghijklmnop" not in first.text
    assert b"abcdefghijklmnop" not in stored


@on_both
async def test_an_engine_that_starts_again_indexes_nothing_twice_and_misses_nothing(tmp_path: Path) -> None:
    model = ModelServer(answer=lambda request: Reply(text="Noted."))
    async with engine_parts(tmp_path, model) as engine:
        await said(engine, "The kettle leaks")
        task = await engine.start("The roof is new", mode="chat")
        await engine.watcher.end(task.id)  # it may not be indexed yet
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The fence is green")
        texts = [entry.text for entry in await entries(engine)]
    assert sorted(texts) == ["Noted.", "Noted.", "Noted.", "The fence is green", "The kettle leaks", "The roof is new"]


@pytest.mark.parametrize("damage", ["deleted", "no database", "torn", "another version", "half of the tables"])
async def test_a_damaged_index_is_made_again(tmp_path: Path, damage: str) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        for number in range(5):
            await said(engine, f"The kettle number {number} leaks")
    file = tmp_path / "data" / "memory" / "memory.db"
    match damage:
        case "deleted":
            file.unlink()
        case "no database":
            file.write_bytes(b"hello" * 1_000)
        case "torn":
            with file.open("r+b") as opened:
                opened.seek(4096)
                opened.write(os.urandom(file.stat().st_size - 4096))
        case "another version":
            connection = sqlite3.connect(file)
            connection.execute("PRAGMA user_version = 999")
            connection.close()
        case _:
            connection = sqlite3.connect(file)
            connection.execute("DROP TABLE entry_words")
            connection.commit()
            connection.close()
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await found(engine, "kettle")  # may be what notices
        await remembered(engine)
        assert len(await found(engine, "which kettle leaks")) >= 5
        assert len(await entries(engine)) == 10


async def test_an_index_that_is_deleted_or_damaged_while_the_engine_runs_heals(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        for file in (tmp_path / "data" / "memory").glob("memory.db*"):
            file.unlink()
        await said(engine, "The roof is new")
        assert "The kettle leaks" in await found(engine, "kettle")
        assert "The roof is new" in await found(engine, "roof")


async def test_another_database_under_the_same_index_is_noticed(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        await said(engine, "The fence is green")
    for file in (tmp_path / "data").glob("errand.db*"):
        file.unlink()
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await remembered(engine)
        assert await found(engine, "kettle") == []
        await said(engine, "The roof is new")
        assert "The roof is new" in await found(engine, "roof")


async def test_a_deleted_conversation_leaves_memory(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        gone, kept_id = await said(engine, "The kettle leaks"), await said(engine, "The kettle is new")
        await delete(engine, gone)
        await remembered(engine)
        # The next conversation gets the numbers of the deleted nodes.
        new = await said(engine, "The kettle is red")
        assert {entry.conversation_id for entry in await entries(engine)} == {kept_id, new}
        assert "The kettle leaks" not in await found(engine, "kettle leaks")


async def test_a_conversation_that_is_not_to_be_remembered_leaves_memory_and_comes_back(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        private, other = await said(engine, "The kettle leaks"), await said(engine, "The roof is new")
        await change(engine, private, remembers=False)
        await remembered(engine)
        assert {entry.conversation_id for entry in await entries(engine)} == {other}
        task = await engine.start("The kettle is mended", mode="chat", conversation_id=private)
        await engine.watcher.end(task.id)
        await remembered(engine)
        assert await found(engine, "kettle") == []
        await change(engine, private, remembers=True)
        await remembered(engine)
        assert {"The kettle leaks", "The kettle is mended"} <= set(await found(engine, "kettle"))


async def test_a_folder_can_be_left_out_of_memory(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        set_setting(engine, "not_remembered_folders", str(tmp_path))
        await remembered(engine)
        assert await entries(engine) == []
        with pytest.raises(InvalidParams, match="Folders not remembered"):
            set_setting(engine, "not_remembered_folders", "relative/folder")


async def test_entries_are_listed_page_by_page_and_filtered(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        for number in range(3):
            await said(engine, f"The kettle number {number} leaks")
        memory = engine.services.memory.reader
        first = await memory.page(MemoryListParams(limit=4))
        rest = await memory.page(MemoryListParams(limit=4, before_number=first.items[-1].number))
        mine = await memory.page(MemoryListParams(where=MemoryFilter(roles=("user",))))
        later = MemoryFilter(after=datetime.now(UTC) + timedelta(hours=1))
        none = await memory.search(MemorySearchParams(text="kettle", where=later), CancelSignal())
        item = await memory.get(first.items[0].number)
        with pytest.raises(NotFound):
            await memory.get(10_000)
    assert first.has_more and not rest.has_more
    assert len(first.items) == 4 and len(rest.items) == 2
    assert len(mine.items) == 3
    assert none.hits == ()
    assert item.text == "Noted."
    assert item.folder == str(tmp_path / "workspace")


async def test_what_is_pruned_stays_findable_by_its_words_and_the_audit_says_so(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        for number in range(3):
            await said(engine, f"The kettle number {number} leaks")
        memory = engine.services.memory
        assert (await memory.prune(MemoryPruneParams(keep=2), "the window")).removed == 4
        stats = await memory.stats()
        assert (stats.entries, stats.pruned, stats.to_embed, stats.to_index) == (6, 4, 2, 0)
        assert len(await found(engine, "kettle leaks")) >= 3
        (line, *_) = (await engine.services.database.memory_log.page(10)).entries
        assert (line.action, line.by, line.about) == ("pruned", "the window", "4 vectors")
        with pytest.raises(InvalidParams, match="Name a time"):
            await memory.prune(MemoryPruneParams(), "the window")


async def test_numbers_that_say_all_is_indexed_are_complete(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        await remembered(engine)
        entries = (await engine.services.memory.stats()).entries
        for _ in range(20):
            await engine.services.memory.rebuild("the window")
            while (stats := await engine.services.memory.stats()).to_index:
                pass
            assert stats.entries == entries


async def test_rebuilding_makes_the_same_again_and_never_stops_halfway(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        for number in range(8):
            await said(engine, f"The kettle number {number} leaks")
        before = sorted(entry.text for entry in await entries(engine))
        for _ in range(3):
            await asyncio.gather(said(engine, "go on"), engine.services.memory.rebuild("the window"))
        await remembered(engine)
        after = sorted(entry.text for entry in await entries(engine))
    assert after == sorted([*before, *["go on", "Noted."] * 3])


async def test_an_index_that_cannot_be_opened_stops_no_task(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "memory").write_text("a file where the folder should be")
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        task = await engine.watcher.end((await engine.start("The kettle leaks", mode="chat")).id)
        assert task.activity.status == "completed"
        with pytest.raises(IndexUnavailable):
            await found(engine, "kettle")


async def test_a_vector_server_that_cannot_be_used_is_said_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "settings.json").write_text('{"vector_server": "ftp://nowhere"}')
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        stats = await engine.services.memory.stats()
        assert "Vector server" in stats.problem
        assert "The kettle leaks" in await found(engine, "kettle")


async def test_what_is_imported_is_remembered_without_being_said(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        conversation = await said(engine, "The kettle leaks")
        services = engine.services
        old = await services.database.conversations.get(conversation)
        assert old is not None
        new = msgspec.structs.replace(old, id="imported")
        node = a_node("node_imported", "imported", "The roof is new")
        services.database.journal.put(conversation_rows.save(new), node_rows.save(node))
        services.log.publish(ConversationUpdate(conversation=new))
        await services.log.flush()
        await remembered(engine)
        assert "The roof is new" in await found(engine, "roof")


async def test_an_import_is_remembered_once_it_is_whole(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        services = engine.services
        old = await services.database.conversations.get(await said(engine, "The kettle leaks"))
        assert old is not None
        new = msgspec.structs.replace(old, id="imported")
        services.database.journal.put(removal.begin(Removal("imported", ())), conversation_rows.save(new))
        services.database.journal.put(node_rows.save(a_node("node_imported", "imported", "The roof is new")))
        await services.log.flush()
        await said(engine, "The fence is green")  # indexed after the nodes of the import
        assert "The roof is new" not in await found(engine, "roof")
        services.database.journal.put(removal.done("imported"))
        services.log.publish(ConversationUpdate(conversation=new))
        await services.log.flush()
        await remembered(engine)
        assert "The roof is new" in await found(engine, "roof")


async def test_a_node_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
    connection = sqlite3.connect(tmp_path / "data" / "errand.db")
    connection.execute("UPDATE nodes SET body = '{}' WHERE number = 1")
    connection.commit()
    connection.close()
    for file in (tmp_path / "data" / "memory").glob("memory.db*"):
        file.unlink()
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The roof is new")
        assert "The roof is new" in await found(engine, "roof")


async def test_deleting_the_newest_conversation_makes_nothing_anew(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        newest = await said(engine, "The roof is new")
        await delete(engine, newest)
        await remembered(engine)
        (kept_entry, *_) = await entries(engine)
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await remembered(engine)
        (first, *_) = await entries(engine)
        assert first.number == kept_entry.number
        assert [entry.text for entry in await entries(engine)] == ["The kettle leaks", "Noted."]
        await said(engine, "The fence is green")
        assert (await entries(engine))[-1].number > kept_entry.number + 3  # numbers are not reused


async def test_a_conversation_that_moves_to_a_folder_that_is_not_remembered_leaves_memory(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (tmp_path / "link").symlink_to(private)
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        conversation = await said(engine, "The kettle leaks")
        await change(engine, conversation, workspace=str(tmp_path / "other"))
        await remembered(engine)
        assert {entry.folder for entry in await entries(engine)} == {str(engine.workspace)}
        set_setting(engine, "not_remembered_folders", str(tmp_path / "link"))
        await remembered(engine)
        assert len(await entries(engine)) == 2
        await change(engine, conversation, workspace=str(private))
        assert await found(engine, "kettle") == []  # at once
        await remembered(engine)
        assert await entries(engine) == []


async def test_a_key_that_becomes_known_later_is_hidden_in_what_is_found(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle opens with zanzibar-7719-quux")
        engine.services.keys.redactor.add("zanzibar-7719-quux")
        (first, *_) = await found(engine, "kettle")
        assert first.startswith("The kettle opens with") and "7719" not in first


async def test_what_bears_on_a_message_is_given_with_it_and_noted(tmp_path: Path) -> None:
    asked: list[ReceivedRequest] = []

    def answer(request: ReceivedRequest) -> Reply:
        asked.append(request)
        return Reply(text="Noted.")

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        await said(engine, "The tide tables of the harbour are in /srv/tides.csv")
        await said(engine, "The printer in the hall needs toner")
        other = await said(engine, "where are the tide tables of the harbour?")
        nodes = [node for node in engine.watcher.nodes() if node.conversation_id == other]
        last = str(asked[-1].messages[-1]["content"])
        again = await engine.start("and now in words", mode="chat", conversation_id=other)
        await engine.watcher.end(again.id)
        history = [str(message["content"]) for message in asked[-1].messages]
    assert [node.role for node in nodes] == ["user", "system", "assistant"]
    assert "/srv/tides.csv" in last and "toner" not in last
    assert last in history  # the same text as before: what a provider has cached stays valid


@pytest.mark.parametrize("switch", ["conversation", "folder", "budget"])
async def test_recall_can_be_switched_off(tmp_path: Path, switch: str) -> None:
    asked: list[ReceivedRequest] = []

    def answer(request: ReceivedRequest) -> Reply:
        asked.append(request)
        return Reply(text="Noted.")

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        await said(engine, "The tide tables of the harbour are in /srv/tides.csv")
        conversation = await said(engine, "hello there")
        if switch == "conversation":
            await change(engine, conversation, recalls=False)
        elif switch == "folder":
            set_setting(engine, "not_recalled_folders", str(tmp_path))
        else:
            set_setting(engine, "recall_tokens", 0)
        prompt = "where are the tide tables of the harbour?"
        task = await engine.start(prompt, mode="chat", conversation_id=conversation)
        await engine.watcher.end(task.id)
    assert asked[-1].messages[-1]["content"] == prompt


def a_node(node_id: str, conversation_id: str, text: str) -> Node:
    return Node(
        id=node_id,
        conversation_id=conversation_id,
        parent_id=None,
        role="user",
        author="user",
        blocks=(TextBlock(text=text),),
        status="complete",
        created_at=datetime.now(UTC),
    )


async def delete(engine: EngineParts, conversation_id: str) -> None:
    await change(engine, conversation_id, archived=True)
    services = engine.services
    remover = Remover(
        services.log,
        services.database,
        services.runner.changes,
        services.locks,
        services.grants,
        services.checkpoints.baselines,
        services.paths,
    )
    await remover.delete(conversation_id)


async def change(
    engine: EngineParts,
    conversation_id: str,
    *,
    archived: bool = False,
    remembers: bool = True,
    recalls: bool = True,
    workspace: str | None = None,
) -> None:
    services = engine.services
    old = await services.database.conversations.get(conversation_id)
    assert old is not None
    new = msgspec.structs.replace(
        old, archived=archived, remembers=remembers, recalls=recalls, workspace=workspace or old.workspace
    )
    services.log.publish(ConversationUpdate(conversation=new))
    await services.log.flush()


def set_setting(engine: EngineParts, name: str, value: str | int) -> None:
    engine.services.settings.set(name, value)
    engine.services.memory.rules_changed()


async def test_without_the_package_for_vectors_a_rebuild_makes_the_words_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "find_spec", _nothing)
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        await engine.services.memory.rebuild("the window")
        await remembered(engine)
        assert (await found(engine, "kettle"))[0] == "The kettle leaks"


@pytest.mark.usefixtures("model")
async def test_the_model_is_offered_when_a_message_could_have_been_answered_from_memory_and_never_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    async with (
        web_site({}) as site,
        engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine,
    ):
        set_setting(engine, "model_hub", site.url(""))
        await said(engine, "The kettle leaks")
        assert not (await engine.services.memory.stats()).model.is_offered, "there was nothing to find yet"
        await said(engine, "What did the plumber say?")
        assert (await engine.services.memory.stats()).model.is_offered
        engine.services.memory.decline_model()
        await said(engine, "And the gardener?")
        assert not (await engine.services.memory.stats()).model.is_offered
        assert site.requests == []


def _nothing(name: str) -> None:
    """No package has this name."""


async def test_a_search_says_how_much_is_indexed_again(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        for number in range(3):
            await said(engine, f"The kettle number {number} leaks")
        memory = engine.services.memory
        await memory.rebuild("the window")
        begun = await memory.reader.search(MemorySearchParams(text="kettle"), CancelSignal())
        await remembered(engine)
        done = await memory.reader.search(MemorySearchParams(text="kettle"), CancelSignal())
    assert "Memory is being indexed again (0 %): some of it cannot be found yet." in begun.remark
    assert "indexed again" not in done.remark
    assert len(done.hits) == 4  # the answers are equal

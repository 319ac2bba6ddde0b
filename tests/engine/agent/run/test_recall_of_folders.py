"""What was said in another folder is not given unasked, and the person is asked about it once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from errand.engine.core.settings import Settings
from errand.engine.storage.records import nodes as node_rows
from errand.protocol.blocks import RecallBlock, ToolResultBlock, WithheldEntries
from errand.protocol.conversations import Node
from errand.protocol.events import ConversationUpdate, TaskMessage
from tests.engine.memory.test_memory import a_node
from tests.support.engine_parts import EngineParts, branch, engine_parts, remembered
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

TIDES = "The tide tables of the harbour are in /srv/tides.csv"
ASK_TIDES = "where are the tide tables of the harbour?"


def server(*replies: Reply) -> ModelServer:
    waiting = list(replies)

    def answer(request: ReceivedRequest) -> Reply:
        is_asked = ASK_TIDES in str(request.messages)
        return waiting.pop(0) if is_asked and waiting else Reply(text="Noted.")

    return ModelServer(answer=answer)


def in_folder(engine: EngineParts, name: str) -> EngineParts:
    folder = engine.workspace.parent / name
    folder.mkdir(exist_ok=True)
    return replace(engine, workspace=folder)


async def say(engine: EngineParts, text: str, *, attended: bool | None = None) -> str:
    """Hold a conversation that memory has; its id."""
    task = await engine.start(text, mode="chat", attended=attended)
    await engine.watcher.end(task.id)
    await remembered(engine)
    return task.conversation_id


async def announce(engine: EngineParts, nodes: Sequence[Node]) -> None:
    for node in nodes:
        engine.services.database.journal.put(node_rows.save(node))
        engine.services.log.publish(TaskMessage(node=node))
    await engine.services.log.flush()


async def recalls(engine: EngineParts, conversation_id: str) -> list[RecallBlock]:
    nodes = await branch(engine, conversation_id)
    return [block for node in nodes for block in node.blocks if isinstance(block, RecallBlock)]


def pairs(settings: Settings) -> list[tuple[str, str, bool]]:
    return [(Path(pair.first).name, Path(pair.second).name, pair.shares) for pair in settings.values.folder_pairs]


async def test_the_person_is_asked_once_and_nothing_is_given_until_then(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, server()) as engine:
        zwolle, utrecht = in_folder(engine, "zwolle"), in_folder(engine, "utrecht")
        await say(zwolle, TIDES)
        (recall,) = await recalls(engine, await say(utrecht, ASK_TIDES, attended=True))
        assert recall.entries == ()
        assert recall.withheld == (WithheldEntries(folder=str(zwolle.workspace), count=1),)
        assert recall.folder == str(utrecht.workspace)
        later = await recalls(engine, await say(utrecht, f"{ASK_TIDES} now", attended=True))
        assert all(block.withheld == () for block in later)
        assert TIDES not in [entry.text for block in later for entry in block.entries]
        settings = engine.services.settings
        assert pairs(settings) == [("utrecht", "zwolle", False)]
        engine.services.memory.sharing.decide(str(utrecht.workspace), str(zwolle.workspace), "share")
        (recall,) = await recalls(engine, await say(utrecht, f"{ASK_TIDES} please", attended=True))
        assert TIDES in [entry.text for entry in recall.entries]
        assert recall.withheld == ()


async def test_of_many_folders_the_person_is_asked_about_three_at_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, server()) as engine:
        for name in ("zwolle", "arnhem", "breda", "delft"):
            await say(in_folder(engine, name), f"{TIDES} of {name}")
        utrecht = in_folder(engine, "utrecht")
        (first,) = await recalls(engine, await say(utrecht, ASK_TIDES, attended=True))
        (second,) = await recalls(engine, await say(utrecht, f"{ASK_TIDES} now", attended=True))
        assert (len(first.withheld), len(second.withheld)) == (3, 1)
        asked = {Path(each.folder).name for each in (*first.withheld, *second.withheld)}
        assert asked == {"zwolle", "arnhem", "breda", "delft"}


async def test_nobody_is_asked_where_nobody_is(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, server()) as engine:
        await say(in_folder(engine, "zwolle"), TIDES)
        conversation_id = await say(in_folder(engine, "utrecht"), ASK_TIDES, attended=False)
        assert await recalls(engine, conversation_id) == []
        assert pairs(engine.services.settings) == []


async def test_a_search_says_what_is_there_and_not_shared(tmp_path: Path) -> None:
    search = Reply(calls=(Call("search_memory", {"query": "tide tables of the harbour"}),))
    async with engine_parts(tmp_path, server(search, DONE)) as engine:
        zwolle = in_folder(engine, "zwolle")
        await say(zwolle, TIDES)
        nodes = await branch(engine, await say(in_folder(engine, "utrecht"), ASK_TIDES))
        (result,) = [block for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock)][:1]
    assert f"entries in {zwolle.workspace}, not shared with this folder" in result.text
    assert "/srv/tides.csv" not in result.text


async def test_an_imported_conversation_is_of_the_folder_named_in_its_file(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, server()) as engine:
        zwolle, utrecht = in_folder(engine, "zwolle"), in_folder(engine, "utrecht")
        database = engine.services.database
        conversation = await database.conversations.get(await say(zwolle, TIDES))
        assert conversation is not None
        imported = msgspec.structs.replace(  # as imports store it, until a person takes over the folder
            conversation,
            workspace=str(engine.services.paths.workspaces / conversation.id),
            proposed_workspace=f"{utrecht.workspace}/../zwolle/",
        )
        engine.services.log.publish(ConversationUpdate(conversation=imported))
        await engine.services.log.flush()
        await remembered(engine)
        (recall,) = await recalls(engine, await say(utrecht, ASK_TIDES, attended=True))
        assert recall.entries == ()
        assert recall.withheld == (WithheldEntries(folder=str(zwolle.workspace), count=1),)
        (recall,) = await recalls(engine, await say(zwolle, ASK_TIDES, attended=True))
        assert TIDES in [entry.text for entry in recall.entries]


async def test_a_conversation_that_is_moved_leaves_what_was_said_in_its_old_folder(tmp_path: Path) -> None:
    search = Reply(calls=(Call("search_memory", {"query": "tide tables of the harbour"}),))
    async with engine_parts(tmp_path, server(Reply(text="Noted."), search, DONE)) as engine:
        zwolle, utrecht = in_folder(engine, "zwolle"), in_folder(engine, "utrecht")
        conversation = await engine.services.database.conversations.get(await say(zwolle, TIDES))
        assert conversation is not None
        moved = msgspec.structs.replace(conversation, workspace=str(utrecht.workspace))
        engine.services.log.publish(ConversationUpdate(conversation=moved))
        await engine.services.log.flush()
        await remembered(engine)
        (recall,) = await recalls(engine, await say(utrecht, ASK_TIDES, attended=True))
        assert recall.entries == ()
        assert recall.withheld == (WithheldEntries(folder=str(zwolle.workspace), count=1),)
        task = await engine.start(f"{ASK_TIDES} now", mode="chat", conversation_id=conversation.id)
        await engine.watcher.end(task.id)
        nodes = await branch(engine, conversation.id)
        results = [block.text for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock)]
        assert "/srv/tides.csv" in results[0]  # its own words are its own


async def test_an_equal_text_of_another_folder_does_not_hide_that_of_the_own(tmp_path: Path) -> None:
    search = Reply(calls=(Call("search_memory", {"query": "tide tables of the harbour"}),))
    async with engine_parts(tmp_path, server(Reply(text="Noted."), search, DONE)) as engine:
        zwolle, utrecht = in_folder(engine, "zwolle"), in_folder(engine, "utrecht")
        await say(utrecht, TIDES)
        await say(zwolle, TIDES)
        recall, *_ = await recalls(engine, await say(utrecht, ASK_TIDES, attended=True))
        assert TIDES in [entry.text for entry in recall.entries]
        nodes = await branch(engine, await say(utrecht, f"{ASK_TIDES} now"))
        (result,) = [block for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock)][:1]
        assert TIDES in result.text
        assert "User, 2 times" not in result.text


async def test_much_of_other_folders_leaves_room_for_the_own(tmp_path: Path) -> None:
    search = Reply(calls=(Call("search_memory", {"query": "tide tables of the harbour"}),))
    async with engine_parts(tmp_path, server(Reply(text="Noted."), search, DONE)) as engine:
        zwolle, utrecht = in_folder(engine, "zwolle"), in_folder(engine, "utrecht")
        await say(
            utrecht, f"{TIDES}, and much else is there, such as charts, pilots, lists of lights and radio signals"
        )
        conversation_id = await say(zwolle, TIDES)
        others = [a_node(f"node_{at}", conversation_id, f"Tide tables, harbour {at}") for at in range(90)]
        await announce(engine, others[:30])
        await remembered(engine)
        recall, *_ = await recalls(engine, await say(utrecht, ASK_TIDES, attended=True))
        assert [entry.text[: len(TIDES)] for entry in recall.entries][:1] == [TIDES]
        await announce(engine, others[30:])
        await remembered(engine)
        nodes = await branch(engine, await say(utrecht, f"{ASK_TIDES} now"))
        (result,) = [block for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock)][:1]
        assert "radio signals" in result.text


async def test_an_entry_that_is_not_wanted_is_never_given_again(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, server()) as engine:
        await say(engine, TIDES)
        (recall,) = await recalls(engine, await say(engine, ASK_TIDES))
        node_id = recall.entries[0].node_id
        engine.services.memory.set_given(node_id, again=False)
        later = await recalls(engine, await say(engine, f"{ASK_TIDES} now"))
        assert node_id not in [entry.node_id for block in later for entry in block.entries]
        engine.services.memory.set_given(node_id, again=True)
        (recall,) = await recalls(engine, await say(engine, f"{ASK_TIDES} please"))
        assert node_id in [entry.node_id for entry in recall.entries]

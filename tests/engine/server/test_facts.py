"""Facts through the dispatcher: pinned, changed, accepted, removed, announced, and written into the audit."""

from pathlib import Path

import msgspec
import pytest

from errand.engine.memory.facts import MAX_PINNED, MAX_PROPOSED, FactDraft
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.events import ConversationUpdate, FactRemoved, FactUpdate, TaskMessage
from errand.protocol.memory import Fact, MemoryFactsResult, MemoryLogResult, MemoryPinResult
from tests.engine.data.test_forgetting import places
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.records import conversation, node


async def facts_of(client: RawClient, request_id: str = "facts") -> tuple[Fact, ...]:
    return msgspec.convert((await client.ask("memory/facts", request_id))["result"], MemoryFactsResult).facts


def fact_in(answer: JsonObject) -> Fact:
    assert "result" in answer, answer
    return msgspec.convert(answer["result"], MemoryPinResult).fact


async def test_a_fact_is_pinned_changed_removed_and_announced_to_every_client(engine: EngineServer) -> None:
    async with raw_client(engine) as client, raw_client(engine, client_id="other") as other:
        await other.ask("subscribe", 1, scope="all", detail="summary")
        pinned = fact_in(await client.ask("memory/pin", 1, text="  Answer in\n German. "))
        assert (pinned.text, pinned.scope, pinned.status) == ("Answer in German.", "always", "pinned")
        edited = fact_in(await client.ask("memory/pin", 2, id=pinned.id, text="Answer in French.", scope="me"))
        assert edited == msgspec.structs.replace(pinned, text="Answer in French.", scope="me")
        assert await facts_of(client) == (edited,)
        assert (await client.ask("memory/unpin", 3, id=pinned.id))["result"] == {}
        assert await facts_of(client, "after") == ()
        events = [(await other.event()).event for _ in range(3)]
        log = msgspec.convert((await client.ask("memory/log", 4))["result"], MemoryLogResult)
    assert events == [FactUpdate(fact=pinned), FactUpdate(fact=edited), FactRemoved(fact_id=pinned.id)]
    assert [(entry.action, entry.about) for entry in log.entries] == [
        ("unpinned", f"{pinned.id} (me)"),
        ("edited", f"{pinned.id} (me)"),
        ("pinned", f"{pinned.id} (always)"),
    ]
    assert {entry.by for entry in log.entries} == {pinned.by}


async def test_the_event_log_keeps_the_newest_text_of_a_fact_alone(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    async with raw_client(engine) as client:
        await client.ask("memory/pin", 1, text="One.", newId="fact_a")
        await client.ask("memory/pin", 2, text="Two.", newId="factxa")
        edited = fact_in(await client.ask("memory/pin", 3, id="fact_a", text="Three."))
        stored = [record.event for record in await engine.database.events.after(0)]
        assert [event.fact.text for event in stored if isinstance(event, FactUpdate)] == ["Two.", "Three."]
        assert stored[-1] == FactUpdate(fact=edited)
        await client.ask("memory/unpin", 4, id="fact_a")
    *first, last = [record.event for record in await engine.database.events.after(0)]
    assert last == FactRemoved(fact_id="fact_a")
    assert [event.fact.text for event in first if isinstance(event, FactUpdate)] == ["Two."]


@pytest.mark.parametrize("way", ["edited", "removed", "merged"])
async def test_no_file_of_the_data_folder_has_the_earlier_text_of_a_fact(engine: EngineServer, way: str) -> None:
    home = engine.services.paths.home
    async with raw_client(engine) as client:
        fact = fact_in(await client.ask("memory/pin", 1, text="The zeppelin is moored in Ghent."))
        fact = fact_in(await client.ask("memory/pin", 2, id=fact.id, text="The walrus is moored in Ghent."))
        assert places(home, "walrus") and places(home, "zeppelin") == {}
        if way == "merged":
            other = fact_in(await client.ask("memory/pin", 3, text="It is called Ethelbert, the quokka."))
            await client.ask("memory/pin", 4, id=other.id, text="It is called Ethelbert.")
        if way == "edited":
            await client.ask("memory/pin", 5, id=fact.id, text="It is called Ethelbert.")
        else:
            await client.ask("memory/unpin", 6, id=fact.id)
        assert places(home, "walrus", "quokka") == {}
        assert places(home, "Ethelbert") or way == "removed"
        again = fact_in(await client.ask("memory/pin", 2, id=fact.id, text="The walrus is moored in Ghent."))
        assert again.text == ("It is called Ethelbert." if way == "edited" else "")
        assert [each.text for each in await facts_of(client)] == ["It is called Ethelbert."] * (way != "removed")


async def test_a_repeated_command_finds_the_fact_that_it_made(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        first = fact_in(await client.ask("memory/pin", 1, text="Use tabs.", newId="fact_own"))
        again = fact_in(await client.ask("memory/pin", 2, text="Use tabs.", newId="fact_own"))
        assert again == first and first.id == "fact_own"
        equal = fact_in(await client.ask("memory/pin", 3, text="USE TABS."))
        assert equal == first
        assert fact_in(await client.ask("memory/pin", 4, id="fact_own", text="Use tabs.")) == first
        assert await facts_of(client) == (first,)
        log = msgspec.convert((await client.ask("memory/log", 5))["result"], MemoryLogResult)
    assert len(log.entries) == 1


async def test_a_fact_about_a_folder_has_its_real_path(engine: EngineServer, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    async with raw_client(engine) as client:
        link = str(tmp_path / "link")
        fact = fact_in(await client.ask("memory/pin", 1, text="The tests need Docker.", scope="folder", folder=link))
        assert fact.folder == str(real)
        text = "The tests need Podman."
        assert fact_in(await client.ask("memory/pin", 2, id=fact.id, text=text)).folder == str(real)
        everywhere = fact_in(await client.ask("memory/pin", 3, id=fact.id, scope="always"))
        assert (everywhere.scope, everywhere.folder) == ("always", "")
        refused = error_of(await client.ask("memory/pin", 4, id=fact.id, scope="folder"))
        assert refused[1] == "invalid_params" and "absolute path" in refused[2]


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "a new fact needs one"),
        ({"text": " \u200b\n"}, "empty"),
        ({"text": "x" * 501}, "more than 500 characters"),
        ({"text": "a\x1b[31mb"}, "U+001B"),
        ({"text": "a\u202eb"}, "U+202E"),
        ({"text": "a", "scope": "folder"}, "absolute path"),
        ({"text": "a", "folder": "/"}, "only a fact with the scope `folder`"),
        ({"text": "a", "scope": "folder", "folder": "relative"}, "is no folder"),
        ({"text": "a", "scope": "folder", "folder": "/no/such/folder"}, "is no folder"),
        ({"text": "a", "scope": "folder", "folder": "/nul\0"}, "is no folder"),
        ({"text": "a", "scope": "folder", "folder": "/" + "x" * 5_000}, "cannot be looked at"),
        ({"text": "a", "scope": "everywhere"}, "everywhere"),
        ({"text": "a", "newId": "a b"}, "newId"),
    ],
)
async def test_an_invalid_fact_is_refused_with_the_reason(
    engine: EngineServer, params: dict[str, JsonValue], reason: str
) -> None:
    async with raw_client(engine) as client:
        code, message = error_of(await client.ask("memory/pin", 1, **params))[1:3]
        assert code == "invalid_params" and reason in message
        assert await facts_of(client) == ()


async def test_a_fact_that_is_not_there_cannot_be_changed_or_removed(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        assert error_of(await client.ask("memory/pin", 1, id="fact_x", text="a"))[1] == "not_found"
        assert error_of(await client.ask("memory/unpin", 2, id="fact_x"))[1] == "not_found"
        assert error_of(await client.ask("memory/pin", 3, text="a", nodeId="none"))[1] == "not_found"
        assert error_of(await client.ask("memory/pin", 4, text="a", conversationId="none"))[1] == "not_found"


async def test_a_fact_knows_where_it_was_said(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    engine.log.publish(TaskMessage(node=node("n1")))
    await engine.log.flush()
    async with raw_client(engine) as client:
        fact = fact_in(await client.ask("memory/pin", 1, text="Ring twice.", nodeId="n1"))
        elsewhere = await client.ask("memory/pin", 2, text="Knock.", nodeId="n1", conversationId="c2")
    assert (fact.conversation_id, fact.node_id) == ("c1", "n1")
    assert error_of(elsewhere)[1] == "not_found"


async def test_proposed_facts_are_accepted_or_declined(engine: EngineServer) -> None:
    facts = engine.services.facts
    tabs, is_new = await facts.propose(FactDraft("Use tabs.", "always"), "Assistant")
    assert is_new and tabs.status == "proposed"
    assert await facts.propose(FactDraft("use TABS.", "always"), "Assistant") == (tabs, False)
    spaces, _ = await facts.propose(FactDraft("Use spaces.", "always"), "Assistant")
    tea, _ = await facts.propose(FactDraft("I drink tea.", "me"), "Assistant")
    async with raw_client(engine) as client:
        accepted = fact_in(await client.ask("memory/pin", 1, id=tabs.id))
        assert accepted == msgspec.structs.replace(tabs, status="pinned")
        await client.ask("memory/unpin", 2, id=spaces.id)
        by_text = fact_in(await client.ask("memory/pin", 3, text="I drink tea.", scope="me"))
        assert by_text == msgspec.structs.replace(tea, status="pinned")
        log = msgspec.convert((await client.ask("memory/log", 4))["result"], MemoryLogResult)
    assert [entry.action for entry in log.entries] == ["accepted", "declined", "accepted", *["proposed"] * 3]
    assert [entry.by for entry in log.entries[-3:]] == ["Assistant"] * 3


async def test_two_equal_facts_cannot_arise_by_a_change(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        await client.ask("memory/pin", 1, text="Use tabs.")
        other = fact_in(await client.ask("memory/pin", 2, text="Use spaces."))
        assert error_of(await client.ask("memory/pin", 3, id=other.id, text="use tabs."))[1] == "conflict"


async def test_proposals_cannot_use_up_the_room_for_what_people_pin(engine: EngineServer) -> None:
    facts = engine.services.facts
    proposed = [(await facts.propose(FactDraft(f"It is {number}.", "me"), "a"))[0] for number in range(MAX_PROPOSED)]
    for number in range(MAX_PINNED):
        await facts.pin(FactDraft(f"It is {number}.", "always"), f"fact_{number}", "me")
    async with raw_client(engine) as client:
        for request, params in enumerate(({"text": "One more."}, {"id": proposed[0].id}), start=1):
            code, message = error_of(await client.ask("memory/pin", request, **params))[1:3]
            assert code == "conflict" and "Remove one first" in message
        edited = fact_in(await client.ask("memory/pin", 3, id="fact_0", text="It is nothing."))
        assert edited.text == "It is nothing."
        await client.ask("memory/unpin", 4, id="fact_1")
        assert fact_in(await client.ask("memory/pin", 5, id=proposed[0].id)).status == "pinned"

"""Reads and changes through the dispatcher."""

import asyncio
import sys
from datetime import timedelta

import msgspec
import pytest

from errand.engine.storage.records import memory_log
from errand.protocol.agents import AgentListResult
from errand.protocol.asks import AskListResult, Grant, GrantListResult
from errand.protocol.conversations import (
    ConversationChangeResult,
    ConversationListResult,
    ConversationNodesResult,
    ConversationSearchResult,
)
from errand.protocol.engine import EngineStatusResult
from errand.protocol.events import AgentUpdate, AskUpdate, ConversationUpdate, GrantUpdate, TaskMessage, TaskUpdate
from errand.protocol.memory import MemoryLogResult
from errand.protocol.settings import ModelListResult, SettingsSetResult
from errand.protocol.tasks.methods import TaskListResult
from tests.support.connections import error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.processes import below, until
from tests.support.records import NOW, agent, ask, conversation, grant, node, task


async def store(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    engine.log.publish(ConversationUpdate(conversation=conversation("c2")))
    parent = None
    for number in range(5):
        engine.log.publish(TaskMessage(node=node(f"n{number}", parent, text=f"Walnut number {number}.")))
        parent = f"n{number}"
    engine.log.publish(TaskMessage(node=node("other", conversation_id="c2")))
    engine.log.publish(AgentUpdate(agent=agent(head_id="n4")))
    engine.log.publish(TaskUpdate(task=task()))
    engine.log.publish(AskUpdate(ask=ask()))
    engine.log.publish(GrantUpdate(grant=grant()))
    await engine.log.flush()


async def test_pages_of_a_branch_go_from_the_head_towards_the_root(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        answer = await client.ask("conversation/nodes", conversationId="c1", limit=2)
        newest = msgspec.convert(answer["result"], ConversationNodesResult)
        assert ([page_node.id for page_node in newest.nodes], newest.has_more) == (["n3", "n4"], True)
        answer = await client.ask("conversation/nodes", 2, conversationId="c1", beforeId="n3", limit=3)
        older = msgspec.convert(answer["result"], ConversationNodesResult)
        assert ([page_node.id for page_node in older.nodes], older.has_more) == (["n0", "n1", "n2"], False)
        answer = await client.ask("conversation/nodes", 3, conversationId="c2")
        (left,) = msgspec.convert(answer["result"], ConversationNodesResult).nodes
        assert left.id == "other"  # no agent is there any more: the newest node counts
        foreign = await client.ask("conversation/nodes", 4, conversationId="c1", leafId="other")
        assert error_of(foreign)[1] == "not_found"


async def test_default_model_comes_from_the_setting_if_there_is_one(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        await client.ask("settings/set", name="default_model", value="mistral/small")
        chosen = msgspec.convert((await client.ask("model/list", 2))["result"], ModelListResult)
        await client.ask("settings/set", 3, name="default_model", value="")
        model_list = msgspec.convert((await client.ask("model/list", 4))["result"], ModelListResult)
    assert chosen.default == "mistral/small"
    assert (model_list.default, model_list.providers) == (None, chosen.providers)


async def test_a_page_size_out_of_bounds_is_refused(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        for method in ("conversation/list", "task/list"):
            for limit in (0, -1, 501):
                assert error_of(await client.ask(method, limit=limit))[:2] == (-32602, "invalid_params")


async def test_tasks_come_in_pages_and_asks_of_several_tasks_in_one_answer(engine: EngineServer) -> None:
    await store(engine)
    newer = task("t2", started_at=NOW + timedelta(seconds=1))
    engine.log.publish(TaskUpdate(task=newer))
    engine.log.publish(AskUpdate(ask=msgspec.structs.replace(ask("k2"), task_id="t2", status="answered")))
    await engine.log.flush()
    async with raw_client(engine) as client:
        first = msgspec.convert((await client.ask("task/list", 1, limit=1))["result"], TaskListResult)
        second = await client.ask("task/list", 2, limit=1, cursor=first.next_cursor)
        assert first.tasks == (newer,)
        assert msgspec.convert(second["result"], TaskListResult) == TaskListResult(tasks=(task(),))
        both = await client.ask("ask/list", 3, waiting=False, taskIds=["t1", "t2"])
        assert [listed_ask.id for listed_ask in msgspec.convert(both["result"], AskListResult).asks] == ["k2", "k1"]
        waiting = await client.ask("ask/list", 4, taskIds=["t2"])
        assert msgspec.convert(waiting["result"], AskListResult).asks == ()
        many = await client.ask("ask/list", 5, taskIds=[str(number) for number in range(501)])
        assert error_of(many)[:2] == (-32602, "invalid_params")


async def test_a_search_finds_titles_too_but_not_inside_one_conversation(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        everywhere = await client.ask("conversation/search", text="tit")
        inside = await client.ask("conversation/search", 2, text="tit", conversationId="c1")
    search_result = msgspec.convert(everywhere["result"], ConversationSearchResult)
    assert search_result == ConversationSearchResult(hits=(), titles=(conversation("c2"), conversation()), words="tit")
    assert msgspec.convert(inside["result"], ConversationSearchResult).titles == ()


async def test_a_new_name_or_pin_leaves_a_conversation_in_its_place_and_archiving_dates_it(
    engine: EngineServer,
) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        await client.ask("conversation/change", 1, conversationId="c1", title="Other")
        answer = await client.ask("conversation/change", 2, conversationId="c1", pinned=True, archived=False)
        changed = msgspec.convert(answer["result"], ConversationChangeResult).conversation
        assert (changed.title, changed.updated_at) == ("Other", NOW)
        pinned = await client.ask("conversation/list", 8, pinned=True)
        answer = await client.ask("conversation/change", 9, conversationId="c1", archived=True)
    assert msgspec.convert(pinned["result"], ConversationListResult).conversations == (changed,)
    assert msgspec.convert(answer["result"], ConversationChangeResult).conversation.updated_at > NOW


async def test_only_the_beginning_of_a_long_pasted_query_is_searched(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        answer = await client.ask("conversation/search", text="ab " * 300_000)
        assert answer["result"] == {"hits": [], "titles": [], "words": ("ab " * 2_000)[:5_000].strip(), "advice": ""}


async def test_search_finds_nodes(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        answer = await client.ask("conversation/search", text="walnut 3")
        hits = msgspec.convert(answer["result"], ConversationSearchResult).hits
        assert [hit.node_id for hit in hits] == ["n3"]


async def test_lists_show_what_is_stored(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        asks = msgspec.convert((await client.ask("ask/list"))["result"], AskListResult)
        grants = msgspec.convert((await client.ask("grant/list"))["result"], GrantListResult)
        agents = msgspec.convert((await client.ask("agent/list"))["result"], AgentListResult)
        tasks = msgspec.convert((await client.ask("task/list", active=True))["result"], TaskListResult)
        assert (asks.asks, grants.grants, agents.agents, tasks.tasks) == (
            (ask(),),
            (grant(),),
            (agent(head_id="n4"),),
            (task(),),
        )
        assert (await client.ask("task/plans", taskId="t1"))["result"] == {"plans": []}
        assert error_of(await client.ask("task/get", taskId="none"))[1] == "not_found"
        assert error_of(await client.ask("conversation/get", conversationId="none"))[1] == "not_found"


async def test_renamed_conversation_is_announced_to_all_clients(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine, client_id="a") as changes, raw_client(engine, client_id="b") as watches:
        await watches.ask("subscribe")
        await changes.ask("conversation/change", conversationId="c1", title=" New ", pinned=True)
        event = (await watches.event()).event
        assert isinstance(event, ConversationUpdate)
        assert (event.conversation.title, event.conversation.pinned) == ("New", True)
        empty = await changes.ask("conversation/change", 2, conversationId="c1", title=" ")
        assert error_of(empty)[1] == "invalid_params"


async def test_a_grant_is_revoked_once(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        first = msgspec.convert((await client.ask("grant/revoke", 1, grantId="g1"))["result"], dict[str, Grant])
        again = msgspec.convert((await client.ask("grant/revoke", 2, grantId="g1"))["result"], dict[str, Grant])
        assert first == again
        assert first["grant"].revoked_at is not None
        assert (await client.ask("grant/list", 3))["result"] == {"grants": [], "unreadable": 0}


async def test_settings_are_changed_and_wrong_ones_refused(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        answer = await client.ask("settings/set", 1, name="max_turns", value=7)
        settings = msgspec.convert(answer["result"], SettingsSetResult).settings
        assert {setting.name: setting.value for setting in settings}["max_turns"] == 7
        for number, (name, value) in enumerate([("max_turns", "many"), ("max_turns", 0), ("colour", 1)]):
            refused = await client.ask("settings/set", f"w{number}", name=name, value=value)
            assert error_of(refused)[:2] == (-32602, "invalid_params")


async def test_the_status_is_measured(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        status = msgspec.convert((await client.ask("engine/status"))["result"], EngineStatusResult)
        assert (status.clients, status.running_tasks, status.instance_id) == (1, 1, "engine_test")
        assert status.memory_bytes > 10_000_000
        assert status.cpu_seconds > 0


async def test_the_audit_of_memory_is_a_page_of_bounded_size(engine: EngineServer) -> None:
    engine.database.journal.put(memory_log.add("pruned", "Errand", "12 vectors"))
    await engine.database.journal.flush()
    async with raw_client(engine) as client:
        page = msgspec.convert((await client.ask("memory/log", 1))["result"], MemoryLogResult)
        assert ([entry.about for entry in page.entries], page.has_more) == (["12 vectors"], False)
        assert error_of(await client.ask("memory/log", 2, limit=501))[1] == "invalid_params"


@pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")
async def test_a_message_that_is_being_written_starts_the_process_that_its_model_needs(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        await client.ask("model/warm_up")  # nothing is configured
        await client.ask("model/warm_up", 2, model="anthropic/claude-sonnet-5-5")
        await client.ask("model/warm_up", 3, model="no model id")
        assert await asyncio.to_thread(below, "library_child") == []
        await client.ask("settings/set", 4, name="default_model", value="gemini/gemini-3.8-flash")
        await client.ask("model/warm_up", 5)
        await until(lambda: len(below("library_child")) == 1)
        await client.ask("model/warm_up", 6, model="react/gemini/gemini-3.8-flash")
        assert len(await asyncio.to_thread(below, "library_child")) == 1

"""Every way on which a node leaves the engine adds how it is shown; nothing of that is stored."""

import msgspec

from errand.engine.tools.call_display import with_facts
from errand.protocol.base import JsonObject
from errand.protocol.blocks import Block, ResultFacts, ToolCallBlock, ToolResultBlock
from errand.protocol.comparisons import ConversationCompareResult
from errand.protocol.conversations import ConversationNodesResult, Node
from errand.protocol.engine import SubscribeResult
from errand.protocol.events import AgentUpdate, ConversationUpdate, TaskMessage
from tests.support.connections import raw_client
from tests.support.engine_server import EngineServer
from tests.support.records import agent, conversation, node

CALL = ToolCallBlock(call_id="call_1", tool="code", arguments={"action": "read", "path": "a.py"})


def with_call(node_id: str, parent_id: str | None = None) -> Node:
    return msgspec.structs.replace(node(node_id, parent_id), blocks=(CALL,))


async def store(engine: EngineServer) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    for call_node in (with_call("n1"), with_call("n2", "n1"), with_call("n3", "n1")):
        engine.log.publish(TaskMessage(node=call_node))
    engine.log.publish(AgentUpdate(agent=agent(head_id="n2")))
    await engine.log.flush()


def shown(blocks: tuple[Block, ...]) -> str:
    (call,) = blocks
    assert isinstance(call, ToolCallBlock)
    return f"{call.display.done} {call.display.target}"


async def test_pages_and_compared_branches_contain_call_displays(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        page = msgspec.convert(
            (await client.ask("conversation/nodes", conversationId="c1"))["result"], ConversationNodesResult
        )
        assert [shown(tree_node.blocks) for tree_node in page.nodes] == ["read a.py", "read a.py"]
        answer = await client.ask("conversation/compare", 2, aNodeId="n2", bNodeId="n3")
        compared = msgspec.convert(answer["result"], ConversationCompareResult)
        assert [shown(tree_node.blocks) for tree_node in (*compared.a.nodes, *compared.b.nodes)] == [
            "read a.py",
            "read a.py",
        ]


async def test_snapshots_and_events_contain_call_displays(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client, raw_client(engine, client_id="later") as later:
        answer = await client.ask("subscribe", scope="c1", detail="full")
        subscribed = msgspec.convert(answer["result"], SubscribeResult)
        assert subscribed.snapshot is not None
        assert [shown(tree_node.blocks) for tree_node in subscribed.snapshot.nodes] == ["read a.py", "read a.py"]
        engine.log.publish(TaskMessage(node=with_call("n4", "n2")))
        await engine.log.flush()
        live = (await client.event()).event
        await later.request("subscribe", scope="c1", detail="full", after=5, epoch=engine.log.epoch)
        replayed = (await later.event()).event
        assert isinstance(live, TaskMessage)
        assert isinstance(replayed, TaskMessage)
        assert (shown(live.node.blocks), shown(replayed.node.blocks)) == ("read a.py", "read a.py")


async def test_neither_display_nor_facts_are_stored(engine: EngineServer) -> None:
    await store(engine)
    result = ToolResultBlock(call_id="call_1", tool="code", text="x", is_error=False, details={"diff": "+x"})
    engine.log.publish(
        TaskMessage(node=msgspec.structs.replace(node("n4", "n2"), role="tool_result", blocks=(result,)))
    )
    await engine.log.flush()
    stored = await engine.database.nodes.several(["n1", "n4"])
    assert [tree_node.blocks for tree_node in stored] == [(CALL,), (result,)]
    assert b"display" not in msgspec.json.encode(stored)
    assert b"facts" not in msgspec.json.encode(stored)
    async with raw_client(engine) as client:
        answer = await client.ask("conversation/nodes", conversationId="c1", leafId="n4", limit=1)
        (page,) = msgspec.convert(answer["result"], ConversationNodesResult).nodes
        assert page.blocks == (with_facts(result),)


def test_a_number_of_an_imported_result_may_be_of_any_size() -> None:
    details: JsonObject = {"duration_ms": 10**400, "added": -1, "removed": 2}
    result = ToolResultBlock(call_id="call_1", tool="code", text="", is_error=False, details=details)
    assert with_facts(result).facts == ResultFacts(removed=2)

"""Forks and the tree of a conversation, through the dispatcher."""

from typing import Literal

import msgspec

from errand.protocol.blocks import TextBlock, ThinkingBlock
from errand.protocol.conversations import ConversationNodesResult, ConversationTreeResult, Fork, TreeHead
from errand.protocol.engine import SubscribeResult
from errand.protocol.events import AgentUpdate, ConversationUpdate, TaskMessage, TaskUpdate, TextDelta
from tests.support.connections import error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.records import agent, conversation, node, task

OF_A = Fork(parent_id="a", child_ids=("b", "b2"))


async def store(engine: EngineServer) -> None:
    """Two branches below one message; the agent is on the older one."""
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    for node_id, parent_id in (("a", None), ("b", "a"), ("b2", "a"), ("c", "b")):
        engine.log.publish(TaskMessage(node=node(node_id, parent_id)))
    engine.log.publish(AgentUpdate(agent=agent(head_id="c", version=1)))
    engine.log.publish(TaskUpdate(task=task()))
    await engine.log.flush()


async def test_a_page_of_nodes_says_where_the_conversation_forks(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        answer = await client.ask("conversation/nodes", 1, conversationId="c1")
        assert msgspec.convert(answer["result"], ConversationNodesResult).forks == (OF_A,)
        part = await client.ask("conversation/nodes", 2, conversationId="c1", leafId="b")
        goes_on = Fork(parent_id="b", child_ids=("c",))
        assert msgspec.convert(part["result"], ConversationNodesResult).forks == (OF_A, goes_on)


async def test_a_page_ends_at_the_newest_leaf_or_at_the_head_of_an_agent(engine: EngineServer) -> None:
    await store(engine)
    engine.log.publish(TaskMessage(node=node("d", "b2")))
    engine.log.publish(AgentUpdate(agent=agent("a2", head_id="b2", version=1)))
    await engine.log.flush()

    async with raw_client(engine) as client:

        async def ids(**params: str | bool) -> list[str]:
            answer = await client.ask("conversation/nodes", 1, conversationId="c1", **params)
            return [page_node.id for page_node in msgspec.convert(answer["result"], ConversationNodesResult).nodes]

        assert await ids(leafId="b2") == ["a", "b2"]
        assert await ids(leafId="b2", toLeaf=True) == ["a", "b2", "d"]
        assert await ids(leafId="a", toLeaf=True) == ["a", "b2", "d"]
        assert await ids(agentId="a2") == ["a", "b2"]
        assert error_of(await client.ask("conversation/nodes", conversationId="c1", agentId="a9"))[1] == "not_found"


async def test_a_page_has_the_text_so_far_of_a_reply_that_streams(engine: EngineServer) -> None:
    await store(engine)
    engine.log.publish(TaskMessage(node=node("d", "c", status="streaming")))
    await engine.log.flush()
    written: tuple[tuple[int, Literal["text", "thinking", "toolCall"], str], ...] = (
        (0, "thinking", "Hm."),
        (1, "toolCall", "{"),
        (2, "text", "I see"),
    )
    for block, kind, text in written:
        engine.log.deltas.add(
            TextDelta(conversation_id="c1", task_id="t1", node_id="d", block=block, kind=kind, offset=0, text=text),
            after=engine.log.head,
        )
    engine.log.deltas.send()
    async with raw_client(engine) as client:
        answer = await client.ask("conversation/nodes", conversationId="c1", leafId="d", limit=1)
        (page,) = msgspec.convert(answer["result"], ConversationNodesResult).nodes
        assert page.blocks == (ThinkingBlock(text="Hm."), TextBlock(text=""), TextBlock(text="I see"))


async def test_the_snapshot_of_a_conversation_has_the_forks_of_its_nodes(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        answer = await client.ask("subscribe", scope="c1", detail="full")
        snapshot = msgspec.convert(answer["result"], SubscribeResult).snapshot
        assert snapshot is not None
        assert ([page_node.id for page_node in snapshot.nodes], snapshot.forks) == (["a", "b", "c"], (OF_A,))


async def test_the_tree_has_all_branches_with_agents_and_tasks(engine: EngineServer) -> None:
    await store(engine)
    async with raw_client(engine) as client:
        answer = await client.ask("conversation/tree", conversationId="c1")
        tree = msgspec.convert(answer["result"], ConversationTreeResult)
        assert [(page_node.id, page_node.parent_id) for page_node in tree.nodes] == [
            ("a", None),
            ("b", "a"),
            ("b2", "a"),
            ("c", "b"),
        ]
        assert tree.heads == (TreeHead(agent_id="a1", node_id="c"),)
        assert (tree.agents, tree.tasks) == ((agent(head_id="c", version=1),), (task(),))
        assert error_of(await client.ask("conversation/tree", 2, conversationId="none"))[1] == "not_found"

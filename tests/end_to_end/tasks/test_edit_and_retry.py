"""Behaviours 42 and 43: a client edits a message, retries a reply and switches between the branches."""

from errand.client.connection import Connection
from errand.protocol.agents import AGENT_SET_HEAD, AgentSetHeadParams
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import (
    CONVERSATION_NODES,
    CONVERSATION_TREE,
    ConversationNodesParams,
    ConversationTreeParams,
    Fork,
    Node,
)
from errand.protocol.tasks.methods import TASK_RETRY, TASK_START, TaskRetryParams, TaskStartParams
from errand.protocol.tasks.task import Task
from tests.support.command_line import Errand, connected, ended
from tests.support.model_server import ModelServer, Reply


async def shown(client: Connection, task: Task) -> tuple[tuple[Node, ...], tuple[Fork, ...]]:
    """The shown branch and its forks."""
    page = await client.call(CONVERSATION_NODES, ConversationNodesParams(conversation_id=task.conversation_id))
    return page.nodes, page.forks


def words(nodes: tuple[Node, ...]) -> list[str]:
    return [block.text for node in nodes for block in node.blocks if isinstance(block, TextBlock)]


async def test_a_message_is_edited_and_its_reply_tried_again_and_all_branches_are_kept(errand: Errand) -> None:
    replies = [Reply(text=text) for text in ("A poem.", "An ode.", "A better ode.")]
    async with ModelServer(replies=replies) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        await errand.run("run", *model, "write a poem")
        first = await errand.task("completed")
        async with connected(errand) as client:
            (message, _), _ = await shown(client, first)
            start = TaskStartParams(
                prompt="write an ode",
                conversation_id=first.conversation_id,
                sibling_of=message.id,
                model=first.request.model,
                api_base=first.request.api_base,
            )
            second = await ended(client, (await client.call(TASK_START, start)).task)
            (edited, reply), forks = await shown(client, first)
            assert words((edited, reply)) == ["write an ode", "An ode."]
            assert forks == (Fork(parent_id=None, child_ids=(message.id, edited.id)),)
            third = await ended(client, (await client.call(TASK_RETRY, TaskRetryParams(node_id=reply.id))).task)
            (_, better), forks = await shown(client, first)
            assert (second.activity.status, third.request.prompt, words((better,))) == (
                "completed",
                "write an ode",
                ["A better ode."],
            )
            assert forks[1] == Fork(parent_id=edited.id, child_ids=(reply.id, better.id))
            contents = [
                str(message["content"]) for message in server.requests[2].messages if message["role"] != "system"
            ]
            assert contents == ["write an ode"]


async def test_going_to_a_branch_shows_its_newest_end_and_the_next_message_goes_on_there(errand: Errand) -> None:
    replies = [Reply(text=text) for text in ("One.", "Two.", "Three.")]
    async with ModelServer(replies=replies) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        await errand.run("run", *model, "count")
        first = await errand.task("completed")
        async with connected(errand) as client:
            (message, reply), _ = await shown(client, first)
            await ended(client, (await client.call(TASK_RETRY, TaskRetryParams(node_id=reply.id))).task)
            tree = await client.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=first.conversation_id))
            (agent,) = tree.agents
            assert [sent.text for sent in tree.nodes] == ["count", "One.", "Two."]
            assert (tree.nodes[2].parent_id, agent.head_id, len(tree.tasks)) == (message.id, tree.nodes[2].id, 2)
            back = AgentSetHeadParams(agent_id=agent.id, node_id=reply.id, version=agent.version, to_leaf=True)
            await client.call(AGENT_SET_HEAD, back)
            assert words((await shown(client, first))[0]) == ["count", "One."]
            start = TaskStartParams(
                prompt="go on",
                conversation_id=first.conversation_id,
                model=first.request.model,
                api_base=first.request.api_base,
            )
            await ended(client, (await client.call(TASK_START, start)).task)
            assert words((await shown(client, first))[0]) == ["count", "One.", "go on", "Three."]

"""A server that requires its thoughts and signatures back gets them for as long as the branch lives."""

import json

from errand.client.connection import Connection
from errand.protocol.base import JsonObject
from errand.protocol.conversations import CONVERSATION_NODES, ConversationNodesParams
from errand.protocol.tasks.methods import TASK_RETRY, TaskRetryParams
from tests.support.command_line import Errand, connected, ended
from tests.support.model_server import ModelServer, ReceivedRequest, Reply

SIGNED: JsonObject = {"google": {"thought_signature": "c2ln"}}


def strict(received: ReceivedRequest) -> Reply:
    """Refuse each request without what came with a call, in words that say nothing."""
    for message in received.messages:
        if message["role"] == "assistant" and message.get("tool_calls"):
            calls = json.dumps(message["tool_calls"])
            if message.get("reasoning_content") != "I must look" or json.dumps(SIGNED) not in calls:
                return Reply(status=400, error="Bad request.")
    if received.messages[-1]["role"] == "tool":
        return Reply(text="FINE")
    function: JsonObject = {"name": "shell", "arguments": json.dumps({"command": "echo hi"})}
    call: JsonObject = {"index": 0, "id": f"call_{received.turn}", "function": function, "extra_content": SIGNED}
    deltas: tuple[JsonObject, ...] = (
        {"reasoning_content": "I must "},
        {"reasoning_content": "look"},
        {"tool_calls": [call]},
    )
    return Reply(raw=(*(chunk(delta) for delta in deltas), chunk({}, "tool_calls")))


def chunk(delta: JsonObject, finish: str | None = None) -> bytes:
    choice: JsonObject = {"delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]})}\n\n".encode()


async def last_reply(client: Connection, conversation_id: str) -> str:
    page = await client.call(CONVERSATION_NODES, ConversationNodesParams(conversation_id=conversation_id))
    return page.nodes[-1].id


async def test_thoughts_and_signatures_go_back_also_after_a_restart_and_for_another_reply(own_errand: Errand) -> None:
    async with ModelServer(answer=strict) as server:
        added = await own_errand.run("models", "--add-server", server.url, "--name", "Lab")
        assert added.code == 0, added.err
        options = ("--model", "lab/test-model", "--approve", "all")
        first = await own_errand.run("run", *options, "do it")
        assert first.code == 0, first.err
        task = await own_errand.task("completed")
        own_errand.kill_engine()
        again = await own_errand.run("run", *options, "--conversation", task.conversation_id, "and again")
        assert again.code == 0, again.err
        async with connected(own_errand) as client:
            node = await last_reply(client, task.conversation_id)
            retried = (await client.call(TASK_RETRY, TaskRetryParams(node_id=node))).task
            assert (await ended(client, retried)).activity.status == "completed"
    assert len(server.requests) >= 5

"""Behaviours 190 and 191: the output of a tool is read from its durable record, however long it is."""

from base64 import b64decode

import msgspec
import pytest

from errand.client.errors import CallError
from errand.protocol.blocks import ToolResultBlock
from errand.protocol.conversations import CONVERSATION_NODES, ConversationNodesParams
from errand.protocol.events import Delta, ToolOutput
from errand.protocol.executions import EXECUTION_LIST, EXECUTION_OUTPUT, ExecutionListParams, ExecutionOutputParams
from tests.support.command_line import Errand, connected
from tests.support.model_replies import shell
from tests.support.model_server import ModelServer, Reply

COUNTED = "seq 1 700000"


async def test_five_megabytes_are_beside_the_tree_and_read_whole(errand: Errand) -> None:
    replies = [shell(COUNTED), Reply(text="Counted.")]
    async with ModelServer(replies=replies) as server:
        run = ("run", "--approve", "all", "--mode", "chat", "--model", "openai_compatible/m", "--api-base", server.url)
        done = await errand.run(*run, "count")
    assert done.code == 0
    task = await errand.task("completed")
    numbers = "".join(f"{number}\n" for number in range(1, 700_001))
    async with connected(errand) as client:
        nodes = (
            await client.call(CONVERSATION_NODES, ConversationNodesParams(conversation_id=task.conversation_id))
        ).nodes
        (block,) = [block for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock)]
        assert len(msgspec.json.encode(block)) < 40_000, "the tree has what the model has read, once"
        (execution,) = (await client.call(EXECUTION_LIST, ExecutionListParams(task_id=task.id))).executions
        assert execution.id == block.execution_id
        assert {output.name: output.size for output in execution.outputs}["stdout"] == len(numbers)
        last = ExecutionOutputParams(execution_id=execution.id, name="stdout", offset=len(numbers) - 7)
        piece = await client.call(EXECUTION_OUTPUT, last)
        assert (b64decode(piece.data), piece.next_offset) == (b"700000\n", None)
        for wrong in (
            ExecutionOutputParams(execution_id="none"),
            ExecutionOutputParams(execution_id=execution.id, name="stderr"),
            ExecutionOutputParams(execution_id=execution.id, offset=-1),
        ):
            with pytest.raises(CallError):
                await client.call(EXECUTION_OUTPUT, wrong)
        past_end = await client.call(EXECUTION_OUTPUT, ExecutionOutputParams(execution_id=execution.id, offset=10**9))
        assert (past_end.data, past_end.next_offset) == ("", None)
    printed = await errand.run("output", task.id, "1")
    assert printed.out == numbers
    listed = await errand.run("output", task.id)
    assert COUNTED in listed.out and "4.8 MB" in listed.out
    for file in (errand.home / "outputs" / task.id).glob("*.txt"):
        file.unlink()
    shortened = await errand.run("output", task.id, "1")
    assert "1\n2\n3\n" in shortened.out, "what the model has read is still there"


async def test_what_cannot_be_shown_is_said(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Hello.")]) as server:
        await errand.run("run", "--mode", "chat", "--model", "openai_compatible/m", "--api-base", server.url, "hi")
    task = await errand.task("completed")
    assert (await errand.run("output", task.id)).err == "This task has used no tools.\n"
    done = await errand.run("output", task.id, "3")
    assert (done.code, "0 tool calls" in done.err) == (2, True)


async def test_live_output_of_a_command_replaces_what_was_shown_of_it(errand: Errand) -> None:
    replies = [shell("for i in 1 2 3; do echo $i; sleep 0.1; done"), Reply(text="Counted.")]
    async with ModelServer(replies=replies) as server:
        run = ("run", "--approve", "all", "--mode", "chat", "--model", "openai_compatible/m", "--api-base", server.url)
        done = await errand.run(*run, "--json", "count")
    deltas = [msgspec.convert(line["params"], Delta) for line in done.lines if line.get("method") == "delta"]
    outputs = [delta.text for delta in deltas if isinstance(delta, ToolOutput)]
    assert outputs, "the command goes on for several updates"
    assert all("1\n2\n3".startswith(text) for text in outputs), outputs

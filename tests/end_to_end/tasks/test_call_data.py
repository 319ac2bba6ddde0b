"""Data of a call, which clients get with the call, the approval and the result: what it does, where, its changes."""

from pathlib import Path

import msgspec

from errand.protocol.asks import AskAnswerParams
from errand.protocol.blocks import Block, EditedLines, FileEdit, Location, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from tests.support.command_line import Errand
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

CHANGE = Call("code", {"action": "patch", "path": "a.txt", "old": "two", "new": "2"})
LINES = EditedLines(line=1, old_text="one\ntwo\n", new_text="one\n2\n")


class _Event(msgspec.Struct, frozen=True):
    node: Node | None = None


class _Params(msgspec.Struct, frozen=True):
    event: _Event = _Event()


class _Line(msgspec.Struct, frozen=True):
    params: _Params = _Params()


async def test_a_client_learns_kind_places_and_texts_of_an_edit(own_errand: Errand, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    async with ModelServer(replies=[Reply(calls=(CHANGE,)), Reply(text="Done.")]) as server:
        model = ("--model", "openai_compatible/m", "--api-base", server.url)
        done = await own_errand.run("run", "--json", "--approve", "all", *model, "change it")
    nodes = [msgspec.json.decode(line, type=_Line).params.event.node for line in done.out.splitlines()]
    blocks: list[Block] = [block for node in nodes if node is not None for block in node.blocks]
    (call,) = (block for block in blocks if isinstance(block, ToolCallBlock))
    (result,) = (block for block in blocks if isinstance(block, ToolResultBlock))
    assert (call.display.kind, call.display.locations) == ("edit", (Location(path="a.txt"),))
    assert result.facts is not None
    path = str(workspace / "a.txt")
    assert result.facts.locations == (Location(path=path, line=1),)
    assert result.facts.edits == (FileEdit(path=path, parts=(LINES,)),)


async def test_an_approval_has_what_would_change_as_data(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=(CHANGE,)), DONE])) as engine:
        (engine.workspace / "a.txt").write_text("one\ntwo\n")
        ask = await engine.watcher.ask((await engine.start(approve="ask")).id)
        assert ask.approval is not None
        assert ask.approval.edits == (FileEdit(path=str(engine.workspace / "a.txt"), parts=(LINES,)),)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.watcher.end(ask.task_id)

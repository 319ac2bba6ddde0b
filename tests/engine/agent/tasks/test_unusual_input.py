"""Invalid text from a file system or a model: the task continues, and everything can be stored."""

import os
from pathlib import Path

from errand.protocol.blocks import ToolResultBlock
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply


def make_odd_file(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).write_text("a needle")


async def test_undecodable_file_names_are_quoted_so_that_they_can_be_read(tmp_path: Path) -> None:
    calls = (Call("code", {"action": "list"}), Call("code", {"action": "search", "pattern": "needle"}))
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=calls), DONE])) as engine:
        make_odd_file(engine.workspace)
        assert (await engine.watcher.end((await engine.start()).id)).activity.status == "completed"
        blocks = [block for node in engine.watcher.nodes() for block in node.blocks]
        listed, matches, _ = [block.text for block in blocks if isinstance(block, ToolResultBlock)]
        assert (listed, matches) == (r'"\377.txt"', r'"\377.txt":1: a needle')


async def test_odd_arguments_are_reported_to_the_model_and_the_task_continues(tmp_path: Path) -> None:
    raw = (
        r'{"command": "echo a\u0000b"}',
        r'{"command": "echo a\ud800b"}',
        '{"command": "true", "timeout_secs": 1e999}',
        '{"command": ' + "[" * 5000 + "]" * 5000 + "}",
        "{bad",
    )
    calls = tuple(Call("shell", arguments) for arguments in raw)
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=calls), DONE])) as engine:
        assert (await engine.watcher.end((await engine.start()).id)).activity.status == "completed"
        blocks = [block for node in engine.watcher.nodes() for block in node.blocks]
        assert [block.is_error for block in blocks if isinstance(block, ToolResultBlock)] == [True] * 5 + [False]

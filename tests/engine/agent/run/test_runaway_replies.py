"""Replies that repeat themselves without end: cut where they do, said to the model once, and in the end of the task."""

from pathlib import Path

import pytest

from errand.protocol.blocks import NoticeBlock, TextBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.methods import TaskStartParams
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.local_servers import llama_cpp
from tests.support.model_replies import DONE, results
from tests.support.model_server import Call, ModelServer, Reply

_AGAIN = "I will read the file now.\n"
_SMALL_WINDOW = llama_cpp("model.gguf", window=4096, parameters=7_000_000_000)
_RUNAWAY = Reply(text="Good. " + _AGAIN * 4_000, piece_length=30)


def _texts(nodes: list[Node]) -> list[str]:
    replies = [node for node in nodes if node.role == "assistant"]
    return ["".join(block.text for block in node.blocks if isinstance(block, TextBlock)) for node in replies]


def _warnings(nodes: list[Node]) -> list[str]:
    blocks = [block for node in nodes for block in node.blocks]
    return [notice_text(block) for block in blocks if isinstance(block, NoticeBlock) and block.kind == "warning"]


async def _end_on(engine: EngineParts, variable: str) -> str | None:
    """Run a task with the model of a server of one's own; return how it was completed."""
    engine.services.keys.add_environment({variable: engine.model.url})
    params = TaskStartParams(prompt="Do it.", workspace=str(engine.workspace), approve="all")
    task = await engine.watcher.end((await engine.services.runner.start(params)).id)
    return task.outcome.completion


async def test_reply_that_repeats_itself_is_cut_and_kept_and_the_model_is_told(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[_RUNAWAY, Reply(text="Here it is.")])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        nodes = engine.watcher.nodes()
        first, second = _texts(nodes)
        assert first.startswith("Good. I will") and len(first) < 52_000
        assert first.endswith("[The reply was cut here by the app: it repeats the same text again and again.]")
        assert (second, task.outcome.completion) == ("Here it is.", "answered")
        assert "cut by the app" in str(engine.model.requests[1].messages[-1]["content"])
        assert ["because it repeats the same text" in warning for warning in _warnings(nodes)] == [True]


@pytest.mark.parametrize("mode", ["auto", "task"])
async def test_model_that_repeats_itself_again_ends_the_task_as_cut(tmp_path: Path, mode: str) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[_RUNAWAY] * 5)) as engine:
        task = await engine.watcher.end((await engine.start(mode="task" if mode == "task" else "auto")).id)
        assert (task.activity.status, task.outcome.completion) == ("completed", "cut")
        assert task.progress.step_count == 2


async def test_arguments_in_a_small_window_that_repeat_themselves_are_not_run(tmp_path: Path) -> None:
    endless = Reply(calls=(Call("bash", {"command": "echo " + "a " * 30_000}),), piece_length=50)
    server = ModelServer(replies=[endless, DONE], pages=_SMALL_WINDOW)
    async with engine_parts(tmp_path, server) as engine:
        await _end_on(engine, "LLAMA_CPP_API_BASE")
        assert "it repeats the same text again and again" in results(engine.watcher.nodes())[0].text


async def test_reply_in_a_small_window_is_cut_earlier_and_has_a_limit_of_tokens(tmp_path: Path) -> None:
    server = ModelServer(replies=[_RUNAWAY, Reply(text="Here it is.")], pages=_SMALL_WINDOW)
    async with engine_parts(tmp_path, server) as engine:
        assert await _end_on(engine, "LLAMA_CPP_API_BASE") == "answered"
        assert len(_texts(engine.watcher.nodes())[0]) < 6_000
        assert server.requests[0].body["max_tokens"] == 4_096

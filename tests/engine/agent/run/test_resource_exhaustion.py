"""A tool runs out of memory or descriptors: it ends, the agent is told why, and its task continues."""

import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from errand.protocol.asks import AskAnswerParams
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import PYTHON, little_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
GREEDY = f"{PYTHON} -c 'x = b\"x\" * 400_000_000; print(len(x))'"


async def told_after(tmp_path: Path, command: str) -> str:
    """Return what the model reads about a command whose task completes."""
    replies = [Reply(calls=(Call("shell", {"command": command}),)), DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        ended = await engine.watcher.end((await engine.start()).id)
        assert ended.activity.status == "completed"
        return str(engine.model.requests[1].messages[-1]["content"])


@pytest.mark.usefixtures("bare_commands")
async def test_command_killed_for_lack_of_memory_is_reported_as_such(tmp_path: Path) -> None:
    with little_memory(60) as members:
        output = await told_after(tmp_path, f"echo $$ > {members} && exec {GREEDY}")
    assert "400000000" not in output
    assert (
        "[killed by SIGKILL (9): from outside; that is also how the system ends a command when memory runs out]"
        in output
    )


async def test_command_whose_child_is_killed_is_reported_as_such(tmp_path: Path) -> None:
    output = await told_after(tmp_path, "bash -c 'kill -9 $$'; exit $?")
    assert "[exit code 137: a program was killed by SIGKILL (9), from outside" in output


async def test_command_whose_allocation_fails_ends_with_its_own_error(tmp_path: Path) -> None:
    output = await told_after(tmp_path, f"ulimit -v 200000; {GREEDY}")
    assert "MemoryError" in output
    assert "[exit code 1]" in output


async def test_command_without_free_descriptors_fails_and_the_task_continues(tmp_path: Path) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "touch hi"}),)), DONE]

    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        with no_descriptors():
            await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
            await engine.watcher.until(lambda: any(node.role == "tool_result" for node in engine.watcher.nodes()))
        ended = await engine.watcher.end(started.id)
    assert ended.activity.status == "completed"
    assert "could not be started" in str(engine.model.requests[1].messages[-1]["content"])


@contextmanager
def no_descriptors() -> Generator[None]:
    """This process can open no further file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

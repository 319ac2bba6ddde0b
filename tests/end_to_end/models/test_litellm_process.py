"""A task with a model of litellm: the library's process is the engine's own, and goes with it."""

import asyncio
import sys
from pathlib import Path

import pytest

from errand.protocol.tasks.methods import TaskStartParams
from tests.support.command_line import Errand
from tests.support.engine_parts import engine_parts
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import below, is_alive, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

_MODEL = "gemini/gemini-3.8-flash"
_KEY = "key-of-gemini-123456"


async def run_task(folder: Path) -> None:
    """An engine with one task, in a process without the imports of other tests."""
    async with engine_parts(folder, ModelServer([Reply(text="Done.")])) as engine:
        params = TaskStartParams(prompt="go", model=_MODEL, api_base=engine.model.url, api_key=_KEY, mode="chat")
        task = await engine.services.runner.start(params)
        async with asyncio.timeout(WAIT_LIMIT_S):
            while engine.watcher.tasks(task.id)[-1].outcome.ended_at is None:  # noqa: ASYNC110 -- longer than `until`
                await asyncio.sleep(0.05)
        assert engine.watcher.tasks(task.id)[-1].activity.status == "completed"
    assert "litellm" not in sys.modules
    assert "openai" not in sys.modules


async def test_an_engine_never_imports_the_library(tmp_path: Path) -> None:
    code = f"import asyncio, pathlib; from {__name__} import run_task; asyncio.run(run_task(pathlib.Path('.')))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=tmp_path, env=Errand(tmp_path, tmp_path).environment
    )
    assert await process.wait() == 0


async def test_the_process_of_the_library_ends_with_a_killed_engine(own_errand: Errand) -> None:
    async with ModelServer([Reply(text="Hello there. " * 20, stall_after=5)]) as server:
        options = ("--model", _MODEL, "--api-base", server.url)
        process = await own_errand.start("run", *options, "hello", variables={"GEMINI_API_KEY": _KEY})
        request = await server.request(0, WAIT_LIMIT_S)
        assert request.headers["x-goog-api-key"] == _KEY
        (child,) = await asyncio.to_thread(below, "library_child", of=own_errand.engine_pid())
        own_errand.kill_engine()
        async with asyncio.timeout(WAIT_LIMIT_S):
            await request.gone.wait()
        await until(lambda: not is_alive(child.pid))
        process.kill()
        await process.communicate()

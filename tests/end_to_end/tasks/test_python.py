"""The tool `python` in a task: allowed once for the conversation, its pictures stored, ended with the engine."""

import sys
from pathlib import Path
from uuid import uuid4

import pytest

from errand.engine.tools.python.session import PythonSession
from errand.protocol.asks import AskAnswerParams
from errand.protocol.base import JsonObject
from tests.engine.tools.test_python import PIXEL, own_python
from tests.support.command_line import Errand, rest
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import results
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import running, until
from tests.support.sandboxes import SANDBOXES, set_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watchdog reads /proc")

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
DRAW = f"import base64\nclass Plot:\n    def _repr_png_(self): return base64.b64decode('{PIXEL}')\nPlot()"


def calling(*codes: str) -> list[Reply]:
    return [*(Reply(calls=(Call("python", {"code": code}),)) for code in codes), Reply(text="Done.")]


async def allow_any_code(engine: EngineParts, task_id: str) -> None:
    ask = await engine.watcher.ask(task_id)
    assert ask.approval is not None
    kinds = [offer.kind for offer in ask.approval.offers]
    answer = AskAnswerParams(
        ask_id=ask.id, allow=True, remember="conversation", offer=kinds.index("code"), basis=ask.approval.basis
    )
    await engine.services.asks.answer(answer, "me")


async def test_in_the_sandbox_code_is_allowed_once_for_the_conversation(tmp_path: Path) -> None:
    turns = calling("x = 20", DRAW, "x + 1")
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        set_sandbox(engine.services.settings, True)
        own_python(engine.workspace)
        started = await engine.start(approve="ask", mode="task")
        await allow_any_code(engine, started.id)
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 3)
        first, drawn, last = results(engine.watcher.nodes())
        assert not first.is_error and last.text == "21"
        (image,) = drawn.images
        assert (image.name, image.data) == ("Picture", "")
        assert Path(image.path).is_relative_to(engine.services.paths.attachments)
        await engine.services.runner.stop(started.id, "me")
        await engine.watcher.end(started.id)
        sent = str([request.messages for request in engine.model.requests][2])
        assert f"data:image/png;base64,{PIXEL}" in sent


@pytest.mark.parametrize("is_sandboxed", SANDBOXES)
async def test_a_session_ends_with_its_conversation(tmp_path: Path, is_sandboxed: bool) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=calling("1"))) as engine:
        set_sandbox(engine.services.settings, is_sandboxed)
        own_python(engine.workspace)
        started = await engine.start()
        ended = await engine.watcher.end(started.id)
        sessions = engine.services.tools.sessions
        session = sessions.find(ended.conversation_id, PythonSession)
        assert session is not None and session.pid is not None
        await sessions.close_conversation(ended.conversation_id)
        assert session.pid is None


async def test_a_killed_engine_leaves_no_session_behind(own_errand: Errand, workspace: Path) -> None:
    own_errand.home.mkdir(mode=0o700, exist_ok=True)
    (own_errand.home / "settings.json").write_text('{"command_sandbox": "required"}')
    marker = uuid4().hex
    own_python(workspace)
    code = (
        "import signal, subprocess\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"subprocess.Popen(['bash', '-c', 'exec -a {marker} sleep 100'], start_new_session=True)\n"
        "open('ready', 'w').close()\nwhile True: pass"
    )
    arguments: JsonObject = {"code": code, "timeout_secs": 100}
    async with ModelServer(replies=[Reply(calls=(Call("python", arguments),))]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await until((workspace / "ready").exists)
        await until(lambda: bool(running(marker)))
        own_errand.kill_engine()
        await until(lambda: not running(marker))
        await rest(process)


async def test_what_code_starts_is_limited_by_a_setting_and_ends_with_the_task(tmp_path: Path) -> None:
    marker = uuid4().hex
    code = (
        f"import subprocess\nfor _ in range(20):\n    subprocess.Popen(['bash', '-c', 'exec -a {marker} sleep 60'])\n"
    )
    async with engine_parts(tmp_path, ModelServer(turns=calling(code))) as engine:
        engine.services.settings.set("max_processes", 8)
        own_python(engine.workspace)
        started = await engine.start(approve="all", mode="task")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 1)
        (result,) = results(engine.watcher.nodes())
        assert "at most 8 may run at once" in result.text
        await engine.services.runner.stop(started.id, "me")
        await engine.watcher.end(started.id)
        assert running(marker) == []

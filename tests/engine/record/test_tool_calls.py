"""Records with calls of each tool are played from the record alone: nothing is started, opened or asked of a model."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from errand.engine.record.diff import compare
from errand.engine.record.format import TaskRecord, read
from errand.engine.record.replay import replay
from errand.engine.tools.registry import TOOLS
from errand.protocol.asks import AskAnswerParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.limits import WAIT_LIMIT_S
from tests.support.mcp_servers import command, stored
from tests.support.model_replies import DONE, results
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.recorded_tasks import record_of
from tests.support.web_site import WebSite, web_site


def calls(site: WebSite) -> dict[str, tuple[Call, ...]]:
    """Calls of each tool, by a name."""
    here, away = site.url("/page"), site.url("/page", "127.0.0.2")
    return {
        "shell": (Call("shell", {"command": "echo one > made; echo two"}),),
        "code": (Call("code", {"action": "write", "path": "a.txt", "content": "a\n"}),),
        "python": (Call("python", {"code": "print(6 * 7)\nopen('ran', 'a').write('x')"}),),
        "web_fetch": (Call("web_fetch", {"url": here}),),
        "web_fetch elsewhere": (Call("web_fetch", {"url": away}),),
        "browser": (
            Call("browser", {"action": "navigate", "url": here}),
            Call("browser", {"action": "screenshot"}),
            Call("browser", {"action": "evaluate", "script": "document.title"}),
        ),
        "search_memory": (Call("search_memory", {"query": "a page"}),),
        "propose_memory": (Call("propose_memory", {"text": "Use tabs.", "scope": "always"}),),
        "python_inference": (Call("python_inference", {"action": "complete", "prompt": "Say yes."}),),
        "todo": (Call("todo", {"items": [{"text": "one"}, {"text": "two"}]}),),
        "task": (Call("task", {"description": "a part", "prompt": "part"}),),
        "mcp": (Call("test__echo", {"text": "echoed"}), Call("mcp", {"operation": "list"})),
    }


def answer(turns: tuple[Call, ...]) -> Callable[[ReceivedRequest], Reply]:
    def reply(request: ReceivedRequest) -> Reply:
        if not request.offered:
            return Reply(text="yes")
        prompt = next(str(message["content"]) for message in request.messages if message["role"] == "user")
        if prompt == "part":
            return Reply(text="Done with it.")
        return Reply(calls=(turns[request.turn],)) if request.turn < len(turns) else DONE

    return reply


@asynccontextmanager
async def page() -> AsyncGenerator[WebSite]:
    async with web_site({"/page": "<title>A page</title><p>Some words.</p>"}) as site:
        yield site


async def allow_all(engine: EngineParts, task: Task, *, allow: bool) -> None:
    while True:
        ask = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=allow), "me")


async def recorded(engine: EngineParts, approve: str) -> TaskRecord:
    task = await engine.start("go", approve="all" if approve == "all" else "ask")
    answering = asyncio.create_task(allow_all(engine, task, allow=approve == "allowed"))
    try:
        async with asyncio.timeout(WAIT_LIMIT_S):  # a browser that starts on a busy machine
            await engine.services.runner.next_in_round(task.id)
    finally:
        answering.cancel()
    return read((await record_of(engine, task.id)).lines())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


NAMES = tuple(calls(WebSite(1)))
_APPROVALS = ("all", "allowed", "denied")
_PLAYED = [(name, approve) for name in NAMES for approve in (_APPROVALS if name != "browser" else _APPROVALS[1:2])]


def test_each_tool_that_changes_or_runs_something_is_played() -> None:
    missing = {tool.name for tool in TOOLS if tool.tier in ("write", "run")} - set(NAMES)
    assert not missing, "add a call of each to calls()"


@pytest.mark.parametrize(("name", "approve"), _PLAYED)
async def test_record_with_calls_of_a_tool_is_played_without_it(tmp_path: Path, name: str, approve: str) -> None:
    if name == "browser" and not (shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("there is no browser here")
    async with page() as site:
        turns = calls(site)[name]
        async with engine_parts(tmp_path, ModelServer(answer=answer(turns))) as engine:
            engine.services.settings.set_mcp_servers((stored(),) if name == "mcp" else ())
            record = await recorded(engine, approve)
            assert record.head.task.activity.status == "completed", record.head.task.outcome.error
            assert {result.tool for result in results(engine.watcher.nodes())} >= {call.tool for call in turns}
            files = contents(engine.workspace)
            asked, opened = len(engine.model.requests), len(site.requests)
            before = {child.pid for child in psutil.Process().children(recursive=True)}
            played = await replay(record, tmp_path / "replay")
            after = {child.pid for child in psutil.Process().children(recursive=True)}
            assert compare(record, played) == []
            assert after <= before
            assert (len(engine.model.requests), len(site.requests)) == (asked, opened)
            assert contents(engine.workspace) == files


async def test_ask_about_a_server_of_the_workspace_takes_no_answer_of_a_call(tmp_path: Path) -> None:
    turns = (Call("test__echo", {"text": "echoed"}),)
    async with engine_parts(tmp_path, ModelServer(answer=answer(turns))) as engine:
        argv = command()
        entry = {"command": argv[0], "args": list(argv[1:]), "sandbox": False}
        (engine.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": entry}}))
        task = await engine.start("go", approve="ask")
        trust = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=trust.id, allow=True), "me")
        await engine.watcher.task(task.id, lambda now: now.activity.ask_id not in (None, trust.id))
        call = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=call.id, allow=False, text="no"), "me")
        await engine.watcher.end(task.id)
        record = read((await record_of(engine, task.id)).lines())
    assert len(record.asks) == 2
    assert compare(record, await replay(record, tmp_path / "replay")) == []

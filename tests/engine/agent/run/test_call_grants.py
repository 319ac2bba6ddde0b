"""What answers about hosts and code leave behind, with real pages and a real session of Python."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from errand.engine.agent.tasks.grant_rules import covered_calls, draft_grant
from errand.engine.core.errors import InvalidParams
from errand.protocol.asks import Ask, AskAnswerParams, GrantDraft, GrantedCall, Remember
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, results
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import file_appears
from tests.support.sandboxes import set_sandbox
from tests.support.web_site import web_site

# This machine under another name than those that are open to all.
HOST = "127.0.0.2"


@asynccontextmanager
async def site() -> AsyncGenerator[str]:
    """The address of a page on `HOST`."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="a page")

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    listening = web.TCPSite(runner, HOST, 0)
    await listening.start()
    try:
        yield f"http://{HOST}:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def fetch(url: str) -> Reply:
    return Reply(calls=(Call("web_fetch", {"url": url}),))


def python(code: str) -> Reply:
    return Reply(calls=(Call("python", {"code": code}),))


async def allow(engine: EngineParts, ask: Ask, kind: str, remember: Remember) -> None:
    assert ask.approval is not None
    index = [offer.kind for offer in ask.approval.offers].index(kind)
    params = AskAnswerParams(ask_id=ask.id, allow=True, remember=remember, offer=index)
    await engine.services.asks.answer(params, "me")


async def asked(engine: EngineParts, task_id: str) -> int:
    return len(await engine.services.database.asks.page(100, (task_id,)))


async def test_a_host_that_was_allowed_everywhere_is_listed_and_open_to_every_tool_until_it_is_revoked(
    tmp_path: Path,
) -> None:
    async with site() as url:
        turns = [fetch(url), fetch(f"{url}more"), DONE]
        async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
            services = engine.services
            services.settings.set("network_hosts", HOST)
            first = await engine.start(approve="ask")
            ask = await engine.watcher.ask(first.id)
            assert ask.approval is not None and ask.approval.address == url
            await allow(engine, ask, "host", "user")
            assert (await engine.watcher.end(first.id)).activity.status == "completed"
            assert ["a page" in result.text for result in results(engine.watcher.nodes())[:2]] == [True, True]
            (grant,) = services.grants.all()
            host = url.removeprefix("http://").rstrip("/")
            assert (grant.tool, grant.call, grant.scope) == ("", GrantedCall(host=host), "user")
            assert grant.exact == f"addresses of {host}"
            assert services.grants.granted("browser", "other", "/elsewhere") == {GrantedCall(host=host)}

            second = await engine.start(approve="ask")
            await engine.watcher.end(second.id)
            assert (await asked(engine, first.id), await asked(engine, second.id)) == (1, 0)

            rule = GrantDraft(decision="deny", call=GrantedCall(host=HOST), scope="user")
            coverage = await covered_calls(
                await draft_grant(rule, services.database), 100, services.database, services.paths
            )
            decided = {(call.tool, call.without, call.verdict) for call in coverage.calls}
            assert (coverage.judged, len(coverage.calls), decided) == (4, 4, {("web_fetch", "ask", "deny")})

            services.grants.add(msgspec.structs.replace(grant, revoked_at=datetime.now(UTC)))
            third = await engine.start(approve="ask")
            assert (await engine.watcher.ask(third.id)).approval is not None


async def test_a_denied_host_is_not_opened_even_if_everything_is_allowed(tmp_path: Path) -> None:
    async with site() as url, engine_parts(tmp_path, ModelServer(turns=[fetch(url), DONE])) as engine:
        engine.services.settings.set("network_hosts", HOST)
        rule = GrantDraft(decision="deny", call=GrantedCall(host=HOST), scope="user")
        engine.services.grants.add(await draft_grant(rule, engine.services.database))
        task = await engine.start(approve="all")
        await engine.watcher.end(task.id)
        assert f"you denied {HOST}" in results(engine.watcher.nodes())[0].text


@pytest.mark.skipif(shutil.which("bwrap") is None or shutil.which("curl") is None, reason="needs bubblewrap and curl")
async def test_host_that_is_denied_while_a_command_runs_is_closed_to_it_from_then_on(tmp_path: Path) -> None:
    async with site() as url:
        get = f"curl -s --show-error -o - {url} 2>&1"
        line = f"{get}; touch first; until [ -e go ]; do sleep 0.02; done; {get}; {get}; true"
        turns = [Reply(calls=(Call("shell", {"command": line}),)), DONE]
        async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
            services = engine.services
            set_sandbox(services.settings, is_on=True)
            services.settings.set("network_hosts", HOST)
            task = await engine.start(approve="all", network="on")
            await file_appears(engine.workspace / "first")
            rule = GrantDraft(decision="deny", call=GrantedCall(host=HOST), scope="user")
            services.grants.add(await draft_grant(rule, services.database))
            (engine.workspace / "go").touch()
            assert (await engine.watcher.end(task.id)).activity.status == "completed"
            output = results(engine.watcher.nodes())[0].text
            assert output.count("a page") == 1 and output.count(f"Errand does not connect to {HOST}:") == 2
            assert f"you denied {HOST}" in output
            await services.log.flush()
            refused = [
                execution
                for execution in await services.database.executions.of_task(task.id)
                if execution.started.tool == "network"
            ]
            port = int(url.rstrip("/").rpartition(":")[2])
            assert [(execution.started.text, execution.started.arguments) for execution in refused] == [
                (f"Connect to {HOST}:{port}", {"host": HOST, "port": port})
            ]
            assert refused[0].finished is not None
            assert (refused[0].finished.text, refused[0].finished.is_error) == (f"you denied {HOST}", True)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
async def test_all_code_that_was_allowed_in_a_workspace_runs_unasked_and_a_denial_beats_it(tmp_path: Path) -> None:
    turns = [python("print(6 * 7)"), python("print(6 * 8)"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        services = engine.services
        set_sandbox(services.settings, is_on=True)
        first = await engine.start(approve="ask")
        ask = await engine.watcher.ask(first.id)
        assert ask.approval is not None and ask.approval.code == "print(6 * 7)"
        await allow(engine, ask, "code", "workspace")
        await engine.watcher.end(first.id)
        result_texts = [result.text for result in results(engine.watcher.nodes())[:2]]
        assert "42" in result_texts[0] and "48" in result_texts[1] and await asked(engine, first.id) == 1
        (grant,) = services.grants.all()
        assert (grant.tool, grant.exact) == ("python", "any code, in the sandbox")

        services.grants.add(
            await draft_grant(
                GrantDraft(decision="deny", call=GrantedCall(operation="code"), scope="user"), services.database
            )
        )
        second = await engine.start(approve="all")
        await engine.watcher.end(second.id)
        assert any("you denied running code" in result.text for result in results(engine.watcher.nodes()))
        rule = GrantDraft(decision="allow", call=GrantedCall(operation="code"), scope="user", tool="python")
        coverage = await covered_calls(
            await draft_grant(rule, services.database), 100, services.database, services.paths
        )
        assert [(call.without, call.verdict) for call in coverage.calls] == [("ask", "allow")] * 2


async def test_code_cannot_be_allowed_for_a_tool_that_is_not_there(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        for tool in ("", "nothing"):
            rule = GrantDraft(decision="allow", call=GrantedCall(operation="code"), scope="user", tool=tool)
            with pytest.raises(InvalidParams):
                await draft_grant(rule, engine.services.database)


@pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium")
async def test_a_denial_of_code_holds_for_scripts_in_pages(tmp_path: Path) -> None:
    async with web_site({"/": "a page"}) as pages:
        turns = [
            Reply(calls=(Call("browser", {"action": "navigate", "url": pages.url()}),)),
            Reply(calls=(Call("browser", {"action": "evaluate", "script": "1 + 1"}),)),
        ]
        async with engine_parts(tmp_path, ModelServer(turns=[*turns, DONE])) as engine:
            rule = GrantDraft(decision="deny", call=GrantedCall(operation="code"), scope="user")
            engine.services.grants.add(await draft_grant(rule, engine.services.database))
            task = await engine.start(approve="all")
            await engine.watcher.end(task.id)
            refused = results(engine.watcher.nodes())[1]
            assert refused.is_error and "you denied running code" in refused.text

"""Keys are sent only where a user on this machine allowed it, whatever a file, a stored task or a server says."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from aiohttp import web

from errand.engine.core.errors import ConfigurationError
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import SettingValues
from errand.engine.models.base import ChatModel
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.tasks.methods import TaskRetryParams, TaskStartParams
from errand.protocol.tasks.task import Task, replace_fields
from tests.engine.agent.run.test_resume import shell
from tests.support.engine_parts import branch, crash, engine_parts
from tests.support.hostile_file import HostileFile
from tests.support.model_replies import final, request_for
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS
from tests.support.records import NOW

KEY = "sk-planted-0123456789abcdef"


class Thief:
    """A server that keeps the headers of all requests."""

    def __init__(self) -> None:
        self.url = ""
        self.headers: list[dict[str, str]] = []
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.headers.append({name.casefold(): value for name, value in request.headers.items()})
        return web.json_response({"error": {"message": "thank you"}}, status=400)


@asynccontextmanager
async def redirecting_to(thief: Thief, status: int) -> AsyncGenerator[str]:
    """The address of a server that redirects every request to a thief."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": f"{thief.url}{request.path}"})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def router(folder: Path, proxy_url: str = "") -> ModelRouter:
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "ERRAND_PROXY_API_KEY")
    keys = KeyStore(folder / "keys", dict.fromkeys(names, KEY), lambda: None)
    return ModelRouter(keys, folder, RetryPolicy(attempts=1), lambda: SettingValues(proxy_url=proxy_url))


@pytest.mark.usefixtures("warm_library")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    "model_id", ["openai/gpt-5.4", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash", "proxy/openai/x"]
)
async def test_no_client_follows_a_server_that_sends_it_elsewhere(tmp_path: Path, model_id: str, status: int) -> None:
    async with Thief() as thief, redirecting_to(thief, status) as address:
        models = router(tmp_path, address if model_id.startswith("proxy/") else "")
        model: ChatModel = models.open(model_id, None if model_id.startswith("proxy/") else address)
        message = await final(model, request_for(model_id))
        await models.close()
    assert thief.headers == []
    assert "redirect" in (message.error or "") and KEY not in (message.error or "")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_look_for_models_follows_a_server_that_sends_it_elsewhere(tmp_path: Path, status: int) -> None:
    async with Thief() as thief, redirecting_to(thief, status) as address:
        environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address, "ERRAND_PROXY_API_KEY": KEY}
        keys = KeyStore(tmp_path / "keys", environment | dict.fromkeys(NO_LOCAL_SERVERS, address), lambda: None)
        models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1), lambda: SettingValues(proxy_url=address))
        listing = await models.available.list(refresh=True, fetch=True)
        server = Provider("own", "Own", "openai_compatible", base_url=f"{address}/v1", own=True)
        answer = await models.available.probe(server, KEY)
        await models.close()
    assert thief.headers == []
    assert {row.name for row in listing.providers if row.list_error} == {"openai", "proxy"}
    assert not any(row.ready for row in listing.providers if row.local)
    assert answer.models is None and "sends callers on" in answer.text


async def test_a_file_gives_no_address_to_a_retry_a_summary_or_a_message(tmp_path: Path) -> None:
    async with Thief() as thief, engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Done."))) as engine:
        await engine.services.keys.set("openai_compatible", KEY)
        engine.services.settings.set("default_api_base", engine.model.url)
        file = HostileFile("ls", engine.workspace)
        file.say("and", "then", "what")
        file.task = replace_fields(file.task, status="completed", ended_at=NOW, api_base=thief.url)
        await file.take(engine, tmp_path)
        await file.confirm(engine)
        runner = engine.services.runner
        begun: list[Task] = []
        for begin in (
            lambda: runner.summarise(ConversationSummariseParams(conversation_id=file.conversation.id)),
            lambda: runner.retry(TaskRetryParams(node_id=file.nodes[1].id)),
            lambda: runner.start(
                TaskStartParams(prompt="go", conversation_id=file.conversation.id, model="openai_compatible/m")
            ),
        ):
            begun.append(await engine.watcher.end((await begin()).id))
        assert {task.request.api_base for task in begun} == {engine.model.url}
        stored = await engine.services.database.tasks.get(file.task.id)
        assert stored is not None and stored.request.api_base is None
        assert {request.headers["Authorization"] for request in engine.model.requests} == {f"Bearer {KEY}"}
    assert thief.headers == []


@pytest.mark.parametrize("door", ["resume", "retry"])
async def test_an_address_that_got_into_the_database_takes_no_key_and_no_words(tmp_path: Path, door: str) -> None:
    """Even if the database itself was changed, or came from another machine."""
    after = tmp_path / "after"
    async with engine_parts(tmp_path, ModelServer(replies=[shell("true"), Reply(stall_after=0)])) as engine:
        started = await engine.start(api_key=None)
        await engine.model.request(1)
        await engine.services.log.flush()
        port = crash(engine, after)
    async with Thief() as thief:
        with closing(sqlite3.connect(after / "data" / "errand.db")) as connection, connection:
            connection.execute("UPDATE task_requests SET body = json_set(body, '$.apiBase', ?)", (thief.url,))
        async with engine_parts(after, ModelServer(answer=lambda _: Reply(text="Done."), port=port)) as engine:
            await engine.services.keys.set("openai_compatible", KEY)
            runner = engine.services.runner
            node = next(node for node in await branch(engine, started.conversation_id) if node.role == "assistant")
            with pytest.raises(ConfigurationError, match="Nobody on this machine has chosen the address"):
                await (
                    runner.resume(started.id) if door == "resume" else runner.retry(TaskRetryParams(node_id=node.id))
                )
        assert thief.headers == []


async def test_an_address_that_a_person_chose_holds_over_a_restart(tmp_path: Path) -> None:
    after = tmp_path / "after"
    async with engine_parts(tmp_path, ModelServer(replies=[shell("true"), Reply(stall_after=0)])) as engine:
        started = await engine.start(api_key=None)
        await engine.model.request(1)
        await engine.services.log.flush()
        port = crash(engine, after)
    async with engine_parts(after, ModelServer(answer=lambda _: Reply(text="Done."), port=port)) as engine:
        await engine.services.keys.set("openai_compatible", KEY)
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert engine.model.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_an_address_is_chosen_for_one_provider_alone(tmp_path: Path) -> None:
    models = router(tmp_path)
    models.open("openai_compatible/x", "http://127.0.0.1:9/v1")
    models.open_again("react/openai_compatible/y", "http://127.0.0.1:9/v1/")
    for model_id, address in (
        ("openai/gpt-5.4", "http://127.0.0.1:9/v1"),
        ("openai_compatible/x", "http://127.0.0.1:10/v1"),
        ("openai_compatible/x", "https://127.0.0.1:9/v1"),
        ("openai_compatible/x", "http://127.0.0.1:9@evil.example/v1"),
    ):
        with pytest.raises(ConfigurationError):
            models.open_again(model_id, address)

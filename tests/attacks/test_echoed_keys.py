"""Servers that quote the key they were sent, in every part of a response and every encoding: none of it is kept."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from aiohttp import web

from errand.engine.core.errors import EngineError, InvalidParams
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import SettingValues
from errand.engine.data.json_export import export_json
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.data import DataExportParams
from errand.protocol.tasks.methods import TaskStartParams
from errand.system import log as logs
from errand.system.paths import Paths
from errand.text.redaction import Redactor
from tests.attacks.campaign import Campaign
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import collect, request_for
from tests.support.model_server import ModelServer
from tests.text.test_redaction import FORMS

KEY = "planted/Key+0123456789=abcdefgh"
ONCE = RetryPolicy(attempts=1)

# Status and body of a response, made from the encoded key.
Answer = Callable[[str], tuple[int, bytes]]


def stream(*events: JsonValue | str, end: bool = True) -> tuple[int, bytes]:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return 200, "".join(f"data: {line}\n\n" for line in (*lines, *(["[DONE]"] if end else []))).encode()


def delta(finish: str | None = None, **fields: JsonValue) -> JsonObject:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(arguments: str, name: str = "shell", call_id: str = "call_1") -> JsonObject:
    function: JsonObject = {"name": name, "arguments": arguments}
    return delta("tool_calls", tool_calls=[{"index": 0, "id": call_id, "type": "function", "function": function}])


ANSWERS: dict[str, Answer] = {
    "a refusal": lambda key: (400, f'{{"error":{{"message":"no, not with {key}"}}}}'.encode()),
    "a refusal of the key": lambda key: (401, f'{{"error":"{key}"}}'.encode()),
    "a server error": lambda key: (500, f"<html>{key}</html>".encode()),
    "an odd body": lambda key: (418, f"\xff{key}".encode("latin-1")),
    "a body that is cut in it": lambda key: (400, b" " * (64 * 1024 - len(key) + 4) + key.encode()),
    "a web page": lambda key: (200, f"<html>{key}</html>".encode()),
    "an error in the stream": lambda key: stream(f'{{"error":{{"message":"{key}","code":400}}}}'),
    "an error after text": lambda key: stream(delta(content="Well, "), f'{{"error":"{key}"}}'),
    "no chunk at all": lambda key: stream(f'{{"choices": "{key}'),
    "its text": lambda key: stream(delta(content=f"It is {key}."), delta("stop")),
    "its text, letter by letter": lambda key: stream(*(delta(content=letter) for letter in f"Is {key}"), delta("stop")),
    "its thinking": lambda key: stream(
        *(delta(reasoning_content=letter) for letter in key), delta(content="Well."), delta("stop")
    ),
    "its arguments": lambda key: stream(call(json.dumps({"command": f"echo {key}"}))),
    "its arguments, escaped": lambda key: stream(call('{"command":"' + key.replace('"', '\\"') + '"}')),
    "arguments that are no JSON": lambda key: stream(call(f"{key} {key}")),
    "a tool's name": lambda key: stream(call("{}", name=key)),
    "a call's id": lambda key: stream(call('{"command":"true"}', call_id=key)),
    "its last words, cut": lambda key: stream(delta(content=f"It is {key[:-1]}"), delta("stop")),
}


@asynccontextmanager
async def serving(answer: Callable[[], tuple[int, bytes]]) -> AsyncGenerator[str]:
    """The address of a server that gives this response to everything."""

    async def handle(request: web.Request) -> web.Response:
        status, body = answer()
        kind = "text/event-stream" if body.startswith(b"data:") else "text/html"
        headers = {"Location": f"http://127.0.0.1:9/?key={body.decode()}"} if 300 <= status < 400 else {}
        return web.Response(status=status, body=body, content_type=kind, headers=headers)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def written(data: bytes) -> Iterator[str]:
    """The forms of the key that occur, including JSON nested in JSON."""
    text = _plain(data.decode("utf-8", "replace"))
    return (form for form, write in FORMS.items() if _plain(write(KEY))[:-1] in text)


def _plain(text: str) -> str:
    return re.sub(r"\\+", "/", text).casefold()


def leaks(engine: EngineParts, *texts: bytes) -> list[str]:
    """Return where the key occurs: in files of the data directory, events, deltas, or one of these texts."""
    occurrences = [
        f"{path.name}: {form}"
        for path in engine.services.paths.home.rglob("*")
        if path.is_file()
        for form in written(path.read_bytes())
    ]
    for seen in (*engine.watcher.events, *engine.watcher.deltas):
        occurrences += [f"{type(seen).__name__}: {form}" for form in written(msgspec.json.encode(seen))]
    return occurrences + [form for text in texts for form in written(text)]


@pytest.mark.parametrize("answer_kind", ANSWERS)
async def test_a_key_that_a_server_quotes_is_found_nowhere(
    tmp_path: Path, answer_kind: str, campaign: Campaign
) -> None:
    forms = campaign.random(f"echo {answer_kind}").sample(sorted(FORMS), campaign.rounds(3, len(FORMS)))
    current = [FORMS["plain"](KEY)]
    async with (
        serving(lambda: ANSWERS[answer_kind](current[0])) as url,
        engine_parts(tmp_path, ModelServer(), ONCE) as engine,
    ):
        keys = engine.services.keys
        for number, form in enumerate(forms):
            current[0] = FORMS[form](KEY)
            campaign.count("answers that quote the key")
            run_key = KEY if number % 2 else None  # for this run only, or stored
            await (keys.remove("openai_compatible") if run_key else keys.set("openai_compatible", KEY))
            params = TaskStartParams(
                prompt="go",
                model="openai_compatible/m",
                api_base=url,
                api_key=run_key,
                approve="never",
                max_turns=1,
                workspace=str(engine.workspace),
            )
            task = await engine.services.runner.start(params)
            await engine.watcher.until(partial(_is_over, engine, task.id))
            if engine.watcher.tasks(task.id)[-1].outcome.ended_at is None:
                await engine.services.runner.stop(task.id, "the test")
                await engine.watcher.end(task.id)
        export = DataExportParams(path=str(tmp_path / "export.json"))
        await export_json(engine.services.database, engine.services.paths, Redactor(), export)
        assert leaks(engine, (tmp_path / "export.json").read_bytes()) == []


def _is_over(engine: EngineParts, task_id: str) -> bool:
    """It has ended, or it asks whether to continue."""
    return any(
        task.outcome.ended_at is not None or task.activity.status == "waiting_user"
        for task in engine.watcher.tasks(task_id)
    )


@pytest.mark.usefixtures("warm_library")
@pytest.mark.parametrize(
    "model_id", ["openai/gpt-5.4", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash", "proxy/openai/x"]
)
async def test_no_way_to_a_model_tells_the_key(tmp_path: Path, model_id: str) -> None:
    answers = [ANSWERS[name] for name in ("a refusal", "a server error", "an error in the stream", "its text")]
    answers.append(lambda key: (307, key.encode()))
    current: list[tuple[int, bytes]] = [(200, b"")]
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "ERRAND_PROXY_API_KEY")
    async with serving(lambda: current[0]) as url:
        is_proxy = model_id.startswith("proxy/")
        keys = KeyStore(tmp_path / "keys", dict.fromkeys(names, KEY), lambda: None)
        models = ModelRouter(keys, tmp_path, ONCE, lambda: SettingValues(proxy_url=url if is_proxy else ""))
        model = models.open(model_id, None if is_proxy else url)
        for answer in answers:
            for form in ("plain", "JSON in escapes", "an address"):
                current[0] = answer(FORMS[form](KEY))
                events_text = repr(await collect(model, request_for(model_id)))
                assert list(written(events_text.encode())) == [], events_text
        await models.close()


async def test_a_proxys_reply_is_told_without_the_token_however_it_is_cut(tmp_path: Path) -> None:
    block: JsonObject = {"type": "block_start", "index": 0, "kind": "text", "id": "", "name": ""}
    pieces: list[JsonObject] = [{"type": "block_delta", "index": 0, "delta": letter} for letter in f"It is {KEY}"]
    events: list[JsonObject] = [{"type": "start"}, block, *pieces]
    async with serving(lambda: stream(*events, end=False)) as url:
        keys = KeyStore(tmp_path / "keys", {"ERRAND_PROXY_API_KEY": KEY}, lambda: None)
        models = ModelRouter(keys, tmp_path, ONCE, lambda: SettingValues(proxy_url=url))
        events_text = repr(await collect(models.open("proxy/openai/x"), request_for("proxy/openai/x")))
        await models.close()
    assert "It is" in events_text and list(written(events_text.encode())) == []


async def test_lists_of_models_and_tests_keep_and_tell_no_key(tmp_path: Path) -> None:
    current: list[tuple[int, bytes]] = [(200, b"")]
    async with serving(lambda: current[0]) as url:
        environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url}
        keys = KeyStore(tmp_path / "keys", environment, lambda: None)
        lists = tmp_path / "models.json"
        models = ModelRouter(keys, tmp_path, ONCE, SettingValues, lists)
        for write in FORMS.values():
            for answer in ((200, f'{{"data":[{{"id":"m-{write(KEY)}"}}]}}'), (403, write(KEY)), (302, "x")):
                current[0] = (answer[0], answer[1].encode())
                listed = await models.available.list(refresh=False, fetch=True)
                tested = await models.available.test("openai", "openai/m")
                assert list(written(repr((listed, tested)).encode())) == []
                assert list(written(lists.read_bytes())) == []
        await models.close()


def test_the_log_has_no_key_in_use(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.prepare()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        logs.configure(paths, "engine", Redactor(KEY))
        for write in FORMS.values():
            logging.getLogger("test").warning("%s", write(KEY))
        try:
            raise ValueError(KEY)
        except ValueError:
            logging.getLogger("test").exception("failed")
        root.handlers[0].close()
        assert list(written((paths.logs / "engine.log").read_bytes())) == []
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.mark.parametrize("address", ["http://h/v1?key={}", "http://{}@h/v1", "http://me:{}@h/v1", "http://h/v1#{}"])
async def test_an_address_that_holds_a_key_is_refused_and_kept_nowhere(tmp_path: Path, address: str) -> None:
    address = address.format(quote(KEY, safe=""))
    async with engine_parts(tmp_path, ModelServer(), ONCE) as engine:
        params = TaskStartParams(prompt="go", model="openai_compatible/m", workspace=str(engine.workspace))
        with pytest.raises(InvalidParams, match="more than a place") as refused:
            await engine.services.runner.start(msgspec.structs.replace(params, api_base=address))
        assert not list(written(str(refused.value).encode()))
        for name in ("default_api_base", "proxy_url"):
            with pytest.raises(InvalidParams, match="more than a place") as refused:
                engine.services.settings.set(name, address)
            assert not list(written(str(refused.value).encode()))
        engine.services.keys.add_environment({"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-another-0123456789"})
        with pytest.raises(EngineError, match="more than a place") as refused:
            await engine.services.runner.start(msgspec.structs.replace(params, model="openai/gpt-5.4"))
        listed = await engine.services.models.router.available.list(refresh=False)
        assert not list(written(str(refused.value).encode())) and not list(written(repr(listed).encode()))
        await asyncio.sleep(0)
        assert leaks(engine) == []

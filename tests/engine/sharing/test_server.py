"""Shared models: authentication, refusals, and that no key is visible."""

import asyncio
import logging
from contextlib import aclosing
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import SettingValues
from errand.engine.models.base import BlockDelta, ModelNotice, ReplyEnd, Retry
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from errand.engine.sharing.server import SharedModelFilter, SharingLimits
from errand.engine.sharing.tokens import Tokens
from errand.protocol.base import JsonObject
from errand.text.notice_text import data_text
from errand.text.redaction import Redactor
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import collect, final, request_for
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS, TOKEN, Shared, sharing

ONCE = RetryPolicy(attempts=1)
MODEL = "proxy/ollama/test-model"
BODY: JsonObject = {"model": "ollama/test-model", "context": {"systemPrompt": "", "messages": []}}


async def post(shared: Shared, body: JsonObject | bytes = BODY, **headers: str) -> tuple[int, str]:
    """One plain request: status and text."""
    request_headers = {"Authorization": f"Bearer {TOKEN}"} | headers
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{shared.url}/api/stream", headers=request_headers, data=data) as response,
    ):
        return response.status, await response.text()


def refusal(text: str) -> str:
    return f'{{"error": {{"message": "{text}"}}}}'


def client(folder: Path, shared: Shared, token: str = TOKEN, retry: RetryPolicy = ONCE) -> ModelRouter:
    """The router of another engine, with the address from its settings and the token from its environment."""
    keys = KeyStore(folder / "client", {**NO_LOCAL_SERVERS, "ERRAND_PROXY_API_KEY": token}, lambda: None)
    return ModelRouter(keys, folder, retry, lambda: SettingValues(proxy_url=shared.url))


def address(server: ModelServer) -> str:
    return server.url.removesuffix("/v1")


async def test_requests_without_a_valid_token_are_refused(tmp_path: Path) -> None:
    async with ModelServer() as upstream, sharing(address(upstream), tmp_path, ONCE) as shared:
        for wrong in ("", "Bearer ", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"bearer {TOKEN}"):
            assert (await post(shared, Authorization=wrong))[0] == 401
        assert (await post(shared, Origin="http://evil.example"))[0] == 403
        assert upstream.requests == []


async def test_token_removed_from_the_file_is_refused_at_once(tmp_path: Path) -> None:
    async with ModelServer([Reply(text="hi")]) as upstream, sharing(address(upstream), tmp_path, ONCE) as shared:
        models = client(tmp_path, shared)
        assert (await final(models.open(MODEL), request_for(MODEL))).text == "hi"
        shared.tokens_file.write_text("bob another-token-of-the-test-01\n")
        message = await final(models.open(MODEL), request_for(MODEL))
        await models.close()
    assert "Shared models refused the key (401)" in (message.error or "")
    assert "ERRAND_PROXY_API_KEY" in (message.error or "")


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "not a request"),
        (b"[" * 100_000, 400, "not a request"),
        ({**BODY, "apiKey": "sk-secret"}, 400, "unknown field"),
        ({**BODY, "options": {"apiKey": "sk-secret-key-123"}}, 400, "unknown field"),
        ({**BODY, "model": "scripted/tour"}, 404, "not shared here"),
        ({**BODY, "model": "openai_compatible/x"}, 404, "not shared here"),
        ({**BODY, "model": "../../etc/passwd"}, 404, "not shared here"),
        ({**BODY, "model": "openai/" + "%6d%79" * 50_000}, 404, "such a long name"),
        ({**BODY, "%6d%79" * 50_000: 1}, 400, "unknown field"),
        (b"x" * 5000, 413, "4,096 bytes"),
    ],
)
async def test_invalid_request_is_refused_with_a_reason(
    tmp_path: Path, body: JsonObject | bytes, status: int, reason: str
) -> None:
    bounds = SharingLimits(body_bytes=4096 if status == 413 else 1_000_000)
    async with ModelServer() as upstream, sharing(address(upstream), tmp_path, ONCE, bounds) as shared:
        answer = await post(shared, body)
    assert answer[0] == status
    assert reason in answer[1]
    assert "sk-secret" not in answer[1]
    assert len(answer[1]) < 2_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_body_in_another_encoding_than_its_headers_name_is_refused(tmp_path: Path, encoding: str) -> None:
    async with ModelServer() as upstream, sharing(address(upstream), tmp_path, ONCE) as shared:
        status, text = await post(shared, msgspec.json.encode(BODY), **{"Content-Encoding": encoding})
        assert status == 400 and "encoding" in text
        assert (await post(shared, b"{"))[0] == 400


@pytest.mark.parametrize(
    "content", [b"[" + b"[]," * 300_000 + b"[]]", b"[" + b"0," * 400_000 + b"0]", b"[" * 100 + b"]" * 100]
)
async def test_requests_with_too_many_values_are_refused_before_they_are_decoded(
    tmp_path: Path, content: bytes
) -> None:
    async with ModelServer() as upstream, sharing(address(upstream), tmp_path, ONCE) as shared:
        status, text = await post(shared, b'{"model": "x/y", "context": {"messages": %s}}' % content)
    assert status in (400, 413) and ("values" in text or "deeper" in text)


async def test_what_one_token_has_in_work_is_bounded_and_counted_until_the_reply_ends(tmp_path: Path) -> None:
    bounds, upstream = SharingLimits(work_bytes=4_000), ModelServer([Reply(text="hi")] * 5)
    async with upstream, sharing(address(upstream), tmp_path, ONCE, bounds) as shared:
        assert (await post(shared, b" " * 5_000))[0] == 429
        assert [(await post(shared))[0] for _ in range(5)] == [200] * 5


async def test_requests_of_one_token_are_limited_in_rate_and_number(tmp_path: Path) -> None:
    async with ModelServer([Reply(text="x" * 100, stall_after=2)]) as upstream:
        bounds = SharingLimits(at_once=1, burst=3, per_second=0.001)
        async with sharing(address(upstream), tmp_path, ONCE, bounds) as shared:
            models = client(tmp_path, shared)
            async with aclosing(models.open(MODEL).stream(request_for(MODEL), CancelSignal())) as events:
                async for event in events:
                    if isinstance(event, BlockDelta):
                        break
                assert await post(shared) == (
                    429,
                    '{"error": {"message": "At most 1 replies at once with one token."}}',
                )
            assert (await post(shared, b"{"))[0] == 400
            assert (await post(shared)) == (429, refusal("Too many requests with this token."))
            await models.close()


async def test_a_stop_at_the_client_ends_the_request_to_the_provider_at_once(tmp_path: Path) -> None:
    upstream = ModelServer([Reply(text="abcdefgh" * 50, stall_after=3)])
    async with upstream, sharing(address(upstream), tmp_path, ONCE) as shared:
        models, cancel, last = client(tmp_path, shared), CancelSignal(), None
        async with (
            asyncio.timeout(WAIT_LIMIT_S),
            aclosing(models.open(MODEL).stream(request_for(MODEL), cancel)) as events,
        ):
            async for event in events:
                last = event
                if isinstance(event, BlockDelta):
                    cancel.set()
        async with asyncio.timeout(WAIT_LIMIT_S):
            await upstream.requests[0].gone.wait()
        await models.close()
    assert isinstance(last, ReplyEnd)
    assert last.message.stop_reason == "aborted"


async def test_retries_on_the_other_machine_are_shown_here(tmp_path: Path) -> None:
    replies = [Reply(status=503, error="down"), Reply(text="up again")]
    twice = RetryPolicy(attempts=2, first_delay_s=0.001)
    async with ModelServer(replies) as upstream, sharing(address(upstream), tmp_path, twice) as shared:
        models = client(tmp_path, shared)
        events = await collect(models.open(MODEL), request_for(MODEL))
        await models.close()
    assert [event.reason for event in events if isinstance(event, Retry)] == ["server error 503"]
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    assert (end.message.text, end.message.model) == ("up again", MODEL)


async def test_log_has_the_usage_per_token_holder_and_no_content(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    upstream = ModelServer([Reply(text="a secret answer")])
    async with upstream, sharing(address(upstream), tmp_path, ONCE) as shared:
        models = client(tmp_path, shared)
        await final(models.open(MODEL), request_for(MODEL))
        await models.close()
    assert "ann asks ollama/test-model" in caplog.text
    assert "ann took 100 + 20 tokens of ollama/test-model, 0.000000 USD" in caplog.text
    assert "secret" not in caplog.text and TOKEN not in caplog.text


async def test_local_fallback_answers_if_the_other_machine_is_gone(tmp_path: Path) -> None:
    async with ModelServer([Reply(text="from here")]) as local:
        keys = KeyStore(
            tmp_path, {**NO_LOCAL_SERVERS, "ERRAND_PROXY_API_KEY": TOKEN, "OLLAMA_HOST": address(local)}, lambda: None
        )
        values = SettingValues(proxy_url="http://127.0.0.1:9", fallback_models="ollama/mine")
        models = ModelRouter(keys, tmp_path, ONCE, lambda: values)
        events = await collect(models.open(MODEL), request_for(MODEL))
        await models.close()
    (remark,) = [data_text(event.data) for event in events if isinstance(event, ModelNotice)]
    assert "Cannot reach Shared models at http://127.0.0.1:9" in remark
    assert "errand share-models" in remark


async def test_address_of_another_program_is_reported_as_such(tmp_path: Path) -> None:
    async def greet(request: web.Request) -> web.Response:
        return web.Response(text="<html>Hello", content_type="text/html")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", greet)
    async with TestServer(application) as other:
        keys = KeyStore(tmp_path, {**NO_LOCAL_SERVERS, "ERRAND_PROXY_API_KEY": TOKEN}, lambda: None)
        models = ModelRouter(keys, tmp_path, ONCE, lambda: SettingValues(proxy_url=str(other.make_url("/"))))
        message = await final(models.open(MODEL), request_for(MODEL))
        await models.close()
    assert (message.error or "").endswith("answers, but shares no models. Check the address.")


async def test_silent_model_is_distinguished_from_an_unreachable_machine(tmp_path: Path) -> None:
    bounds = SharingLimits(life_s=0.02)
    upstream = ModelServer([Reply(text="at last", delay_s=0.2)])
    async with upstream, sharing(address(upstream), tmp_path, ONCE, bounds) as shared:
        status, text = await post(shared)
    assert status == 200
    assert text.count(": at work\n\n") >= 2
    assert '"type":"end"' in text.splitlines()[-2]


def test_shared_models_are_selected_by_patterns() -> None:
    offer = SharedModelFilter(("openai/*", "ollama/qwen3"))
    assert [offer.has(name) for name in ("openai/gpt-5.4", "ollama/qwen3", "ollama/qwen", "gemini/x")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "text", ["", "# nobody\n", "ann short\n", "a b a-token-that-is-long-enough\n", "tökenökentökenöken\n"]
)
def test_empty_or_unsafe_token_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(ConfigurationError):
        Tokens.open(file, Redactor())


def test_missing_token_file_is_created_readable_only_by_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "tokens"
    tokens = Tokens.open(file, Redactor())
    name, token = file.read_text().split()
    assert file.stat().st_mode & 0o777 == 0o600
    assert tokens.holder(f"Bearer {token}") == name
    assert tokens.holder(f"Bearer {token[:-1]}") is None

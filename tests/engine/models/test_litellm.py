"""Models through litellm, in its process: what becomes of a request when that ends, hangs or fails."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, Image
from errand.engine.core.outgoing import CERTIFICATE_HELP
from errand.engine.models.base import BlockDelta, ModelRequest, ReplyEnd, Retry
from errand.engine.models.catalog.providers import Provider, find
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.litellm.library_process import LibraryProcess
from errand.engine.models.litellm.model import LiteLLMModel, practice_request
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from tests.engine.models.providers import LIBRARY, ONCE, PATIENT, QUICK, stored_key
from tests.support.company_network import HOST, company_network
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import collect, final, request_for
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import is_alive, until
from tests.support.warm_library import warm_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

REQUEST = request_for("openai/test-model")
GEMINI = request_for("gemini/gemini-3.8-flash")
HELLO = Reply(text="Hello.")
STALLED = Reply(text="abcdefgh" * 50, stall_after=5)


@dataclass(frozen=True, slots=True)
class Library:
    process: LibraryProcess
    model: RecoveringModel
    server: ModelServer

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid


@asynccontextmanager
async def library(
    replies: Sequence[Reply],
    process: LibraryProcess | None = None,
    row: Provider = LIBRARY,
    retry: RetryPolicy = ONCE,
    timeouts: Timeouts = PATIENT,
    url: str = "",
) -> AsyncGenerator[Library]:
    process = process or warm_process()
    async with ModelServer(replies) as server:
        provider = LiteLLMModel(ModelEndpoint(row, url or server.url, stored_key), process, timeouts)
        try:
            yield Library(process, RecoveringModel(ModelSource(provider), retry), server)
        finally:
            await process.close()


def _shown_by_the_system(pid: int) -> bytes:
    process_info = Path(f"/proc/{pid}/cmdline").read_bytes()
    with suppress(PermissionError):  # which shows nothing to others of the same user
        process_info += Path(f"/proc/{pid}/environ").read_bytes()
    return process_info


def gemini() -> Provider:
    row = find("gemini")
    assert row is not None
    return row


async def killed_at_the_first_words(opened: Library) -> tuple[AssistantMessage, list[Retry]]:
    retries: list[Retry] = []
    async with asyncio.timeout(WAIT_LIMIT_S), aclosing(opened.model.stream(REQUEST, CancelSignal())) as events:
        async for event in events:
            if isinstance(event, BlockDelta) and not retries:
                os.kill(opened.pid, signal.SIGKILL)
            elif isinstance(event, Retry):
                retries.append(event)
            elif isinstance(event, ReplyEnd):
                return event.message, retries
    raise AssertionError("the reply has no end")


async def test_a_request_whose_process_is_killed_is_sent_again_by_another() -> None:
    async with library([STALLED, HELLO], retry=QUICK) as opened:
        message, retries = await killed_at_the_first_words(opened)
    assert (message.text, message.error) == ("Hello.", None)
    assert [retry.reason for retry in retries] == ["process ended"]


async def test_the_end_of_the_process_is_said_in_plain_words_and_keeps_what_came() -> None:
    async with library([STALLED, HELLO]) as opened:
        message, _ = await killed_at_the_first_words(opened)
        assert (await final(opened.model, REQUEST)).text == "Hello."
    assert message.error == "The process that asks Test library has ended. What came is kept; try again."
    assert message.text.startswith("abcdefgh")


async def test_the_process_ends_when_it_is_not_used_and_starts_again() -> None:
    async with library([HELLO] * 2, warm_process(idle_s=0.05)) as opened:
        for _ in range(2):
            assert (await final(opened.model, REQUEST)).text == "Hello."
            await until(lambda: opened.process.pid is None)


async def test_a_process_that_dies_is_replaced_before_the_next_request() -> None:
    async with library([HELLO] * 2, warm_process(stable_s=0.0)) as opened:
        assert (await final(opened.model, REQUEST)).text == "Hello."
        dead = opened.pid
        os.kill(dead, signal.SIGKILL)
        await until(lambda: opened.process.pid not in (None, dead))
        assert (await final(opened.model, REQUEST)).text == "Hello."


async def test_streams_of_others_go_on_while_one_does_not_read() -> None:
    long_text = " ".join(map(str, range(150_000)))
    async with library([Reply(text=long_text, piece_length=300), HELLO]) as opened:
        async with aclosing(opened.model.stream(REQUEST, CancelSignal())) as events:
            async for event in events:
                if isinstance(event, BlockDelta):
                    break
            assert (await final(opened.model, REQUEST)).text == "Hello."
            rest = [event async for event in events]
        last = rest[-1]
    assert isinstance(last, ReplyEnd)
    assert (last.message.text, last.message.error) == (long_text, None)


async def test_a_process_that_hangs_is_ended_and_the_next_request_has_another() -> None:
    async with library([STALLED, HELLO], warm_process(leave_s=0.05), timeouts=Timeouts(20.0, 1.0)) as opened:
        hung = 0
        async with asyncio.timeout(WAIT_LIMIT_S), aclosing(opened.model.stream(REQUEST, CancelSignal())) as events:
            async for event in events:
                if isinstance(event, BlockDelta) and not hung:
                    hung = opened.pid
                    os.kill(hung, signal.SIGSTOP)
        await until(lambda: not is_alive(hung))
        assert (await final(opened.model, REQUEST)).text == "Hello."


async def test_a_started_process_is_warm_and_practises_without_a_request() -> None:
    async with library([HELLO], row=gemini()) as opened:
        opened.process.prepare(practice_request(gemini(), GEMINI.model))
        opened.process.prepare(practice_request(gemini(), GEMINI.model))
        await until(lambda: opened.process.pid is not None)
        pid = opened.pid
        assert (await final(opened.model, GEMINI)).text == "Hello."
        assert opened.pid == pid
        assert [request.path for request in opened.server.requests] == [
            "/v1/models/gemini-3.8-flash:streamGenerateContent"
        ]


async def test_a_large_picture_reaches_the_provider_whole() -> None:
    picture = Image("QUJD" * 1_000_000, "image/png")
    (message,) = REQUEST.messages
    request = ModelRequest(REQUEST.model, "", (replace(message, content=(picture,)),))
    async with library([HELLO]) as opened:
        assert (await final(opened.model, request)).text == "Hello."
        assert "QUJD" * 1_000_000 in str(opened.server.requests[0].body)


async def test_refusal_is_quoted_as_the_provider_wrote_it() -> None:
    async with library([Reply(status=404, body='{"error": {"message": "no such model"}}')], row=gemini()) as opened:
        message = await final(opened.model, GEMINI)
    explanation = "Google Gemini does not know this model or address (404): no such model. "
    assert message.error == f"{explanation}Check the model's name and the base URL."


async def test_a_limit_of_gemini_is_kept_with_its_wait() -> None:
    details = '[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]'
    body = f'{{"error": {{"code": 429, "message": "Resource has been exhausted.", "details": {details}}}}}'
    async with library([Reply(status=429, body=body)], row=gemini()) as opened:
        end = (await collect(opened.model, GEMINI))[-1]
    assert isinstance(end, ReplyEnd)
    assert end.retry_later is not None and end.retry_later.at is not None
    assert (end.message.error or "").startswith("Google Gemini limits how much can be asked (429)")
    assert "Try again in 37 s" in (end.message.error or "")


async def test_a_server_that_is_not_there_is_said_with_its_address() -> None:
    async with library([], row=gemini(), url="http://127.0.0.1:9") as opened:
        message = await final(opened.model, GEMINI)
    assert message.error == ("Cannot reach Google Gemini at http://127.0.0.1:9: check the network and the base URL.")


async def test_without_the_library_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "litellm", raising=False)  # tests of prices import it
    async with library([], LibraryProcess(), retry=QUICK) as opened:
        message = await final(opened.model, REQUEST)
    explanation = "Test library is asked through the package litellm, which is not installed. Install Errand again."
    assert message.error == explanation


async def test_what_the_library_itself_says_is_not_shown() -> None:
    row = Provider("bedrock", "Amazon Bedrock", "litellm", price_prefix="bedrock")
    async with library([], row=row) as opened:
        message = await final(opened.model, replace(REQUEST, model="bedrock/nobody.knows", tools=()))
    assert message.error is not None
    assert message.error.startswith("Amazon Bedrock")
    assert "litellm." not in message.error
    assert "Exception" not in message.error


async def test_a_proxy_that_does_not_speak_http_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    async with library([], LibraryProcess(), gemini(), url="https://a.test/v1") as opened:
        message = await final(opened.model, GEMINI)
    assert "names a socks5 proxy for a.test" in (message.error or "")


async def test_the_proxy_and_the_authority_of_a_company_hold_and_no_key_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca_file: list[str] = [""]
    async with (
        ModelServer([HELLO]) as server,
        company_network(tmp_path, urlsplit(server.url).port or 0, monkeypatch) as network,
        library([], LibraryProcess(lambda: ca_file[0]), gemini(), url=f"https://{HOST}/v1") as opened,
    ):
        refused = await final(opened.model, GEMINI)
        ca_file[0] = str(network.ca_file)
        assert (await final(opened.model, GEMINI)).text == "Hello."
        if sys.platform == "linux":
            process_info = await asyncio.to_thread(_shown_by_the_system, opened.pid)
            assert b"library_child" in process_info
            assert b"test-key-1234" not in process_info
    assert refused.error == (
        f"No secure connection to Google Gemini at https://{HOST}/v1. Check the base URL. {CERTIFICATE_HELP}"
    )
    assert network.seen == [f"CONNECT {HOST}:443 HTTP/1.1"] * 2

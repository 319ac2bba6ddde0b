"""All providers, set up for the same scripted replies: over real HTTP, except for the scripted model."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from errand.engine.models.anthropic.messages_api import MessagesApi
from errand.engine.models.base import ChatModel
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.litellm.model import LiteLLMModel
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.openai.responses_api import ResponsesApi
from errand.engine.models.proxy.model import ProxyModel
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.scripted import ScriptedModel
from errand.protocol.base import JsonObject, JsonValue
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import sharing
from tests.support.warm_library import warm_process

PATIENT = Timeouts()
ONCE = RetryPolicy(attempts=1)
QUICK = RetryPolicy(attempts=3, first_delay_s=0.001)
FAST = Provider("openai_compatible", "Test server", "openai_compatible", ("TEST_KEY",), key_optional=True)
MESSAGES = Provider("anthropic", "Test Messages", "anthropic", ("TEST_KEY",))
LIBRARY = Provider("openai", "Test library", "litellm", ("TEST_KEY",), price_prefix="openai")


@dataclass(frozen=True, slots=True)
class OpenedProvider:
    """A model, its id, and the server behind it (None for the scripted one)."""

    model: ChatModel
    model_id: str
    server: ModelServer | None


OpenProvider = Callable[..., AbstractAsyncContextManager[OpenedProvider]]


async def stored_key() -> str | None:
    return "test-key-1234"


@asynccontextmanager
async def fast(
    replies: Sequence[Reply], folder: Path, retry: RetryPolicy = ONCE, timeouts: Timeouts = PATIENT
) -> AsyncGenerator[OpenedProvider]:
    connections = HttpPool()
    async with ModelServer(replies) as server:
        provider = HttpModel(ModelEndpoint(FAST, server.url, stored_key), ChatCompletions, connections, timeouts)
        model = RecoveringModel(ModelSource(provider), retry)
        yield OpenedProvider(model, "openai_compatible/test-model", server)
        await model.close()
        await connections.close()


@asynccontextmanager
async def anthropic(
    replies: Sequence[Reply], folder: Path, retry: RetryPolicy = ONCE, timeouts: Timeouts = PATIENT
) -> AsyncGenerator[OpenedProvider]:
    connections = HttpPool()
    async with ModelServer(replies) as server:
        provider = HttpModel(ModelEndpoint(MESSAGES, server.url, stored_key), MessagesApi, connections, timeouts)
        model = RecoveringModel(ModelSource(provider), retry)
        yield OpenedProvider(model, "anthropic/test-model", server)
        await model.close()
        await connections.close()


@asynccontextmanager
async def responses(
    replies: Sequence[Reply], folder: Path, retry: RetryPolicy = ONCE, timeouts: Timeouts = PATIENT
) -> AsyncGenerator[OpenedProvider]:
    connections = HttpPool()
    async with ModelServer(replies) as server:
        provider = HttpModel(ModelEndpoint(FAST, server.url, stored_key), ResponsesApi, connections, timeouts)
        model = RecoveringModel(ModelSource(provider), retry)
        yield OpenedProvider(model, "openai_compatible/test-model", server)
        await model.close()
        await connections.close()


@asynccontextmanager
async def library(
    replies: Sequence[Reply], folder: Path, retry: RetryPolicy = ONCE, timeouts: Timeouts = PATIENT
) -> AsyncGenerator[OpenedProvider]:
    process = warm_process()
    async with ModelServer(replies) as server:
        provider = LiteLLMModel(ModelEndpoint(LIBRARY, server.url, stored_key), process, timeouts)
        model = RecoveringModel(ModelSource(provider), retry)
        yield OpenedProvider(model, "openai/test-model", server)
        await model.close()
        await process.close()


@asynccontextmanager
async def scripted(
    replies: Sequence[Reply], folder: Path, retry: RetryPolicy = ONCE, timeouts: Timeouts = PATIENT
) -> AsyncGenerator[OpenedProvider]:
    script: JsonObject = {"replies": [_entry(reply) for reply in replies]}
    (folder / "test-model.yaml").write_text(yaml.safe_dump(script))
    model = RecoveringModel(ModelSource(ScriptedModel(folder), estimates_usage=False), retry)
    yield OpenedProvider(model, "scripted/test-model", None)
    await model.close()


@asynccontextmanager
async def proxy(
    replies: Sequence[Reply], folder: Path, retry: RetryPolicy = ONCE, timeouts: Timeouts = PATIENT
) -> AsyncGenerator[OpenedProvider]:
    connections = HttpPool()
    async with ModelServer(replies) as server, sharing(server.url.removesuffix("/v1"), folder, retry) as shared:
        endpoint = ModelEndpoint(shared.row, shared.url, shared.token)
        model = RecoveringModel(ModelSource(ProxyModel(endpoint, connections, timeouts)), retry)
        yield OpenedProvider(model, "proxy/ollama/test-model", server)
        await model.close()
        await connections.close()


@asynccontextmanager
async def react(
    replies: Sequence[Reply], folder: Path, retry: RetryPolicy = ONCE, timeouts: Timeouts = PATIENT
) -> AsyncGenerator[OpenedProvider]:
    """The XML form over aiohttp: the server sends what such a model writes."""
    async with fast([_written(reply) for reply in replies], folder, retry, timeouts) as provider:
        yield OpenedProvider(provider.model, f"react/{provider.model_id}", provider.server)


def _written(reply: Reply) -> Reply:
    assert len(reply.calls) <= 1, "such a model makes one call at a time"
    for call in reply.calls:
        arguments = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
        written = f"<name>{call.tool}</name>\n<parameters>\n{arguments}\n</parameters>"
        text = f"{reply.text}\n\n<tool_code>\n{written}\n</tool_code>"
        return msgspec.structs.replace(reply, text=text, calls=())
    return reply


def _entry(reply: Reply) -> JsonValue:
    calls: list[JsonValue] = []
    for number, call in enumerate(reply.calls):
        assert isinstance(call.arguments, dict)
        calls.append({"tool": call.tool, "arguments": call.arguments, "id": call.id or f"call_{number}"})
    error = reply.error if reply.status != 200 else ""
    return {
        "text": reply.text,
        "thinking": reply.thinking,
        "calls": calls,
        "piece_length": reply.piece_length,
        "piece_delay_s": 0.0 if reply.stall_after is None else 0.02,
        "error": error,
    }

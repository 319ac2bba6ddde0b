"""A real machine that shares its models, on the loopback: its one provider is a model server of the test."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.engine.models.catalog import Provider, find
from app.engine.models.retry import RetryPolicy
from app.engine.models.router import ModelRouter
from app.engine.secrets import KeyStore
from app.engine.server.socket import bound
from app.engine.sharing.offer import Offer
from app.engine.sharing.server import Bounds, SharingServer
from app.engine.sharing.tokens import Tokens
from app.redaction import Redactor
from tests.support.no_local_servers import NO_LOCAL_SERVERS

TOKEN = "a-token-of-the-test-0123456789"


@dataclass(frozen=True, slots=True)
class Shared:
    """Where it listens, and what its client needs."""

    url: str
    row: Provider
    token: Callable[[], Awaitable[str | None]]
    tokens_file: Path


@asynccontextmanager
async def sharing(
    upstream: str,
    folder: Path,
    retry: RetryPolicy,
    bounds: Bounds | None = None,
    offer: Offer | None = None,
) -> AsyncGenerator[Shared]:
    """`upstream` takes the place of Ollama there."""
    file = folder / "share-tokens.txt"
    file.touch(0o600)
    file.write_text(f"ann {TOKEN}\n")
    keys = KeyStore(folder / "keys-of-the-other", {**NO_LOCAL_SERVERS, "OLLAMA_HOST": upstream}, lambda: None)
    models = ModelRouter(keys, folder, retry)
    server = SharingServer(models, Tokens.open(file, Redactor()), offer or Offer(), bounds or Bounds())
    listener = bound(0)
    port = listener.getsockname()[1]
    await server.start([listener])
    row = find("proxy")
    assert row is not None
    try:
        yield Shared(f"http://127.0.0.1:{port}", row, _token, file)
    finally:
        await server.close()
        await models.close()


async def _token() -> str | None:
    return TOKEN

"""Asks a model that runs on this machine: its server is started for the request, if it does not run."""

import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing

from errand.engine.core.cancel import CancelSignal
from errand.engine.models.base import AttemptEvent, BlockDelta, ModelRequest, ReplyEnd
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.deadline import Aborted, Deadline, Stalled
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.failures import AttemptFailure, FailedAttempt, FailureKind
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import ReplyTooLong
from errand.engine.models.servers.local_servers import LocalModelFailed, LocalModelServers
from errand.engine.models.servers.served_models import ServerAddress
from errand.text.redaction import Redactor

# A processor without a graphics card may read a long prompt for many minutes, and requests of others go first.
_TIMEOUTS = Timeouts(first_byte_s=3_600.0, between_s=300.0)
_START_LIMIT_S = 3_600.0
# Fewer tokens say little about the speed.
_MIN_MEASURED_TOKENS = 16


class LocalModel:
    """A `ModelProvider` for the models in files of this machine."""

    def __init__(self, provider: Provider, servers: LocalModelServers, pool: HttpPool, redactor: Redactor) -> None:
        self._provider = provider
        self._servers = servers
        self._pool = pool
        self._redactor = redactor
        self._asked: tuple[ServerAddress, HttpModel] | None = None

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        name = request.model.partition("/")[2]
        builder = ReplyBuilder(request.model, redactor=self._redactor)
        async with AsyncExitStack() as stack:
            try:
                with Deadline(stop, _START_LIMIT_S) as deadline:
                    async with deadline.within(_START_LIMIT_S):
                        address = await stack.enter_async_context(self._servers.serve(name))
            except Aborted:
                yield builder.abort()
                return
            except (Stalled, ReplyTooLong):
                text = (
                    f"{name} was not ready within {_START_LIMIT_S / 60:g} minutes: tasks with another model on this "
                    "machine go first. Wait until they are done, or choose their model."
                )
                yield self._failed(text, builder)
                return
            except LocalModelFailed as error:
                yield self._failed(f"{error} {error.advice}", builder)
                return
            async with aclosing(self._model_at(address).attempt(request, stop)) as events:
                began = 0.0
                async for event in events:
                    if isinstance(event, BlockDelta):
                        began = began or time.monotonic()
                    elif isinstance(event, ReplyEnd) and began:
                        self._measure(name, event, time.monotonic() - began)
                    yield event

    def _failed(self, text: str, builder: ReplyBuilder) -> FailedAttempt:
        failure = AttemptFailure(self._redactor.hide(text), "the local model cannot run", FailureKind.NOT_USABLE)
        return FailedAttempt(failure, builder.message)

    def _model_at(self, address: ServerAddress) -> HttpModel:
        """Return the model behind this address; it keeps what it converted while the server stays."""
        if self._asked is None or self._asked[0] != address:

            async def key() -> str:
                return address.key

            endpoint = ModelEndpoint(self._provider, address.base_url, key, self._redactor)
            self._asked = address, HttpModel(endpoint, ChatCompletions, self._pool, _TIMEOUTS)
        return self._asked[1]

    def _measure(self, name: str, event: ReplyEnd, seconds: float) -> None:
        tokens = event.message.usage.output_tokens
        if tokens >= _MIN_MEASURED_TOKENS and seconds > 0:
            self._servers.note_speed(name, tokens / seconds)

"""Another model where a provider fails, as long as nothing of the reply was shown."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import ConfigurationError
from app.engine.core.messages import AssistantMessage, Image, Usage, text_of
from app.engine.models.base import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    ChatModel,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    ReplyEnd,
    Retry,
)
from app.engine.models.catalog import model_facts
from app.engine.models.recovery.table import allows
from app.engine.models.reply.usage import CHARACTERS_A_TOKEN, add_usage

_SLOW_S = 1.0  # what fails sooner costs nothing to ask again, and may have been set right meanwhile
_REST_S = 60.0


class ModelCooldown:
    """Of one place; the times are for tests."""

    def __init__(self, slow_s: float = _SLOW_S, rest_s: float = _REST_S) -> None:
        self._slow_s = slow_s
        self._rest_s = rest_s
        self._until: dict[str, float] = {}

    def failed(self, model_id: str, took_s: float) -> None:
        if took_s >= self._slow_s:
            self._until[model_id] = time.monotonic() + self._rest_s

    def has(self, model_id: str) -> bool:
        return time.monotonic() < self._until.get(model_id, 0.0)


class ModelFallback:
    """A `ChatModel` around `first`. `others` gives the ids to ask after it, `open_other` the model of an id.

    The reply names the model that gave it; a `ModelNotice` says why. Its usage counts what the failed ones took too.
    One that kept a request waiting and failed is asked after the others for a while.
    """

    def __init__(
        self,
        first: ChatModel,
        others: Callable[[], tuple[str, ...]],
        open_other: Callable[[str], ChatModel],
        outages: ModelCooldown | None = None,
    ) -> None:
        self._first = first
        self._others = others
        self._open_other = open_other
        self._outages = outages or ModelCooldown()

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        failures: list[ReplyEnd] = []
        for model_id in self._in_order(request):
            if failures or model_id != request.model:
                yield ModelNotice(_why(request, failures, model_id), AssistantMessage(model=model_id))
            try:
                model = self._first if model_id == request.model else self._open_other(model_id)
            except ConfigurationError as error:
                failures.append(ReplyEnd(AssistantMessage((), "error", str(error), model_id)))
                continue
            attempt = _Attempt(model, _asked_of(model_id, request), cancel, _spent(failures))
            began = time.monotonic()
            async with aclosing(attempt.events()) as events:
                async for event in events:
                    yield event
            if attempt.failure is None:
                return
            self._outages.failed(model_id, time.monotonic() - began)
            failures.append(attempt.failure)
        yield _all_failed(request, failures)

    async def close(self) -> None:
        await self._first.close()

    def _in_order(self, request: ModelRequest) -> list[str]:
        """The model that was asked for, then the others; those that are out come last."""
        others = (model for model in self._others() if model != request.model and _can_take(model, request))
        return sorted(dict.fromkeys((request.model, *others)), key=self._outages.has)


class _Attempt:
    """One model's reply. `failure` is its end, held back, where another model may be asked instead."""

    def __init__(
        self, model: ChatModel, request: ModelRequest, cancel: CancelSignal, spent: Usage | None = None
    ) -> None:
        self.failure: ReplyEnd | None = None
        self._model = model
        self._request = request
        self._cancel = cancel
        self._spent = spent or Usage()

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        shown = False
        async with aclosing(self._model.stream(self._request, self._cancel)) as events:
            async for event in events:
                match event:
                    case BlockStart() | BlockDelta() | BlockEnd():
                        shown = True
                    case Retry():
                        shown = False
                    case ReplyEnd(failure=kind) if (
                        allows("other_model", kind) and not shown and not self._cancel.is_set
                    ):
                        self.failure = event
                        return
                    case ReplyEnd():
                        usage = add_usage(self._spent, event.message.usage)
                        event = replace(event, message=replace(event.message, usage=usage))
                    case _:
                        pass
                yield event


def _asked_of(model_id: str, request: ModelRequest) -> ModelRequest:
    """The key that was given for one model goes to no other."""
    if model_id == request.model:
        return request
    return replace(request, model=model_id, options=replace(request.options, api_key=None))


def _can_take(model_id: str, request: ModelRequest) -> bool:
    """False for one that is known not to see the pictures of this request, or not to read so much."""
    known = model_facts.facts(model_id)
    if known is None:
        return True
    has_pictures = any(isinstance(block, Image) for message in request.messages for block in message.content)
    if has_pictures and known.sees is False:
        return False
    characters = len(request.system_prompt) + sum(len(text_of(message)) for message in request.messages)
    return known.context_tokens is None or characters // CHARACTERS_A_TOKEN < known.context_tokens


def _why(request: ModelRequest, failures: list[ReplyEnd], model_id: str) -> str:
    if not failures:
        return f"{request.model} did not answer in the last minute, so {model_id} was asked."
    failure = failures[-1]
    return f"{failure.message.model} did not answer, so {model_id} was asked. {failure.message.error}"


def _all_failed(request: ModelRequest, failures: list[ReplyEnd]) -> ReplyEnd:
    """The end of the model that was asked for, and what became of the others."""
    first, *others = sorted(failures, key=lambda end: end.message.model != request.model)
    told = "".join(f" {end.message.model} was asked instead: {end.message.error}" for end in others)
    message = replace(first.message, error=f"{first.message.error}{told}", usage=_spent(failures))
    return replace(first, message=message)


def _spent(failures: list[ReplyEnd]) -> Usage:
    total = Usage()
    for failure in failures:
        total = add_usage(total, failure.message.usage)
    return total

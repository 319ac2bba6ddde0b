"""Fallback models: which ones are tried when a provider fails, and in which order."""

import time
from collections.abc import Callable
from dataclasses import replace

from errand.engine.core.messages import Image, Usage, text_of
from errand.engine.models.base import ModelRequest, ReplyEnd
from errand.engine.models.catalog import model_facts
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.reply.usage import CHARACTERS_A_TOKEN
from errand.protocol.notices import ModelChanged

_SLOW_S = 1.0  # a failure that comes sooner costs little to repeat, and its cause may be gone by then
_REST_S = 60.0


class ModelCooldown:
    """Models that failed after a wait of `slow_s` or more: for `rest_s` they are asked last."""

    def __init__(self, slow_s: float = _SLOW_S, rest_s: float = _REST_S) -> None:
        self._slow_s = slow_s
        self._rest_s = rest_s
        self._until: dict[str, float] = {}

    def failed(self, model_id: str, took_s: float) -> None:
        if took_s >= self._slow_s:
            self._until[model_id] = time.monotonic() + self._rest_s

    def is_cooling_down(self, model_id: str) -> bool:
        return time.monotonic() < self._until.get(model_id, 0.0)


def no_models() -> tuple[str, ...]:
    return ()


class FallbackModels:
    """`first` serves the requested model; `others` returns the ids of its fallbacks, `open_other` opens one.

    `open_other` raises `ConfigurationError` if an id cannot be opened.
    """

    def __init__(
        self,
        first: ModelSource,
        others: Callable[[], tuple[str, ...]] = no_models,
        open_other: Callable[[str], ModelSource] | None = None,
        cooldown: ModelCooldown | None = None,
    ) -> None:
        self.first = first
        self.cooldown = cooldown or ModelCooldown()
        self._others = others
        self._open_other = open_other

    def in_order(self, request: ModelRequest) -> list[str]:
        """Return the requested model, then the others that can take the request; those in cooldown come last."""
        others = (model for model in self._others() if model != request.model and _can_take(model, request))
        return sorted(dict.fromkeys((request.model, *others)), key=self.cooldown.is_cooling_down)

    def open(self, model_id: str, request: ModelRequest) -> ModelSource:
        if model_id == request.model or self._open_other is None:
            return self.first
        return self._open_other(model_id)


def request_to(model_id: str, request: ModelRequest) -> ModelRequest:
    """Return the request for this model, without what is for the first one alone, such as its API key."""
    if model_id == request.model:
        return request
    options = replace(request.options, api_key=None, prompt_progress=False, call_form="native", is_small=False)
    return replace(request, model=model_id, options=options)


def fallback_notice(request: ModelRequest, failures: list[ReplyEnd], model_id: str) -> ModelChanged:
    """Why a fallback model is used."""
    if not failures:
        return ModelChanged(from_model=request.model, to_model=model_id)
    failed = failures[-1].message
    return ModelChanged(from_model=failed.model, to_model=model_id, reason=failed.error or "")


def all_failed(request: ModelRequest, failures: list[ReplyEnd], usage: Usage) -> ReplyEnd:
    """Return the failure of the requested model, with the outcome of the others; `usage` covers all attempts."""
    first, *others = sorted(failures, key=lambda end: end.message.model != request.model)
    attempts = "".join(f" {end.message.model} was asked instead: {end.message.error}" for end in others)
    return replace(first, message=replace(first.message, error=f"{first.message.error}{attempts}", usage=usage))


def _can_take(model_id: str, request: ModelRequest) -> bool:
    """Return False if the model is known not to accept the request's images, or to have too small a context window."""
    facts = model_facts.facts(model_id)
    if facts is None:
        return True
    has_images = any(isinstance(block, Image) for message in request.messages for block in message.content)
    if has_images and facts.sees is False:
        return False
    characters = len(request.system_prompt) + sum(len(text_of(message)) for message in request.messages)
    return facts.context_tokens is None or characters // CHARACTERS_A_TOKEN < facts.context_tokens

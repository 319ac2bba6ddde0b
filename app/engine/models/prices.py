"""Prices, context sizes and abilities of well-known models, from the file litellm ships, read without importing it."""

import functools
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from app.engine.messages import Usage
from app.engine.models import catalog

_FILE = "model_prices_and_context_window_backup.json"
_LARGE_PROMPT = 200_000
_MILLION = 1_000_000


class _Row(msgspec.Struct):
    """The fields of a row that are used; prices are for one token."""

    litellm_provider: str = ""
    mode: str = ""
    max_input_tokens: int | float | str | None = None
    input_cost_per_token: float | str | None = None
    output_cost_per_token: float | str | None = None
    cache_read_input_token_cost: float | str | None = None
    cache_creation_input_token_cost: float | str | None = None
    input_cost_per_token_above_200k_tokens: float | str | None = None
    output_cost_per_token_above_200k_tokens: float | str | None = None
    supports_function_calling: bool | str | None = None
    supports_reasoning: bool | str | None = None
    supports_vision: bool | str | None = None
    supports_none_reasoning_effort: bool | str | None = None
    supports_minimal_reasoning_effort: bool | str | None = None
    supports_xhigh_reasoning_effort: bool | str | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of one model. Prices are US dollars for one token; None is for what is not known.

    `reasons` says that it is known to think, `thinks` whether it does.
    """

    context_tokens: int | None
    input_price: float | None
    output_price: float | None
    cache_read_price: float | None
    cache_write_price: float | None
    large_input_price: float | None
    large_output_price: float | None
    calls_tools: bool | None
    sees: bool | None
    reasons: bool
    efforts: frozenset[str]
    thinks: bool | None = None

    def cost(self, usage: Usage) -> float | None:
        """US dollars of one call; None where the price is unknown. Long prompts cost more with some models."""
        if self.input_price is None or self.output_price is None:
            return None
        large = usage.input_tokens > _LARGE_PROMPT
        price_in = (self.large_input_price if large else None) or self.input_price
        price_out = (self.large_output_price if large else None) or self.output_price
        read = self.cache_read_price if self.cache_read_price is not None else price_in
        write = self.cache_write_price if self.cache_write_price is not None else price_in
        fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        return (
            fresh * price_in
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * price_out
        )


_own: dict[str, ModelFacts] = {}
_listed: dict[str, ModelFacts] = {}


def told_facts(
    context_tokens: int | None,
    input_price: float | None,
    output_price: float | None,
    tools: bool | None,
    images: bool | None,
    thinking: bool | None,
) -> ModelFacts:
    """What a person or a provider told of a model; prices are for a million tokens."""
    into = None if input_price is None else input_price / _MILLION
    out = None if output_price is None else output_price / _MILLION
    return ModelFacts(
        context_tokens, into, out, None, None, None, None, tools, images, bool(thinking), frozenset(), thinking
    )


def learn(own: Mapping[str, ModelFacts], listed: Mapping[str, ModelFacts]) -> None:
    """Take in what a person wrote, which goes before the file, and what providers list, which comes after it.

    Once for the process, as the file is.
    """
    global _own, _listed
    _own, _listed = ({catalog.bare_id(name): known for name, known in table.items()} for table in (own, listed))


def facts(model_id: str) -> ModelFacts | None:
    """What is known of `provider/model`. The first call reads the file (about 15 ms)."""
    bare = catalog.bare_id(model_id)
    return _own.get(bare) or _from_file(bare) or _listed.get(bare)


def _from_file(model_id: str) -> ModelFacts | None:
    provider, _, name = model_id.partition("/")
    row = catalog.find(provider)
    prefix = row.price_prefix if row else provider
    if not prefix:
        return None
    table = _table()
    found = table.get(f"{prefix}/{name}") or table.get(name)
    return _facts(found) if found is not None and found.litellm_provider == prefix else None


def priced(model_id: str, usage: Usage) -> Usage:
    """The usage with its cost, unless the provider told the cost itself or the price is unknown."""
    if usage.cost_usd or not (usage.input_tokens or usage.output_tokens):
        return usage
    known = facts(model_id)
    cost = known.cost(usage) if known else None
    return usage if cost is None else replace(usage, cost_usd=cost)


def chat_models(provider: str) -> tuple[str, ...]:
    """Names of the provider's models that chat and call tools, in the order of the file."""
    row = catalog.find(provider)
    prefix = row.price_prefix if row else provider
    names = (
        name.removeprefix(f"{prefix}/")
        for name, found in _table().items()
        if found.litellm_provider == prefix and found.mode == "chat" and found.supports_function_calling is True
    )
    return tuple(dict.fromkeys(names)) if prefix else ()


def is_known_provider(name: str) -> bool:
    """Whether litellm's file has models of this provider."""
    return any(row.litellm_provider == name for row in _table().values())


@functools.cache
def _table() -> dict[str, _Row]:
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        return {}
    file = Path(found.origin).with_name(_FILE)
    if not file.is_file():
        return {}
    rows = msgspec.json.decode(file.read_bytes(), type=dict[str, _Row])
    return {name: row for name, row in rows.items() if row.mode in ("chat", "responses")}


def _facts(row: _Row) -> ModelFacts:
    levels = {
        "none": row.supports_none_reasoning_effort,
        "minimal": row.supports_minimal_reasoning_effort,
        "xhigh": row.supports_xhigh_reasoning_effort,
    }
    context = _number(row.max_input_tokens)
    return ModelFacts(
        int(context) if context else None,
        _number(row.input_cost_per_token),
        _number(row.output_cost_per_token),
        _number(row.cache_read_input_token_cost),
        _number(row.cache_creation_input_token_cost),
        _number(row.input_cost_per_token_above_200k_tokens),
        _number(row.output_cost_per_token_above_200k_tokens),
        _flag(row.supports_function_calling),
        _flag(row.supports_vision),
        row.supports_reasoning is True,
        frozenset(level for level, has in levels.items() if has is True),
        _flag(row.supports_reasoning),
    )


def _flag(value: bool | str | None) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: float | str | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None

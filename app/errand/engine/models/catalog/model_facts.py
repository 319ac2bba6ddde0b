"""Prices, context sizes and capabilities of known models, from litellm's file without importing litellm."""

import functools
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from errand.engine.core.messages import Usage
from errand.engine.models.catalog import providers
from errand.engine.models.catalog.served_facts import ServedFacts

_FILE = "model_prices_and_context_window_backup.json"
_MILLION = 1_000_000
# Thresholds, in thousands of input tokens, above which some models have other prices.
_THRESHOLDS = (100, 128, 200, 272, 512)
# This provider's higher price includes the threshold; the others' applies above it.
_INCLUSIVE = "xai"


class _Row(msgspec.Struct):
    """The fields that are used; prices are per token."""

    litellm_provider: str = ""
    mode: str = ""
    max_input_tokens: int | float | str | None = None
    max_output_tokens: int | float | str | None = None
    input_cost_per_token: float | str | None = None
    output_cost_per_token: float | str | None = None
    cache_read_input_token_cost: float | str | None = None
    cache_creation_input_token_cost: float | str | None = None
    supports_function_calling: bool | str | None = None
    supports_reasoning: bool | str | None = None
    supports_vision: bool | str | None = None
    supports_none_reasoning_effort: bool | str | None = None
    supports_minimal_reasoning_effort: bool | str | None = None
    supports_xhigh_reasoning_effort: bool | str | None = None
    supports_adaptive_thinking: bool | str | None = None
    thinking_always_on: bool | str | None = None


_PRICES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}
_TieredRow = msgspec.defstruct(
    "_TieredRow",
    [
        (f"{name}_above_{threshold}k_tokens", float | str | None, None)
        for name in _PRICES.values()
        for threshold in _THRESHOLDS
    ],
    bases=(_Row,),
)


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per token; None if there is no separate price."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def with_defaults(self, base: "Prices") -> "Prices":
        """Return these prices, with missing ones taken from `base`."""
        return Prices(
            base.input if self.input is None else self.input,
            base.output if self.output is None else self.output,
            base.cache_read if self.cache_read is None else self.cache_read,
            base.cache_write if self.cache_write is None else self.cache_write,
        )


FREE = Prices(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The known facts of one model; None means unknown.

    `tiers` are other prices for the whole call, each from a number of input tokens on, lowest first. `reasons`: the
    model is known to think; `thinks`: whether it does, if that is known. `takes_effort`: a Claude that is told an
    effort, where older ones are given a number of tokens; `always_thinks`: it cannot be told not to. `takes_window`:
    its server gives it the window that a request asks for.
    """

    context_tokens: int | None
    output_tokens: int | None
    prices: Prices
    tiers: tuple[tuple[int, Prices], ...]
    calls_tools: bool | None
    sees: bool | None
    reasons: bool
    efforts: frozenset[str]
    thinks: bool | None = None
    takes_effort: bool = False
    always_thinks: bool = False
    takes_window: bool = False

    def cost(self, usage: Usage) -> float | None:
        """US dollars of one call; None if the price is unknown.

        If a provider charges less at night, the day price is used, so a cost limit is reached early rather than late.
        """
        prices = self.prices
        for first, dearer in self.tiers:
            if usage.input_tokens >= first:
                prices = dearer.with_defaults(prices)
        if prices.input is None or prices.output is None:
            return None
        read = prices.input if prices.cache_read is None else prices.cache_read
        write = prices.input if prices.cache_write is None else prices.cache_write
        fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        return (
            fresh * prices.input
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * prices.output
        )


_own: dict[str, ModelFacts] = {}
_listed: dict[str, ModelFacts] = {}
_families: dict[str, str] = {}
_served = ServedFacts()


def parse_facts(
    context_tokens: int | None,
    input_price: float | None,
    output_price: float | None,
    tools: bool | None,
    images: bool | None,
    thinking: bool | None,
) -> ModelFacts:
    """Return the facts from a setting or a provider's list; prices are per million tokens."""
    into = None if input_price is None else input_price / _MILLION
    out = None if output_price is None else output_price / _MILLION
    prices = Prices(into, out)
    return ModelFacts(context_tokens, None, prices, (), tools, images, bool(thinking), frozenset(), thinking)


def register(
    own: Mapping[str, ModelFacts], listed: Mapping[str, ModelFacts], families: Mapping[str, str] | None = None
) -> None:
    """Set the facts from the settings, which override the file, and from model lists, which only complement it.

    `families` has the provider of the file for each one that a person added. Global to the process, like the file.
    """
    global _own, _listed, _families
    _families = dict(families or {})
    _own, _listed = ({providers.bare_id(name): model for name, model in table.items()} for table in (own, listed))


def use_served(served: ServedFacts) -> None:
    """Take what servers say from here on from this object, which belongs to one engine."""
    global _served
    _served = served


def register_served(facts: Mapping[str, ModelFacts], address: str = "") -> None:
    """Keep what the server at an address says of its models; the models of this machine have none."""
    _served.register({providers.bare_id(name): model for name, model in facts.items()}, address)


def register_window(model_id: str, tokens: int, address: str = "") -> None:
    """Keep the context window that the server at an address named when it refused a longer request."""
    _served.learn_window(providers.bare_id(model_id), tokens, address)


def facts(model_id: str, address: str | None = None) -> ModelFacts | None:
    """Return the known facts of `provider/model`, of a server that people run that at the address.

    Without an address its last answer counts, whichever server gave it. The first call reads the file (about 15 ms).
    """
    bare = providers.bare_id(model_id)
    described = _own.get(bare) or _from_file(_in_file(bare)) or _served_or_listed(bare, address)
    if described is None and (window := _served.learned_window(bare, address)) is not None:
        described = parse_facts(window, None, None, None, None, None)
    return None if described is None else _served.with_learned_window(bare, address, described)


def window_to_ask_for(model_id: str, address: str | None = None) -> int | None:
    """Return the window that requests to a model name; None if its server takes none."""
    served, model = _served.find(providers.bare_id(model_id), address), facts(model_id, address)
    return model.context_tokens if served is not None and served.takes_window and model is not None else None


def _served_or_listed(bare: str, address: str | None) -> ModelFacts | None:
    """Return what a server says of its model, completed by its list, which has prices."""
    served, listed = _served.find(bare, address), _listed.get(bare)
    if served is None or listed is None:
        return served or listed
    return replace(
        served,
        context_tokens=served.context_tokens or listed.context_tokens,
        prices=served.prices.with_defaults(listed.prices),
        calls_tools=listed.calls_tools if served.calls_tools is None else served.calls_tools,
        sees=listed.sees if served.sees is None else served.sees,
    )


def _in_file(bare: str) -> str:
    """Return the id under which the file has a model of a provider that a person added."""
    provider, slash, name = bare.partition("/")
    return f"{_families.get(provider, provider)}{slash}{name}"


@functools.cache
def _from_file(model_id: str) -> ModelFacts | None:
    provider, _, name = model_id.partition("/")
    provider_row = providers.find(provider)
    prefix = provider_row.price_prefix if provider_row else provider
    if not prefix:
        return None
    table = _table()
    model_row = table.get(f"{prefix}/{name}") or table.get(name)
    return _facts(model_row) if model_row is not None and model_row.litellm_provider == prefix else None


def with_cost(model_id: str, usage: Usage) -> Usage:
    """Return the usage with its cost, unless the provider reported the cost or the price is unknown."""
    if usage.cost_usd or not (usage.input_tokens or usage.output_tokens):
        return usage
    model = facts(model_id)
    cost = model.cost(usage) if model else None
    return usage if cost is None else replace(usage, cost_usd=cost)


def chat_models(provider: str) -> tuple[str, ...]:
    """Return the names of the provider's chat models with tool calls, in the order of the file.

    Its rows of prices for fine-tuned models are left out: their names are not ids.
    """
    provider = _families.get(provider, provider)
    row = providers.find(provider)
    prefix = row.price_prefix if row else provider
    modes = ("chat", "responses") if provider == "openai" else ("chat",)
    names = (
        name.removeprefix(f"{prefix}/")
        for name, entry in _table().items()
        if entry.litellm_provider == prefix and entry.mode in modes and entry.supports_function_calling is True
        if not name.startswith("ft:")
    )
    return tuple(dict.fromkeys(names)) if prefix else ()


def is_known_provider(name: str) -> bool:
    """Return True if litellm's file has models of this provider."""
    return any(row.litellm_provider == name for row in _table().values())


@functools.cache
def _table() -> dict[str, _Row]:
    package = importlib.util.find_spec("litellm")
    if package is None or package.origin is None:
        return {}
    file = Path(package.origin).with_name(_FILE)
    if not file.is_file():
        return {}
    rows = msgspec.json.decode(file.read_bytes(), type=dict[str, _TieredRow])
    return {name: row for name, row in rows.items() if isinstance(row, _Row) and row.mode in ("chat", "responses")}


def _facts(row: _Row) -> ModelFacts:
    levels = {
        "none": row.supports_none_reasoning_effort,
        "minimal": row.supports_minimal_reasoning_effort,
        "xhigh": row.supports_xhigh_reasoning_effort,
    }
    context, longest = _number(row.max_input_tokens), _number(row.max_output_tokens)
    above = 0 if row.litellm_provider == _INCLUSIVE else 1
    tiers = ((threshold * 1000 + above, _prices(row, f"_above_{threshold}k_tokens")) for threshold in _THRESHOLDS)
    return ModelFacts(
        int(context) if context else None,
        int(longest) if longest else None,
        _prices(row, ""),
        tuple(tier for tier in tiers if tier[1] != Prices()),
        _flag(row.supports_function_calling),
        _flag(row.supports_vision),
        row.supports_reasoning is True,
        frozenset(level for level, has in levels.items() if has is True),
        _flag(row.supports_reasoning),
        row.supports_adaptive_thinking is True,
        row.thinking_always_on is True,
    )


def _prices(row: _Row, suffix: str) -> Prices:
    return Prices(**{kind: _number(getattr(row, f"{name}{suffix}")) for kind, name in _PRICES.items()})


def _flag(value: bool | str | None) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: float | str | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None

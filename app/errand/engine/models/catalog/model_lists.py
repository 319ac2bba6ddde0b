"""Model lists fetched from providers, stored with their date."""

import asyncio
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from errand.engine.core.input_limits import price, window_size
from errand.engine.core.json_input.foreign_json import decode_foreign, flag_or_none, object_or_empty
from errand.engine.core.outgoing import UnusableRoute, proxy_of
from errand.engine.models.catalog.model_facts import ModelFacts, parse_facts
from errand.engine.models.catalog.providers import RESPONSES_PATH, Provider
from errand.engine.models.failures import error_text
from errand.protocol.base import JsonObject, JsonValue
from errand.system.regular_file import read_regular
from errand.text.redaction import Redactor

if TYPE_CHECKING:
    from errand.engine.models.http_pool import HttpPool

_LIMIT_S = 15.0
_MAX_LIST_BYTES = 4 * 1024 * 1024
_MAX_MODELS = 2000
_MAX_CACHE_BYTES = 64 * 1024 * 1024
# Listed models that are not chat models.
_NO_CHAT = re.compile(
    r"embed|tts|whisper|dall-e|moderation|transcribe|realtime|rerank|sora|imagen|veo|-image|ocr|audio|speech|babbage|davinci",
    re.IGNORECASE,
)


class ListedModel(msgspec.Struct, frozen=True):
    """One model of a list. Prices are US dollars per million tokens."""

    name: str
    context_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    tools: bool | None = None
    images: bool | None = None

    def facts(self) -> ModelFacts:
        return parse_facts(self.context_tokens, self.input_price, self.output_price, self.tools, self.images, None)


class ModelList(msgspec.Struct, frozen=True):
    """The list of one provider, and when it was fetched."""

    at: datetime
    models: tuple[ListedModel, ...]


@dataclass(frozen=True, slots=True)
class ListSource:
    """A provider whose list can be fetched, with its address and key."""

    provider: Provider
    base_url: str
    key: str


class ModelListCache:
    """All fetched lists. `errors` has the reason, by provider, if the last refresh failed and the old list stays."""

    def __init__(self, file: Path | None) -> None:
        self.errors: dict[str, str] = {}
        self._file = file
        self._lists = _read(file)

    def of(self, provider: str) -> ModelList | None:
        return self._lists.get(provider)

    def store(self, provider: str, models: tuple[ListedModel, ...]) -> None:
        """Store the list of a custom server. Raises `OSError` if it cannot be saved."""
        self.errors.pop(provider, None)
        self._lists[provider] = ModelList(datetime.now(UTC), models[:_MAX_MODELS])
        _write(self._file, self._lists)

    def forget(self, provider: str) -> None:
        self.errors.pop(provider, None)
        if self._lists.pop(provider, None) is not None:
            _write(self._file, self._lists)

    def facts(self) -> dict[str, ModelFacts]:
        """Return the facts by model id."""
        return {
            f"{name}/{model.name}": model.facts() for name, listing in self._lists.items() for model in listing.models
        }

    async def refresh(self, pool: "HttpPool", sources: list[ListSource]) -> None:
        """Fetch all lists concurrently; the old list stays if that fails."""
        results = await asyncio.gather(*(_ask(pool, source) for source in sources))
        self.errors = {}
        for source, result in zip(sources, results, strict=True):
            if isinstance(result, str):
                self.errors[source.provider.name] = result
            else:
                self._lists[source.provider.name] = result
        try:
            _write(self._file, self._lists)
        except OSError as error:
            for source, result in zip(sources, results, strict=True):
                if isinstance(result, ModelList):
                    text = f"The list of {source.provider.title} is good until the engine ends: it could not be saved"
                    self.errors[source.provider.name] = f"{text} ({error.strerror})."


def _read(file: Path | None) -> dict[str, ModelList]:
    """Return the stored lists; empty if the file cannot be read, since they can be fetched again."""
    if file is None:
        return {}
    try:
        return msgspec.json.decode(read_regular(file, _MAX_CACHE_BYTES), type=dict[str, ModelList])
    except (OSError, ValueError):
        return {}


def _write(file: Path | None, lists: dict[str, ModelList]) -> None:
    if file is None:
        return
    new = file.with_suffix(".new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(lists), indent=1))
    os.replace(new, file)


def list_address(source: ListSource) -> str:
    base = source.base_url.rstrip("/").removesuffix(RESPONSES_PATH)
    if source.provider.kind == "anthropic":
        return f"{base.removesuffix('/v1')}/v1/models?limit=1000"
    return source.provider.list_url or f"{base}/models"


async def _ask(pool: "HttpPool", source: ListSource) -> ModelList | str:
    """Return the list, or the reason for its failure."""
    import aiohttp

    from errand.engine.models.http_pool import BodyTooLong, read_body

    url = list_address(source)
    try:
        async with (
            asyncio.timeout(_LIMIT_S),
            pool.session.get(url, headers=list_headers(source), proxy=proxy_of(url), allow_redirects=False) as response,
        ):
            raw_body = await read_body(response, _MAX_LIST_BYTES)
            body = await asyncio.to_thread(Redactor(source.key).hide_bytes, raw_body)
            if response.status != 200:
                reason = error_text(body)
                return f"{source.provider.title} gave no list ({response.status}): {reason}"
            models = only_chat_models(models_of(await decode_foreign(body)))
    except UnusableRoute as error:
        return f"{error} The list from before is kept."
    except (TimeoutError, aiohttp.ClientError, OSError):
        return f"{source.provider.title} could not be reached; the list from before is kept."
    except BodyTooLong:
        return f"{source.provider.title} sent a list without end; the old one is kept."
    except (ValueError, RecursionError):
        return f"{source.provider.title} sent something that is not a list of models."
    return ModelList(datetime.now(UTC), models[:_MAX_MODELS])


def list_headers(source: ListSource) -> dict[str, str]:
    if not source.key:
        return {}
    if source.provider.kind == "anthropic":
        return {"x-api-key": source.key, "anthropic-version": "2023-06-01"}
    if source.provider.family == "gemini":
        return {"x-goog-api-key": source.key}
    return {"Authorization": f"Bearer {source.key}"}


def models_of(answer: JsonValue) -> tuple[ListedModel, ...]:
    """Return the models in `{"data": […]}`, `{"models": […]}` or a bare list; ValueError for anything else."""
    if isinstance(answer, dict) and not {"data", "models"} & set(answer):
        raise ValueError("no list of models")
    rows = answer.get("data") or answer.get("models") or [] if isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        raise ValueError("no list of models")
    models = (model for row in rows if isinstance(row, dict) and (model := _listed(row)) is not None)
    return tuple({model.name: model for model in models}.values())


def only_chat_models(models: tuple[ListedModel, ...]) -> tuple[ListedModel, ...]:
    return tuple(model for model in models if is_for_chat(model.name))


def is_for_chat(name: str) -> bool:
    return _NO_CHAT.search(name) is None


def _listed(row: JsonObject) -> ListedModel | None:
    name = row.get("id") or row.get("name")
    if not isinstance(name, str) or not name:
        return None
    if "contextTokens" in row:  # from `errand share-models`
        return _shared(name, row)
    names = ("context_length", "max_context_length", "inputTokenLimit", "max_model_len")  # the last one is vLLM's
    context = next((row[name] for name in names if row.get(name)), None)
    pricing, abilities = object_or_empty(row.get("pricing")), object_or_empty(row.get("capabilities"))
    inputs = object_or_empty(row.get("architecture")).get("input_modalities")
    takes = row.get("supported_parameters")
    return ListedModel(
        name=name.removeprefix("models/"),
        context_tokens=window_size(context),
        input_price=_per_million(pricing.get("prompt")),
        output_price=_per_million(pricing.get("completion")),
        tools="tools" in takes if isinstance(takes, list) else flag_or_none(abilities.get("function_calling")),
        images="image" in inputs if isinstance(inputs, list) else flag_or_none(abilities.get("vision")),
    )


def _shared(name: str, row: JsonObject) -> ListedModel:
    """Return a model that another Errand shares, which may be of another version."""
    prices = price(row.get("inputPrice")), price(row.get("outputPrice"))
    abilities = flag_or_none(row.get("tools")), flag_or_none(row.get("images"))
    return ListedModel(name, window_size(row["contextTokens"]), *prices, *abilities)


def _per_million(a_token: JsonValue) -> float | None:
    """OpenRouter gives dollars per token as text, and -1 for variable prices."""
    try:
        value = price(float(a_token) * 1_000_000) if isinstance(a_token, str) else None
    except ValueError:
        return None
    return None if value is None else round(value, 6)

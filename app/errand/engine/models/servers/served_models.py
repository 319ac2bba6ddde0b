"""What model servers say of the models that they serve: window, tools, vision, thinking, and whether it is loaded.

Asks servers that people run themselves (llama.cpp, Ollama, LM Studio, vLLM); others only for their list of models.
"""

import asyncio
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from errand.engine.core.input_limits import window_size
from errand.engine.core.json_input.foreign_json import decode_foreign
from errand.engine.core.outgoing import UnusableRoute, proxy_of
from errand.protocol.base import JsonObject, JsonValue
from errand.text.redaction import Redactor

if TYPE_CHECKING:
    from errand.engine.models.http_pool import HttpPool

ServerKind: TypeAlias = Literal["llama_cpp", "ollama", "lm_studio", "vllm", "other"]
DecodingConstraint: TypeAlias = Literal["tool_choice", "json_schema", "grammar", "format"]

# Callers wait for the answers.
ASK_TIMEOUT_S = 1.5
_MAX_BODY_BYTES = 4 * 1024 * 1024
_MAX_MODELS = 500
# Of a long list of Ollama's, so many models are described; the others when they are asked for.
_MAX_DESCRIBED = 24

# What each server writes as the owner of its models.
_OWNERS: Mapping[str, ServerKind] = {
    "llamacpp": "llama_cpp",
    "library": "ollama",
    "organization_owner": "lm_studio",
    "vllm": "vllm",
}
_TITLES: Mapping[ServerKind, str] = {
    "llama_cpp": "llama.cpp",
    "ollama": "Ollama",
    "lm_studio": "LM Studio",
    "vllm": "vLLM",
    "other": "The model server",
}
# How each server gives a model a larger window.
LARGER_WINDOW: Mapping[ServerKind, str] = {
    "llama_cpp": "start the server with -c 8192",
    "ollama": "start Ollama with OLLAMA_CONTEXT_LENGTH=8192",
    "lm_studio": "load the model with a context length of 8192",
    "vllm": "start the server with --max-model-len 8192",
    "other": "give the model a larger context window (llama.cpp: -c 8192)",
}
# How each server can be told to write nothing but a call or a JSON value: `tool_choice: required`, a JSON schema as
# `response_format`, a grammar, Ollama's `format`.
_CONSTRAINTS: Mapping[ServerKind, frozenset[DecodingConstraint]] = {
    "llama_cpp": frozenset({"tool_choice", "json_schema", "grammar"}),
    "vllm": frozenset({"tool_choice", "json_schema"}),
    "lm_studio": frozenset({"json_schema"}),
    "ollama": frozenset({"format"}),
    "other": frozenset(),
}
_MAX_PARAMETERS = 1e15
# Stands for the name of the model that a server is loading, until that is known.
LOADING = "loading"
# A port that takes connections without a word delays no further caller for so long.
_SILENT_AGE_S = 10.0
_PARAMETERS = re.compile(r"(\d+(?:\.\d+)?)\s*([BM])", re.IGNORECASE)
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as its server describes it; None means that the server does not say.

    `context_tokens` is the window that requests have now, `trained_tokens` the largest one the model was made for.
    `calls_tools`: its chat template has a place for tools. `parameters` is their number in billions.
    """

    name: str
    server: ServerKind = "other"
    context_tokens: int | None = None
    trained_tokens: int | None = None
    calls_tools: bool | None = None
    sees: bool | None = None
    thinks: bool | None = None
    is_loaded: bool | None = None
    parameters: float | None = None

    @property
    def constraints(self) -> frozenset[DecodingConstraint]:
        """The ways of constrained decoding that the server offers; empty for none, or if that is not known."""
        return _CONSTRAINTS[self.server]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The answer of a server. While `is_loading`, it refuses requests until its model is loaded.

    `is_described` is False if the details of its models did not arrive in time.
    """

    kind: ServerKind
    models: tuple[ServedModel, ...] = ()
    is_loading: bool = False
    is_described: bool = True

    def find(self, name: str) -> ServedModel | None:
        return next((model for model in self.models if model.name == name), None)

    @property
    def only_model(self) -> ServedModel | None:
        """The model that answers every request, for servers that serve one; None if requests choose."""
        serves_one = self.kind in ("llama_cpp", "vllm") and len(self.models) == 1
        return self.models[0] if serves_one else None


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server. `kind` is what it is if it does not say so itself."""

    base_url: str
    key: str = ""
    kind: ServerKind = "other"

    @property
    def root(self) -> str:
        """The address without the path of the OpenAI-compatible interface: servers' own interfaces are beside it."""
        return self.base_url.rstrip("/").removesuffix("/v1")


def server_label(kind: ServerKind, base_url: str) -> str:
    """Return a server's name for people: `llama.cpp at :8080` on this machine, else with its host."""
    parts = urlsplit(base_url)
    is_here = parts.hostname in ("127.0.0.1", "localhost", "::1")
    return f"{_TITLES[kind]} at {f':{parts.port}' if is_here and parts.port else parts.netloc}"


class ServerStatuses:
    """The newest answer of each server, and asking for a new one."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[float, ServerStatus | None]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._silent_until: dict[str, float] = {}
        self._shown: dict[tuple[str, str, JsonValue], JsonObject] = {}

    def newest(self, base_url: str) -> ServerStatus | None:
        answer = self._answers.get(base_url)
        return answer[1] if answer is not None else None

    async def ask(
        self, pool: "HttpPool", address: ServerAddress, max_age_s: float, wanted: str = ""
    ) -> ServerStatus | None:
        """Return the status of a server, at most so old; None if none answers, or nothing that is a list of models.

        The model `wanted` is described even if the list is long.
        """
        base, called_at = address.base_url, time.monotonic()
        async with self._locks.setdefault(base, asyncio.Lock()):
            answer = self._answers.get(base)
            if called_at < self._silent_until.get(base, 0.0):
                return None
            if answer is not None and answer[0] > called_at - _max_age_s(answer[1], max_age_s):
                return answer[1]
            inquiry = _Inquiry(pool, address, self._shown, wanted)
            status = await inquiry.status()
            before = answer[1] if answer is not None else None
            if status is not None and not status.is_described and before is not None and before.is_described:
                is_same = [model.name for model in status.models] == [model.name for model in before.models]
                status = before if is_same and not status.is_loading else status
            if status is None and inquiry.is_over:
                self._silent_until[base] = time.monotonic() + _SILENT_AGE_S
            self._answers[base] = time.monotonic(), status
            return status


def _max_age_s(status: ServerStatus | None, max_age_s: float) -> float:
    """Return how old an answer may be: servers that do not answer or load a model are about to change."""
    return 0.0 if status is None or status.is_loading else max_age_s


class _Refused(Exception):
    """An answer with a status other than 200."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.is_loading = status == 503 and "loading" in text.lower()


class _Inquiry:
    """The questions to one server, within one time limit. `shown` keeps what Ollama says of a model."""

    def __init__(
        self, pool: "HttpPool", address: ServerAddress, shown: dict[tuple[str, str, JsonValue], JsonObject], wanted: str
    ) -> None:
        self._pool = pool
        self._address = address
        self._shown = shown
        self._wanted = wanted
        self._ends_at = time.monotonic() + ASK_TIMEOUT_S

    @property
    def is_over(self) -> bool:
        """The time for answers is over."""
        return time.monotonic() >= self._ends_at

    async def status(self) -> ServerStatus | None:
        import aiohttp

        failures = (TimeoutError, aiohttp.ClientError, OSError, ValueError, RecursionError, UnusableRoute)
        address = self._address
        try:
            rows = await self._rows()
        except _Refused as refusal:
            # It is llama.cpp that says so.
            loading: ServerKind = "llama_cpp" if address.kind == "other" else address.kind
            return ServerStatus(loading, is_loading=True) if refusal.is_loading else None
        except failures:
            return None
        kind = _kind_of(rows, address.kind)
        listed = tuple(_listed(row, kind) for row in rows)
        try:
            return ServerStatus(kind, await self._described(kind, rows, listed))
        except _Refused as refusal:
            return ServerStatus(kind, listed, is_loading=refusal.is_loading, is_described=not refusal.is_loading)
        except failures:
            return ServerStatus(kind, listed, is_described=False)

    async def _rows(self) -> list[JsonObject]:
        """Return the rows of the list of models, which some addresses have only below `/v1`."""
        base = self._address.base_url.rstrip("/")
        try:
            answer = await self._get(f"{base}/models")
        except _Refused as refusal:
            if refusal.is_loading or urlsplit(base).path:
                raise
            answer = await self._get(f"{base}/v1/models")
        rows = answer.get("data")
        if not isinstance(rows, list):
            raise ValueError("no list of models")
        named = (row for row in rows[:_MAX_MODELS] if isinstance(row, dict) and isinstance(row.get("id"), str))
        return [row for row in named if row["id"]]

    async def _described(
        self, kind: ServerKind, rows: list[JsonObject], listed: tuple[ServedModel, ...]
    ) -> tuple[ServedModel, ...]:
        match kind:
            case "llama_cpp" if len(listed) == 1:
                return (_with_props(listed[0], await self._get(f"{self._address.root}/props")),)
            case "ollama":
                return await self._with_ollama(rows, listed)
            case "lm_studio":
                answer = await self._get(f"{self._address.root}/api/v0/models")
                own_rows = {row["id"]: row for row in _objects(answer.get("data")) if isinstance(row.get("id"), str)}
                models = ((model, own_rows.get(model.name, {})) for model in listed)
                return tuple(_with_lm_studio(model, row) for model, row in models if row.get("type") != "embeddings")
            case _:
                return listed

    async def _with_ollama(self, rows: list[JsonObject], listed: tuple[ServedModel, ...]) -> tuple[ServedModel, ...]:
        described = [row for number, row in enumerate(rows) if number < _MAX_DESCRIBED or row["id"] == self._wanted]
        running, *answers = await asyncio.gather(
            self._get(f"{self._address.root}/api/ps"), *(self._show(row) for row in described)
        )
        windows = {row.get("name"): window_size(row.get("context_length")) for row in _objects(running.get("models"))}
        details = {row["id"]: answer for row, answer in zip(described, answers, strict=True)}
        return tuple(_with_show(model, details.get(model.name), windows) for model in listed)

    async def _show(self, row: JsonObject) -> JsonObject:
        name = str(row["id"])
        key = self._address.base_url, name, row.get("created")
        if key not in self._shown:
            try:
                self._shown[key] = await self._get(f"{self._address.root}/api/show", {"model": name})
            except _Refused:
                return {}
        return self._shown[key]

    async def _get(self, url: str, body: JsonObject | None = None) -> JsonObject:
        """Return the JSON object at an address, sent to it with a `body`."""
        from errand.engine.models.http_pool import read_body

        key = self._address.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        request = self._pool.session.request(
            "GET" if body is None else "POST",
            url,
            json=body,
            headers=headers,
            proxy=proxy_of(url),
            allow_redirects=False,
        )
        async with asyncio.timeout(max(0.0, self._ends_at - time.monotonic())), request as response:
            content = await read_body(response, _MAX_BODY_BYTES)
            if key:
                content = await asyncio.to_thread(Redactor(key).hide_bytes, content)
            if response.status != 200:
                raise _Refused(response.status, content[:1000].decode("utf-8", "replace"))
            answer = await decode_foreign(content)
        if not isinstance(answer, dict):
            raise ValueError("no object")
        return answer


def _kind_of(rows: Iterable[JsonObject], otherwise: ServerKind) -> ServerKind:
    for row in rows:
        owner = row.get("owned_by")
        if isinstance(owner, str) and owner in _OWNERS:
            return _OWNERS[owner]
    return otherwise


def _listed(row: JsonObject, kind: ServerKind) -> ServedModel:
    meta, inputs = _object(row.get("meta")), _object(row.get("architecture")).get("input_modalities")
    state = _object(row.get("status")).get("value")  # of a llama.cpp that serves several models
    is_loaded = state == "loaded" if isinstance(state, str) else True if kind in ("llama_cpp", "vllm") else None
    return ServedModel(
        name=str(row["id"]),
        server=kind,
        context_tokens=window_size(meta.get("n_ctx")) or window_size(row.get("max_model_len")),
        trained_tokens=window_size(meta.get("n_ctx_train")),
        sees="image" in inputs if isinstance(inputs, list) else None,
        is_loaded=is_loaded,
        parameters=_billions(meta.get("n_params")),
    )


def _with_props(model: ServedModel, props: JsonObject) -> ServedModel:
    """Return a model with what llama.cpp's `/props` says of it."""
    abilities = _object(props.get("chat_template_caps"))
    template, window = props.get("chat_template"), _object(props.get("default_generation_settings")).get("n_ctx")
    thinks = None
    if isinstance(template, str) and template:
        thinks = "<think>" in template or "enable_thinking" in template or "reasoning_effort" in template
    seen = _flag(_object(props.get("modalities")).get("vision"))
    return replace(
        model,
        context_tokens=window_size(window) or model.context_tokens,
        calls_tools=_flag(abilities.get("supports_tools")),
        sees=model.sees if seen is None else seen,
        thinks=thinks,
    )


def _with_show(model: ServedModel, shown: JsonObject | None, windows: Mapping[JsonValue, int | None]) -> ServedModel:
    """Return a model with what Ollama's `/api/show` says of it, and the windows of the loaded ones."""
    is_loaded = model.name in windows
    if not shown:
        return replace(model, is_loaded=is_loaded, context_tokens=windows.get(model.name))
    info, abilities = _object(shown.get("model_info")), shown.get("capabilities")
    trained = next((window_size(info[name]) for name in info if name.endswith(".context_length")), None)
    own = _NUM_CTX.search(parameters) if isinstance(parameters := shown.get("parameters"), str) else None

    def can(ability: str) -> bool | None:
        return ability in abilities if isinstance(abilities, list) else None

    size = _object(shown.get("details")).get("parameter_size")
    return replace(
        model,
        context_tokens=windows.get(model.name) or (window_size(int(own[1])) if own is not None else None),
        trained_tokens=trained,
        calls_tools=can("tools"),
        sees=can("vision"),
        thinks=can("thinking"),
        is_loaded=is_loaded,
        parameters=_billions(info.get("general.parameter_count")) or _billions_of_text(size),
    )


def _with_lm_studio(model: ServedModel, row: JsonObject) -> ServedModel:
    """Return a model with its row of LM Studio's own list.

    It writes the tools of models that were not trained for calls into their prompt itself, so these are not known to
    be without tools.
    """
    abilities, state, kind = row.get("capabilities"), row.get("state"), row.get("type")
    return replace(
        model,
        context_tokens=window_size(row.get("loaded_context_length")),
        trained_tokens=window_size(row.get("max_context_length")),
        calls_tools=True if isinstance(abilities, list) and "tool_use" in abilities else None,
        sees=kind == "vlm" if isinstance(kind, str) else None,
        is_loaded=state == "loaded" if isinstance(state, str) else None,
    )


def _billions(count: JsonValue) -> float | None:
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 < count < _MAX_PARAMETERS:
        return None
    return round(count / 1e9, 3)


def _billions_of_text(size: JsonValue) -> float | None:
    match = _PARAMETERS.search(size) if isinstance(size, str) else None
    return None if match is None else float(match[1]) / (1 if match[2].upper() == "B" else 1000)


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> Iterable[JsonObject]:
    return (row for row in value if isinstance(row, dict)) if isinstance(value, list) else ()


def _flag(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None

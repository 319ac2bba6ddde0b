"""Asks servers that people run what they serve, and keeps the newest answer of each.

llama.cpp, Ollama and LM Studio are asked for details, others only for their list of models.
"""

import asyncio
import math
import time
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from errand.engine.core.json_input.foreign_json import decode_foreign, objects_in
from errand.engine.core.outgoing import proxy_of
from errand.engine.models.servers.served_models import ServedModel, ServerAddress, ServerKind, ServerStatus
from errand.engine.models.servers.server_answers import (
    kind_of,
    listed_rows,
    model_of_row,
    with_llama_cpp,
    with_lm_studio,
    with_ollama,
)
from errand.protocol.base import JsonObject
from errand.text.redaction import Redactor

if TYPE_CHECKING:
    from errand.engine.models.http_pool import HttpPool

# Answers of Ollama's `/api/show` by address, name of the model, and time at which it was made.
_ShownModels: TypeAlias = dict[tuple[str, str, str], JsonObject]

# Callers wait for the answers.
_ASK_TIMEOUT_S = 1.5
# A port that takes connections without a word delays no further caller for so long.
_SILENT_AGE_S = 10.0
_MAX_BODY_BYTES = 4 * 1024 * 1024
# Of a long list of Ollama's, so many models are described; the others when they are asked for.
_MAX_DESCRIBED = 24
_NO_ANSWER = -math.inf, None


class ServerStatuses:
    """The newest answer of each server, and asking for a new one."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[float, ServerStatus | None]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._silent_until: dict[str, float] = {}
        self._shown: _ShownModels = {}
        self._ollamas: dict[str, bool] = {}

    def newest(self, base_url: str) -> ServerStatus | None:
        _, status = self._answers.get(base_url, _NO_ANSWER)
        return status

    async def ask(
        self, pool: "HttpPool", address: ServerAddress, max_age_s: float, wanted: str = ""
    ) -> ServerStatus | None:
        """Return the status of a server, at most so old; None if none answers, or nothing that is a list of models.

        The model `wanted` is described even if the list is long.
        """
        base, called_at = address.base_url, time.monotonic()
        async with self._locks.setdefault(base, asyncio.Lock()):
            if called_at < self._silent_until.get(base, 0.0):
                return None
            answered_at, before = self._answers.get(base, _NO_ANSWER)
            # Servers that do not answer, or load a model, are about to change.
            age_s = 0.0 if before is None or before.is_loading else max_age_s
            if answered_at > called_at - age_s:
                return before
            inquiry = _Inquiry(pool, address, self._shown, self._ollamas, wanted)
            status = await inquiry.status()
            if status is None and inquiry.is_over:
                self._silent_until[base] = time.monotonic() + _SILENT_AGE_S
            if status is not None and before is not None and _lacks_details_of(status, before):
                status = before
            self._answers[base] = time.monotonic(), status
            return status


def _lacks_details_of(status: ServerStatus, before: ServerStatus) -> bool:
    """Return True if the details did not arrive this time, and are known of the same models from before."""
    is_same = [model.name for model in status.models] == [model.name for model in before.models]
    return is_same and before.is_described and not status.is_described and not status.is_loading


class _Refused(Exception):
    """An answer with a status other than 200."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.is_loading = status == 503 and "loading" in text.lower()


class _Inquiry:
    """The questions to one server, within one time limit.

    `shown` keeps what Ollama says of a model, `ollamas` which addresses were found to be one.
    """

    def __init__(
        self, pool: "HttpPool", address: ServerAddress, shown: _ShownModels, ollamas: dict[str, bool], wanted: str
    ) -> None:
        self._pool = pool
        self._address = address
        self._shown = shown
        self._ollamas = ollamas
        self._wanted = wanted
        self._ends_at = time.monotonic() + _ASK_TIMEOUT_S
        self._is_loading = False
        self._is_described = True

    @property
    def is_over(self) -> bool:
        """The time for answers is over."""
        return time.monotonic() >= self._ends_at

    async def status(self) -> ServerStatus | None:
        import aiohttp

        address = self._address
        try:
            rows = await self._rows()
        except _Refused as refusal:
            # It is llama.cpp that says so.
            loading: ServerKind = "llama_cpp" if address.kind == "other" else address.kind
            return ServerStatus(loading, is_loading=True) if refusal.is_loading else None
        except (aiohttp.ClientError, OSError, ValueError):
            return None
        kind = kind_of(rows, address.kind)
        if kind == "other" and address.may_use_own and await self._is_ollama():
            kind = "ollama"
        models = await self._described(kind, rows, tuple(model_of_row(row, kind) for row in rows))
        return ServerStatus(kind, models, self._is_loading, self._is_described)

    async def _rows(self) -> list[JsonObject]:
        """Return the rows of the list of models, which some addresses have only below `/v1`."""
        base = self._address.base_url.rstrip("/")
        try:
            answer = await self._get(f"{base}/models")
        except _Refused as refusal:
            if refusal.is_loading or urlsplit(base).path:
                raise
            answer = await self._get(f"{base}/v1/models")
        return listed_rows(answer)

    async def _described(
        self, kind: ServerKind, rows: list[JsonObject], listed: tuple[ServedModel, ...]
    ) -> tuple[ServedModel, ...]:
        match kind:
            case "llama_cpp" if len(listed) == 1:
                return (with_llama_cpp(listed[0], await self._details("/props")),)
            case "ollama":
                return await self._with_ollama(rows, listed)
            case "lm_studio":
                own_rows = objects_in((await self._details("/api/v0/models")).get("data"))
                by_name = {name: row for row in own_rows if isinstance(name := row.get("id"), str)}
                models = ((model, by_name.get(model.name, {})) for model in listed)
                return tuple(with_lm_studio(model, row) for model, row in models if row.get("type") != "embeddings")
            case _:
                return listed

    async def _with_ollama(self, rows: list[JsonObject], listed: tuple[ServedModel, ...]) -> tuple[ServedModel, ...]:
        requested = {model.name for model in listed if self._wanted in model.names}
        described = [row for number, row in enumerate(rows) if number < _MAX_DESCRIBED or row["id"] in requested]
        running, *answers = await asyncio.gather(self._details("/api/ps"), *(self._show(row) for row in described))
        details = {row["id"]: answer for row, answer in zip(described, answers, strict=True)}
        uses_own = self._address.may_use_own
        return tuple(with_ollama(model, running, details.get(model.name, {}), uses_own=uses_own) for model in listed)

    async def _is_ollama(self) -> bool:
        """Return True for an Ollama whose models all have owners of their own, so that its list does not say it."""
        base = self._address.base_url
        if base not in self._ollamas:
            version = await self._details("/api/version")
            running = await self._details("/api/ps") if isinstance(version.get("version"), str) else {}
            if not self._is_described:  # no answer this time
                return False
            self._ollamas[base] = isinstance(running.get("models"), list)
        return self._ollamas[base]

    async def _show(self, row: JsonObject) -> JsonObject:
        name = str(row["id"])
        key = self._address.base_url, name, str(row.get("created"))
        if not self._shown.get(key):
            self._shown[key] = await self._details("/api/show", {"model": name})
        return self._shown[key]

    async def _details(self, path: str, body: JsonObject | None = None) -> JsonObject:
        """Return an answer of the server's own interface, which completes the list; empty if there is none."""
        import aiohttp

        try:
            return await self._get(f"{self._address.root}{path}", body)
        except _Refused as refusal:
            self._is_loading = self._is_loading or refusal.is_loading
        except ValueError:
            pass  # not JSON, as of a server of another kind
        except (aiohttp.ClientError, OSError):
            self._is_described = False
        return {}

    async def _get(self, url: str, body: JsonObject | None = None) -> JsonObject:
        """Return the JSON object at an address, sent to it with a `body`."""
        from errand.engine.models.http_pool import read_body

        key = self._address.key
        request = self._pool.session.request(
            "GET" if body is None else "POST",
            url,
            json=body,
            headers=self._address.headers,
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

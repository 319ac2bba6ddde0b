"""Custom model servers: save, change, test, remove; keys are bound to their address."""

import asyncio
import re
from collections.abc import Iterable

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.secrets import KeyStore, check_key
from errand.engine.core.settings import ModelServer, Settings
from errand.engine.models.available_models import AvailableModels
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import PROVIDERS, REACT
from errand.engine.models.catalog.server_probe import address_of, origin
from errand.protocol.settings import (
    ModelServerRemoveParams,
    ModelServerRemoveResult,
    ModelServerSaveParams,
    ModelServerSaveResult,
    ModelServerTestParams,
    ModelServerTestResult,
)

_LONGEST_NAME = 60
_MOST = 100
_KEY_REMOVED = "It has moved, so its key was removed: enter the key again if it requires one."


class CustomServers:
    """One change at a time, since each consists of several writes."""

    def __init__(self, settings: Settings, keys: KeyStore, available_models: AvailableModels) -> None:
        self._settings = settings
        self._keys = keys
        self._available_models = available_models
        self._lock = asyncio.Lock()

    async def test(self, params: ModelServerTestParams) -> ModelServerTestResult:
        address = address_of(params.address)
        answer = await self._available_models.probe(address, await self._key(params.id, address, params.key))
        return ModelServerTestResult(
            ok=answer.models is not None,
            address=answer.address,
            text=answer.text,
            models=tuple(model.name for model in answer.models or ()),
        )

    async def save(self, params: ModelServerSaveParams) -> ModelServerSaveResult:
        """Save the server and fetch its models. It is saved even if that fails."""
        address = address_of(params.address)
        async with self._lock:
            before = self._find(params.id) if params.id is not None else None
            others = [server for server in self._servers if server is not before]
            name = _checked_name(params.name, others)
            key = await self._key(params.id, address, params.key)
            answer = await self._available_models.probe(address, key)
            server = ModelServer(
                id=before.id if before is not None else _new_id(name, others), name=name, address=answer.address
            )
            told = await self._store(before, server, params.key)
            self._available_models.store_answer(server.id, answer)
        text = " ".join(("Saved.", answer.text, *told))
        return ModelServerSaveResult(id=server.id, ok=answer.models is not None, text=text)

    async def remove(self, params: ModelServerRemoveParams) -> ModelServerRemoveResult:
        async with self._lock:
            server = self._find(params.id)
            await self._keys.remove(server.id)
            self._settings.set_model_servers(tuple(other for other in self._servers if other is not server))
            self._available_models.forget(server.id)
            text = f"{server.name} was removed, with its key."
            if self._settings.values.default_model.removeprefix(REACT).startswith(f"{server.id}/"):
                self._settings.set("default_model", "")
                text += " Its model was the default one: there is none now but the first that is found."
        return ModelServerRemoveResult(text=text)

    @property
    def _servers(self) -> tuple[ModelServer, ...]:
        return self._settings.values.model_servers

    def _find(self, server_id: str) -> ModelServer:
        found = next((server for server in self._servers if server.id == server_id), None)
        if found is None:
            raise NotFound(f"There is no model server {server_id!r}.")
        return found

    async def _key(self, server_id: str | None, address: str, given: str | None) -> str | None:
        """The given key, or the stored one if the address is on the same machine and port."""
        if given is not None or server_id is None:
            check_key(given or "")
            return (given or "").strip() or None
        if origin(self._find(server_id).address) != origin(address):
            return None
        stored = await self._keys.get(server_id, ())
        return stored.value if stored is not None else None

    async def _store(self, before: ModelServer | None, server: ModelServer, key: str | None) -> list[str]:
        """Write in an order in which no key is ever stored with an address that it was not given for."""
        told: list[str] = []
        has_moved = before is not None and origin(before.address) != origin(server.address)
        if has_moved and await self._keys.get(server.id, ()) is not None:
            await self._keys.remove(server.id)
            told += [_KEY_REMOVED] if key is None else []
        others = tuple(other for other in self._servers if other is not before)
        if before is None and len(others) >= _MOST:
            raise InvalidParams(f"There are {_MOST} model servers already. Remove one first.")
        place = self._servers.index(before) if before is not None else len(others)
        self._settings.set_model_servers((*others[:place], server, *others[place:]))
        if key is not None and key.strip():
            told.append(await self._keys.set(server.id, key))
        elif key is not None:
            await self._keys.remove(server.id)
        return told


def _checked_name(typed: str, others: Iterable[ModelServer]) -> str:
    name = " ".join(typed.split())
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidParams(f"Give the server a name of at most {_LONGEST_NAME} characters.")
    if any(other.name.casefold() == name.casefold() for other in others):
        raise InvalidParams(f"There is a server named {name!r} already.")
    return name


def _new_id(name: str, others: Iterable[ModelServer]) -> str:
    """A unique id from the letters and digits of the name, different from all providers: it prefixes the model ids."""
    taken = {server.id for server in others} | {row.name for row in PROVIDERS} | {REACT.rstrip("/")}
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "server"
    number, candidate = 1, base
    while candidate in taken or model_facts.is_known_provider(candidate):
        number += 1
        candidate = f"{base}-{number}"
    return candidate

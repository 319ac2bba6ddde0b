"""Providers that the person adds: save, change, test, remove; keys are bound to their address."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.secrets import KeyStore, check_key
from errand.engine.core.setting_values import ModelServer
from errand.engine.core.settings import Settings
from errand.engine.models.available_models import AvailableModels
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.configured import custom_provider
from errand.engine.models.catalog.model_lists import is_for_chat
from errand.engine.models.catalog.providers import BY_ADDRESS, PROVIDERS, REACT, Provider, addable, find
from errand.engine.models.own_models import OwnModels
from errand.engine.models.servers.server_probe import ProbeResult, address_of, origin
from errand.protocol.settings import (
    ModelServerRemoveParams,
    ModelServerRemoveResult,
    ModelServerSaveParams,
    ModelServerSaveResult,
    ModelServerTestParams,
    ModelServerTestResult,
)

_MAX_NAME_LENGTH = 60
_MAX_SERVERS = 100
# Stands for the id and the name of a server that is tried before it is saved.
_UNSAVED = "unsaved"
# The kind of a machine that shares its models; there is one at most.
_SHARED = "proxy"
_KEY_REMOVED = "It has moved, so its key was removed: enter the key again if it requires one."


class CustomServers:
    """One change at a time, since each consists of several writes."""

    def __init__(
        self, settings: Settings, keys: KeyStore, available_models: AvailableModels, own_models: OwnModels
    ) -> None:
        self._settings = settings
        self._own_models = own_models
        self._keys = keys
        self._available_models = available_models
        self._lock = asyncio.Lock()

    async def test(self, params: ModelServerTestParams) -> ModelServerTestResult:
        kind = self._find(params.id).kind if params.id is not None else params.kind
        server = ModelServer(id=_UNSAVED, name=_UNSAVED, address=_address(kind, params.address), kind=kind)
        key = await self._key(params.id, server.address, params.key)
        answer = await self._available_models.probe(_probed(server), key)
        ok, text = answer.models is not None, answer.text
        names = tuple(model.name for model in answer.models or ())
        if params.calls and kind != _SHARED and (name := params.model or _first_for_chat(server, names)):
            answering = msgspec.structs.replace(server, address=_working_address(server, answer))
            reply = await self._available_models.try_provider(custom_provider(answering), key, name)
            ok, text = reply.ok, f"{reply.text} {text}" if reply.ok and names else reply.text
        return ModelServerTestResult(ok=ok, address=_working_address(server, answer), text=text, models=names)

    async def save(self, params: ModelServerSaveParams) -> ModelServerSaveResult:
        """Save the server and fetch its models. It is saved even if that fails."""
        async with self._lock:
            before = self._find(params.id) if params.id is not None else None
            kind = before.kind if before is not None else params.kind
            address = _address(kind, params.address)
            row = find("proxy") if kind == _SHARED else addable(kind)
            if before is None and row is not None and await self._is_catalogs_own(row, params, address):
                return await self._save_catalogs_own(row, address, params.key or "")
            if before is None and row is not None and params.name.strip().casefold() == row.title.casefold():
                raise InvalidParams(f"{row.title} is set up already. Give this one another name.")
            others = [server for server in self._servers if server is not before]
            name = _checked_name(params.name, others)
            key = await self._key(params.id, address, params.key)
            server_id = before.id if before is not None else _new_id(name, others)
            server = ModelServer(id=server_id, name=name, address=address, kind=kind)
            answer = await self._available_models.probe(_probed(server), key)
            server = msgspec.structs.replace(server, address=_working_address(server, answer))
            notices = await self._store(before, server, params.key)
            self._available_models.store_answer(server.id, answer)
        text = " ".join(("Saved.", answer.text, *notices))
        return ModelServerSaveResult(id=server.id, ok=answer.models is not None, text=text)

    async def remove(self, params: ModelServerRemoveParams) -> ModelServerRemoveResult:
        async with self._lock:
            server = self._find(params.id)
            await self._keys.remove(server.id)
            self._own_models.forget(server.id)
            self._settings.set_model_servers(tuple(other for other in self._servers if other is not server))
            self._available_models.forget(server.id)
            text = f"{server.name} was removed, with its key."
            if self._settings.values.default_model.removeprefix(REACT).startswith(f"{server.id}/"):
                self._settings.set("default_model", "")
                text += " Its model was the default one: there is none now but the first that is found."
        return ModelServerRemoveResult(text=text)

    async def _is_catalogs_own(self, row: Provider, params: ModelServerSaveParams, address: str) -> bool:
        """Return True for the first one of a kind under its usual title: it needs no id of its own."""
        if row.kind == "proxy":
            return True
        name = params.name.strip().casefold()
        is_usual = not address and name in ("", row.title.casefold())
        return is_usual and await self._keys.get(row.name, row.key_variables) is None

    async def _save_catalogs_own(self, row: Provider, address: str, key: str) -> ModelServerSaveResult:
        check_key(key)
        stored = await self._keys.get(row.name, row.key_variables) if row.kind == "proxy" and not key.strip() else None
        if not key.strip() and stored is None:
            raise InvalidParams(f"Enter the key for {row.title}.")
        if row.kind == "proxy":
            self._settings.set("proxy_url", address)
        notice = await self._keys.set(row.name, key) if key.strip() else ""
        key = key.strip() or (stored.value if stored is not None else "")
        answer = await self._available_models.probe(row, key)
        self._available_models.store_answer(row.name, answer)
        text = f"Saved. {answer.text} {notice}".rstrip()
        return ModelServerSaveResult(id=row.name, ok=answer.models is not None, text=text)

    @property
    def _servers(self) -> tuple[ModelServer, ...]:
        return self._settings.values.model_servers

    def _find(self, server_id: str) -> ModelServer:
        server = next((server for server in self._servers if server.id == server_id), None)
        if server is None:
            raise NotFound(f"There is no model server {server_id!r}.")
        return server

    async def _key(self, server_id: str | None, address: str, entered: str | None) -> str | None:
        """Return the given key, or the stored one if the address is on the same machine and port."""
        if entered is not None or server_id is None:
            check_key(entered or "")
            return (entered or "").strip() or None
        if origin(self._find(server_id).address) != origin(address):
            return None
        stored = await self._keys.get(server_id, ())
        return stored.value if stored is not None else None

    async def _store(self, before: ModelServer | None, server: ModelServer, key: str | None) -> list[str]:
        """Write in an order in which no key is ever stored with an address that it was not given for."""
        notices: list[str] = []
        has_moved = before is not None and origin(before.address) != origin(server.address)
        if has_moved and await self._keys.get(server.id, ()) is not None:
            await self._keys.remove(server.id)
            notices += [_KEY_REMOVED] if key is None else []
        others = tuple(other for other in self._servers if other is not before)
        if before is None and len(others) >= _MAX_SERVERS:
            raise InvalidParams(f"There are {_MAX_SERVERS} model servers already. Remove one first.")
        position = self._servers.index(before) if before is not None else len(others)
        self._settings.set_model_servers((*others[:position], server, *others[position:]))
        if key is not None and key.strip():
            notices.append(await self._keys.set(server.id, key))
        elif key is not None:
            await self._keys.remove(server.id)
        return notices


def _address(kind: str, typed: str) -> str:
    """Return the address in the user's input; empty for the usual one of a provider of the catalog."""
    row = addable(kind)
    if row is None and kind not in (*BY_ADDRESS, _SHARED):
        raise InvalidParams(f"There is no kind of provider {kind!r}.")
    if row is None or (typed.strip() and row.base_url):
        return address_of(typed)
    if typed.strip():
        raise InvalidParams(f"{row.title} has no address that could be changed.")
    return ""


def _probed(server: ModelServer) -> Provider:
    shared = find("proxy") if server.kind == _SHARED else None
    if shared is not None:
        return replace(shared, base_url=server.address, own=True)
    return custom_provider(server)


def _working_address(server: ModelServer, answer: ProbeResult) -> str:
    return answer.address if server.kind == "openai_compatible" else server.address


def _first_for_chat(server: ModelServer, names: Sequence[str]) -> str:
    """Return the model to try: the usual one of the provider, else the first that is not an embedding model."""
    usual = _probed(server).default_model
    return usual if usual in names else next((name for name in names if is_for_chat(name)), "")


def _checked_name(typed: str, others: Iterable[ModelServer]) -> str:
    name = " ".join(typed.split())
    if not name or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        raise InvalidParams(f"Enter a name of at most {_MAX_NAME_LENGTH} characters.")
    if any(other.name.casefold() == name.casefold() for other in others):
        raise InvalidParams(f"There is a provider named {name!r} already.")
    return name


def _new_id(name: str, others: Iterable[ModelServer]) -> str:
    """Return a unique id from the name's letters and digits. It begins model ids, so no provider has it."""
    taken = {server.id for server in others} | {row.name for row in PROVIDERS} | {REACT.rstrip("/")}
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "server"
    number, candidate = 1, base
    while candidate in taken or model_facts.is_known_provider(candidate):
        number += 1
        candidate = f"{base}-{number}"
    return candidate

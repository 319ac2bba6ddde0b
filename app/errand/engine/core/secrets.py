"""Provider keys from the environment, the keyring or an encrypted file; never shown."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from errand.engine.core.errors import ConfigurationError, FolderNotAnswering, InvalidParams
from errand.engine.core.key_vaults import KeyFile, Vault, system_vault
from errand.engine.core.workspace_threads import in_workspace
from errand.protocol.engine import is_key
from errand.protocol.settings import KeySource
from errand.system.regular_file import read_regular
from errand.text.redaction import Redactor

# Name and value of a variable; the value is empty if unset.
Variable: TypeAlias = tuple[str, str]

_MAX_CLIENTS = 32  # environments of clients; the oldest is dropped

T = TypeVar("T")

_MAX_FILE_BYTES = 1_000_000
_MAX_ADDRESSES = 200  # of all providers; the oldest is dropped
_VAULT_TIMEOUT_S = 10.0  # a hanging keyring daemon must not hang a task


class ClientEnvironments:
    """The environments of clients, newest first, then the engine's own.

    Values from different environments are not mixed, so a key of one terminal never goes to an address of another.
    """

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own
        self._clients: list[dict[str, str]] = []

    def add(self, variables: Mapping[str, str]) -> None:
        """Add the variables of a client as the newest environment."""
        new = {name: value.strip() for name, value in variables.items() if value.strip()}
        if new:
            self._clients = [new, *(old for old in self._clients if old != new)][:_MAX_CLIENTS]

    def values(self, names: Sequence[str], together_with: Variable | None = None) -> Iterator[Variable]:
        """Yield the variables that are set, newest environment first, or only from those that set `together_with`."""
        for environment in self._all():
            if together_with is None or _value(environment, together_with[0]) == together_with[1]:
                yield from ((name, value) for name in names if (value := _value(environment, name)))

    def value_set_with(self, name: str, others: Sequence[str]) -> str:
        """Return the variable in the newest environment that sets it or one of `others`; empty if unset there."""
        for environment in self._all():
            if any(_value(environment, variable) for variable in (name, *others)):
                return _value(environment, name)
        return ""

    def _all(self) -> Iterator[Mapping[str, str]]:
        yield from self._clients
        yield self._own


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()


@dataclass(frozen=True, slots=True)
class Key:
    """A key and its source, with the name of its variable; its repr never includes the value."""

    value: str = field(repr=False)
    source: KeySource
    variable: str = ""


def check_key(key: str) -> None:
    """Raises `InvalidParams` if the text cannot be a key."""
    value = key.strip()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise InvalidParams("key: it holds spaces or characters that no key has; copy it again")


class KeyStore:
    """Keys by provider. `stored.json` records where each is stored (names only).

    So the keyring is accessed only for providers whose key is in it, and the engine starts without any access.
    `redactor` knows all keys seen: those of environments, and stored ones once they are used.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        open_vault: Callable[[], Vault | None] = system_vault,
        patience_s: float = _VAULT_TIMEOUT_S,
    ) -> None:
        self.redactor = Redactor(*_keys_in(environment))
        self.environments = ClientEnvironments(environment)
        self._folder = folder
        self._index = folder / "stored.json"
        self._addresses = folder / "addresses.json"
        self._allowed_addresses: list[tuple[str, str]] | None = None
        self._file = KeyFile(folder)
        self._open_vault = open_vault
        self._patience_s = patience_s
        self._vault: Vault | None = None
        self._vault_opened = False
        self._read: dict[str, Key] = {}
        self._lock = asyncio.Lock()

    def add_environment(self, variables: Mapping[str, str]) -> None:
        """Add the keys and addresses of a client's environment."""
        self.redactor.add(*_keys_in(variables))
        self.environments.add(variables)

    async def get(self, provider: str, variables: tuple[str, ...], together_with: Variable | None = None) -> Key | None:
        """Return the provider's key: from one of the `variables` of an environment first, else the stored one.

        With `together_with`, only environments in which that variable has that value are searched.
        """
        for variable, value in self.environments.values(variables, together_with):
            return Key(value, "environment", variable)
        if provider in self._read:
            return self._read[provider]
        async with self._lock:
            key = await self._with_timeout(lambda: self._load(provider))
            if key is not None:
                self.redactor.add(key.value)
                self._read[provider] = key
            return key

    async def has(self, provider: str) -> bool:
        """Return True if a key is stored. Opens no keyring."""
        return await self._with_timeout(lambda: provider in self._read_index())

    async def set(self, provider: str, key: str) -> str:
        """Store a key; an empty one removes it. Returns a notice that says where it is stored."""
        value = key.strip()
        if not value:
            return await self.remove(provider)
        check_key(value)
        self.redactor.add(value)
        async with self._lock:
            self._read.pop(provider, None)
            return await self._with_timeout(lambda: self._store(provider, value))

    async def remove(self, provider: str) -> str:
        """Remove a stored key. Keys in the environment remain."""
        async with self._lock:
            self._read.pop(provider, None)
            await self._with_timeout(lambda: self._forget(provider))
        return f"The stored key of {provider} was removed."

    def allow_address(self, provider: str, address: str) -> None:
        """Record that a user on this machine chose this address for the provider: its keys may be sent there."""
        entry, chosen = (provider, _origin(address)), self._read_addresses()
        if entry not in chosen:
            self._allowed_addresses = [entry, *chosen][:_MAX_ADDRESSES]
            self._file.write_private(self._addresses, msgspec.json.encode(self._allowed_addresses))

    def is_allowed_address(self, provider: str, address: str) -> bool:
        return (provider, _origin(address)) in self._read_addresses()

    def _read_addresses(self) -> list[tuple[str, str]]:
        """Return the chosen addresses; empty if the file cannot be read, so the user has to choose again."""
        if self._allowed_addresses is None:
            try:
                data = read_regular(self._addresses, _MAX_FILE_BYTES)
                self._allowed_addresses = msgspec.json.decode(data, type=list[tuple[str, str]])
            except (OSError, ValueError):
                self._allowed_addresses = []
        return self._allowed_addresses

    async def _with_timeout(self, work: Callable[[], T]) -> T:
        try:
            return await in_workspace(self._folder, work, self._patience_s)
        except FolderNotAnswering as error:
            raise ConfigurationError("The keyring does not answer. Unlock it, or set the key's variable.") from error

    def _load(self, provider: str) -> Key | None:
        storage = self._read_index().get(provider)
        if storage == "keyring":
            vault = self._usable_vault()
            value = vault.get(provider) if vault else None
            if value is None:
                raise ConfigurationError(
                    f"The key of {provider} is in the system's keyring, which is locked or gone. Unlock it, or store "
                    "the key again."
                )
            return Key(value, "keyring")
        value = self._file.read().get(provider) if storage == "file" else None
        return Key(value, "file") if value else None

    def _store(self, provider: str, value: str) -> str:
        vault = self._usable_vault()
        if vault is not None:
            vault.set(provider, value)
            self._file.remove(provider)
            self._write_index(provider, "keyring")
            return f"The key of {provider} is in the system's keyring."
        self._file.put(provider, value)
        self._write_index(provider, "file")
        return (
            f"This machine has no usable keyring, so the key of {provider} is in an encrypted file in {self._folder}. "
            "Whoever can read your files there can read the key."
        )

    def _forget(self, provider: str) -> None:
        if self._read_index().get(provider) == "keyring" and (vault := self._usable_vault()):
            vault.remove(provider)
        self._file.remove(provider)
        self._write_index(provider, None)

    def _usable_vault(self) -> Vault | None:
        if not self._vault_opened:
            self._vault, self._vault_opened = self._open_vault(), True
        return self._vault

    def _read_index(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(read_regular(self._index, _MAX_FILE_BYTES), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{self._index} cannot be read; delete it and store the keys again.") from error

    def _write_index(self, provider: str, place: KeySource | None) -> None:
        with self._file.lock:
            storage_by_provider = self._read_index()
            storage_by_provider.pop(provider, None)
            if place is not None:
                storage_by_provider[provider] = place
            self._file.write_private(self._index, msgspec.json.encode(storage_by_provider))


def _keys_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(value.strip() for name, value in environment.items() if is_key(name))


def _origin(address: str) -> str:
    """Scheme, host and port: one server handles all paths of an origin."""
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return address  # not a URL: using it reports the error
    return f"{parts.scheme}://{(parts.hostname or '').casefold()}:{port}"

"""Storage for keys: the system keyring, or an AES-GCM file."""

import importlib
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from errand.engine.core.errors import ConfigurationError
from errand.system.regular_file import atomic_writer, make_folder, read_regular

_NONCE_BYTES = 12
_MAX_FILE_BYTES = 1_000_000

_SERVICE = "errand"
_PROBE = "round-trip"
# Backends of the operating system. Others are plain text or ask for a password on the terminal.
_BACKENDS = ("keyring.backends.SecretService", "keyring.backends.macOS", "keyring.backends.Windows")


class KeyFile:
    """Keys by provider in `keys.bin`. Hides them from backups and searches, not from users who can read the folder.

    Hold `lock` from reading to writing in any file of the folder: a thread that waited for a keyring for too long goes
    on beside the next one.
    """

    def __init__(self, folder: Path) -> None:
        self.lock = threading.RLock()
        self._folder = folder
        self._encrypted = folder / "keys.bin"
        self._secret = folder / "keys.key"

    def read(self) -> dict[str, str]:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 30 ms to import, rarely needed

        if not self._encrypted.exists():
            return {}
        try:
            sealed = read_regular(self._encrypted, _MAX_FILE_BYTES)
            secret = read_regular(self._secret, _MAX_FILE_BYTES)
            plain = AESGCM(secret).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
            return msgspec.json.decode(plain, type=dict[str, str])
        except (InvalidTag, OSError, ValueError) as error:
            raise ConfigurationError(
                f"The stored keys in {self._encrypted} cannot be read. Delete the file and store the keys again."
            ) from error

    def put(self, provider: str, value: str) -> None:
        with self.lock:
            self._write(self.read() | {provider: value})

    def remove(self, provider: str) -> None:
        if not self._encrypted.exists():
            return
        with self.lock:
            keys = self.read()
            if keys.pop(provider, None) is not None:
                self._write(keys)

    def write_private(self, path: Path, data: bytes) -> None:
        """Write a file atomically, readable by its owner only."""
        make_folder(self._folder)
        with atomic_writer(path, overwrite=True) as file:
            file.write(data)

    def _write(self, keys: dict[str, str]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not self._secret.exists():
            self.write_private(self._secret, AESGCM.generate_key(256))
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(read_regular(self._secret, _MAX_FILE_BYTES)).encrypt(nonce, msgspec.json.encode(keys), None)
        self.write_private(self._encrypted, nonce + sealed)


class Vault(Protocol):
    """Stores keys by provider name."""

    def get(self, provider: str) -> str | None: ...
    def set(self, provider: str, value: str) -> None: ...
    def remove(self, provider: str) -> None: ...


class _Backend(Protocol):
    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class KeyringVault:
    """A backend of the keyring library as a `Vault`. Raises `ConfigurationError` if it fails."""

    def __init__(self, backend: _Backend) -> None:
        self._backend = backend

    def get(self, provider: str) -> str | None:
        with _keyring_errors():
            return self._backend.get_password(_SERVICE, provider)

    def set(self, provider: str, value: str) -> None:
        with _keyring_errors():
            self._backend.set_password(_SERVICE, provider, value)

    def remove(self, provider: str) -> None:
        with _keyring_errors():
            if self._backend.get_password(_SERVICE, provider) is not None:
                self._backend.delete_password(_SERVICE, provider)

    def works(self) -> bool:
        """Return whether a written value can be read back."""
        try:
            self.set(_PROBE, "works")
            works = self.get(_PROBE) == "works"
            self.remove(_PROBE)
        except ConfigurationError:
            return False
        return works


@contextmanager
def _keyring_errors() -> Generator[None]:
    from keyring.errors import KeyringError

    try:
        yield
    except (KeyringError, OSError) as error:
        raise ConfigurationError(
            f"The system's keyring failed: {error}. Unlock it, or set the key's variable."
        ) from error


def system_vault() -> KeyringVault | None:
    """Return the system keyring, or None if there is none that works without prompting the user."""
    if sys.platform.startswith("linux") and not _secret_service_is_open():
        return None
    keyring = cast(Any, importlib.import_module("keyring"))  # 60 ms to import, rarely needed
    backend = keyring.get_keyring()
    if not type(backend).__module__.startswith(_BACKENDS):
        return None
    vault = KeyringVault(cast(_Backend, backend))
    return vault if vault.works() else None


def _secret_service_is_open() -> bool:
    """Return False for a locked collection: it would open a password prompt, perhaps with no user present."""
    if not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return False
    try:
        secretstorage = cast(Any, importlib.import_module("secretstorage"))
    except ImportError:
        return False
    connection = None
    try:
        connection = secretstorage.dbus_init()
        return secretstorage.check_service_availability(connection) and not (
            secretstorage.Collection(connection).is_locked()
        )
    except (secretstorage.exceptions.SecretStorageException, OSError):
        return False
    finally:
        if connection is not None:
            connection.close()

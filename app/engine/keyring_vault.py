"""The system's keyring, used only after a round trip worked and where it does not prompt. All calls block."""

import importlib
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol, cast

from app.engine.errors import ConfigurationError

_SERVICE = "errand"
_PROBE = "round-trip"
# Backends that are part of a system. Others are plain text or ask for a password on the terminal.
_BACKENDS = ("keyring.backends.SecretService", "keyring.backends.macOS", "keyring.backends.Windows")


class Vault(Protocol):
    """A place for keys by provider name."""

    def get(self, provider: str) -> str | None: ...
    def set(self, provider: str, value: str) -> None: ...
    def remove(self, provider: str) -> None: ...


class _Backend(Protocol):
    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class KeyringVault:
    """A backend of the keyring library as a `Vault`; raises `ConfigurationError` where it fails."""

    def __init__(self, backend: _Backend) -> None:
        self._backend = backend

    def get(self, provider: str) -> str | None:
        with _failures():
            return self._backend.get_password(_SERVICE, provider)

    def set(self, provider: str, value: str) -> None:
        with _failures():
            self._backend.set_password(_SERVICE, provider, value)

    def remove(self, provider: str) -> None:
        with _failures():
            if self._backend.get_password(_SERVICE, provider) is not None:
                self._backend.delete_password(_SERVICE, provider)

    def works(self) -> bool:
        """Whether a value written is read back."""
        try:
            self.set(_PROBE, "works")
            found = self.get(_PROBE) == "works"
            self.remove(_PROBE)
        except ConfigurationError:
            return False
        return found


@contextmanager
def _failures() -> Generator[None]:
    from keyring.errors import KeyringError

    try:
        yield
    except (KeyringError, OSError) as error:
        raise ConfigurationError(
            f"The system's keyring failed: {error}. Unlock it, or set the key's variable."
        ) from error


def system_vault() -> KeyringVault | None:
    """The system's keyring, or None where there is none that answers without asking the user."""
    if sys.platform.startswith("linux") and not _secret_service_is_open():
        return None
    keyring = cast(Any, importlib.import_module("keyring"))  # 60 ms, and seldom needed
    backend = keyring.get_keyring()
    if not type(backend).__module__.startswith(_BACKENDS):
        return None
    vault = KeyringVault(cast(_Backend, backend))
    return vault if vault.works() else None


def _secret_service_is_open() -> bool:
    """A locked collection would open a password window, perhaps with nobody in front of the screen."""
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

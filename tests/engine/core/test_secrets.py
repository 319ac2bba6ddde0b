"""The key store: where keys are searched and sent, and that they are never shown."""

import asyncio
import stat
import threading
from pathlib import Path

import keyring.errors
import pytest

from errand.engine.core.errors import ConfigurationError, InvalidParams
from errand.engine.core.key_vaults import KeyFile, KeyringVault, Vault, system_vault
from errand.engine.core.secrets import Key, KeyStore
from tests.support.limits import WAIT_LIMIT_S

VARIABLES = ("OPENAI_API_KEY",)
SECRET = "sk-test-0123456789abcdef"


class MemoryKeyring:
    """A keyring in memory, with the three methods of the library's backends."""

    def __init__(self) -> None:
        self.passwords: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        del self.passwords[service, username]

    def _check(self) -> None:
        if self.locked:
            raise keyring.errors.KeyringLocked("locked")


def without_keyring() -> Vault | None:
    return None


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def is_private_and_sealed(file: Path) -> bool:
    return SECRET.encode() not in file.read_bytes() and stat.S_IMODE(file.stat().st_mode) == 0o600


def store(folder: Path, environment: dict[str, str] | None = None) -> KeyStore:
    return KeyStore(folder, environment or {}, without_keyring)


async def test_unresponsive_keyring_does_not_block_other_threads(tmp_path: Path) -> None:
    (tmp_path / "stored.json").write_text('{"openai": "keyring"}')
    end = threading.Event()

    def hanging() -> Vault | None:
        end.wait()
        return None

    keys = KeyStore(tmp_path, {}, hanging, patience_s=0.01)
    try:
        for _ in range(40):
            with pytest.raises(ConfigurationError, match="The keyring does not answer"):
                await keys.get("openai", VARIABLES)
        async with asyncio.timeout(WAIT_LIMIT_S):
            assert await asyncio.to_thread(lambda: 1) == 1
    finally:
        end.set()


async def test_the_environment_comes_first(tmp_path: Path) -> None:
    keys = store(tmp_path, {"OPENAI_API_KEY": f" {SECRET}\n"})
    await keys.set("openai", "sk-stored-0123456789")
    assert await keys.get("openai", VARIABLES) == Key(SECRET, "environment", "OPENAI_API_KEY")


async def test_unknown_key_is_none_and_does_not_open_the_keyring(tmp_path: Path) -> None:
    def fail() -> Vault | None:
        raise AssertionError("the keyring was opened")

    assert await KeyStore(tmp_path, {"OPENAI_API_KEY": ""}, fail).get("openai", VARIABLES) is None


async def test_without_a_keyring_keys_are_stored_in_an_encrypted_file_with_a_notice(tmp_path: Path) -> None:
    notice = await store(tmp_path).set("openai", SECRET)
    assert "encrypted file" in notice
    assert "no usable keyring" in notice
    assert await store(tmp_path).get("openai", VARIABLES) == Key(SECRET, "file")
    assert all(is_private_and_sealed(file) for file in files(tmp_path))


async def test_with_a_keyring_keys_go_there_and_are_read_again_after_a_restart(tmp_path: Path) -> None:
    backend = MemoryKeyring()
    notice = await KeyStore(tmp_path, {}, lambda: KeyringVault(backend)).set("openai", SECRET)
    assert "keyring" in notice
    assert backend.passwords == {("errand", "openai"): SECRET}
    restarted = KeyStore(tmp_path, {}, lambda: KeyringVault(backend))
    assert await restarted.get("openai", VARIABLES) == Key(SECRET, "keyring")


async def test_locked_keyring_is_an_error_with_advice(tmp_path: Path) -> None:
    backend = MemoryKeyring()
    await KeyStore(tmp_path, {}, lambda: KeyringVault(backend)).set("openai", SECRET)
    backend.locked = True
    with pytest.raises(ConfigurationError, match="Unlock it"):
        await KeyStore(tmp_path, {}, lambda: KeyringVault(backend)).get("openai", VARIABLES)
    with pytest.raises(ConfigurationError, match="Unlock it"):
        await KeyStore(tmp_path, {}, without_keyring).get("openai", VARIABLES)


def test_keyring_that_returns_another_value_is_unusable() -> None:
    backend = MemoryKeyring()
    assert KeyringVault(backend).works()
    assert backend.passwords == {}
    backend.locked = True
    assert not KeyringVault(backend).works()


def test_a_machine_without_a_session_bus_has_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert system_vault() is None


async def test_removing_a_key_forgets_it_for_good(tmp_path: Path) -> None:
    keys = store(tmp_path)
    await keys.set("openai", SECRET)
    await keys.set("mistral", "mistral-key")
    await keys.set("openai", "")
    assert await keys.get("openai", VARIABLES) is None
    assert await store(tmp_path).get("openai", VARIABLES) is None
    assert await store(tmp_path).get("mistral", ()) == Key("mistral-key", "file")


async def test_storing_a_key_again_replaces_it(tmp_path: Path) -> None:
    keys = store(tmp_path)
    await keys.set("openai", "sk-first-0123456789")
    assert await keys.get("openai", ()) == Key("sk-first-0123456789", "file")
    await keys.set("openai", SECRET)
    assert await keys.get("openai", ()) == Key(SECRET, "file")


@pytest.mark.parametrize("bad", ["two words", "line\nbreak", "schlüssel"])
async def test_invalid_key_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InvalidParams, match="copy it again"):
        await store(tmp_path).set("openai", bad)


@pytest.mark.parametrize("file", ["keys.bin", "keys.key", "stored.json"])
async def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, file: str) -> None:
    await store(tmp_path).set("openai", SECRET)
    (tmp_path / file).write_bytes(b"damaged")
    with pytest.raises(ConfigurationError, match=r"cannot be read") as caught:
        await store(tmp_path).get("openai", VARIABLES)
    assert str(tmp_path) in str(caught.value)


def test_repr_of_a_key_does_not_contain_it() -> None:
    assert SECRET not in repr(Key(SECRET, "file"))


def test_threads_that_store_keys_at_once_lose_none(tmp_path: Path) -> None:
    """This happens when a thread that waited for the keyring continues while the next one runs."""
    providers = [f"provider{number}" for number in range(12)]
    file, begin = KeyFile(tmp_path), threading.Barrier(len(providers))

    def put(provider: str) -> None:
        begin.wait(20)
        file.put(provider, f"key of {provider}")

    threads = [threading.Thread(target=put, args=(provider,)) for provider in providers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read() == {provider: f"key of {provider}" for provider in providers}

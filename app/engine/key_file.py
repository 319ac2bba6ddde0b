"""The encrypted file that holds keys where there is no keyring (AES-GCM; its own key lies beside it, 0600)."""

import os
from pathlib import Path

import msgspec

from app.engine.errors import ConfigurationError
from app.regular_file import make_folder, read_regular, written_whole

_NONCE_BYTES = 12
_LARGEST = 1_000_000


class KeyFile:
    """Keys by provider in `keys.bin`. It keeps keys out of backups and searches, not from who can read the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sealed = folder / "keys.bin"
        self._secret = folder / "keys.key"

    def read(self) -> dict[str, str]:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 30 ms, and seldom needed

        if not self._sealed.exists():
            return {}
        try:
            sealed = read_regular(self._sealed, _LARGEST)
            secret = read_regular(self._secret, _LARGEST)
            plain = AESGCM(secret).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
            return msgspec.json.decode(plain, type=dict[str, str])
        except (InvalidTag, OSError, ValueError) as error:
            raise ConfigurationError(
                f"The stored keys in {self._sealed} cannot be read. Delete the file and store the keys again."
            ) from error

    def put(self, provider: str, value: str) -> None:
        self._write(self.read() | {provider: value})

    def remove(self, provider: str) -> None:
        if not self._sealed.exists():
            return
        keys = self.read()
        if keys.pop(provider, None) is not None:
            self._write(keys)

    def write_private(self, path: Path, data: bytes) -> None:
        """Write a file whole or not at all, readable by its owner only."""
        make_folder(self._folder)
        with written_whole(path, overwrite=True) as file:
            file.write(data)

    def _write(self, keys: dict[str, str]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not self._secret.exists():
            self.write_private(self._secret, AESGCM.generate_key(256))
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(read_regular(self._secret, _LARGEST)).encrypt(nonce, msgspec.json.encode(keys), None)
        self.write_private(self._sealed, nonce + sealed)

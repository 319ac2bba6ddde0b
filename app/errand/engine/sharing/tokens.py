"""The access tokens for shared models: a file with one per line, reloaded when it changes."""

import hmac
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from errand.engine.core.errors import ConfigurationError
from errand.system.regular_file import read_regular
from errand.text.printable import reason
from errand.text.redaction import Redactor

_MIN_TOKEN_LENGTH = 16
_TO_OTHERS = stat.S_IRWXO | stat.S_IWGRP
_MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """A token and its holder: the word before it in its line, or the number of the line."""

    name: str
    token: bytes


class Tokens:
    """Maps tokens to holders. A line is `token` or `name token`; `#` begins a comment. Removal takes effect at once."""

    def __init__(self, file: Path, redactor: Redactor) -> None:
        self._file = file
        self._redactor = redactor
        self._seen: tuple[int, int] | None = None
        self._holders: tuple[TokenHolder, ...] = ()

    @classmethod
    def open(cls, file: Path, redactor: Redactor) -> "Tokens":
        """Read the file, or create one with a new token. Raises `ConfigurationError` for an invalid file.

        Adds the tokens to the `redactor`.
        """
        try:
            if not file.exists():
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                    stream.write(f"team {secrets.token_urlsafe(32)}\n")
            tokens = cls(file, redactor)
            tokens.read()
            if os.name == "posix" and file.stat().st_mode & _TO_OTHERS:
                raise ConfigurationError(
                    f"The token file {file} can be read or changed by other users of this machine: `chmod 600 {file}`."
                )
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"The token file {file} cannot be used: {reason(error)}.") from error
        return tokens

    def holder(self, authorization: str) -> str | None:
        """Return the holder who sent this header, None if no token matches.

        Compares all tokens, each in constant time.
        """
        try:
            self.read()
        except (OSError, UnicodeDecodeError, ConfigurationError):
            return None  # a missing or invalid file refuses everyone
        header = authorization.encode("utf-8", "surrogateescape")
        names = [holder.name for holder in self._holders if hmac.compare_digest(header, b"Bearer " + holder.token)]
        return names[0] if names else None

    def read(self) -> None:
        """Read the file if it has changed."""
        status = self._file.stat()
        seen = (status.st_mtime_ns, status.st_size)
        if seen != self._seen:
            self._holders = _holders(self._file)
            self._redactor.add(*(holder.token.decode() for holder in self._holders))
            self._seen = seen


def _holders(file: Path) -> tuple[TokenHolder, ...]:
    lines = enumerate(read_regular(file, _MAX_FILE_BYTES).decode().splitlines(), 1)
    holders = tuple(
        _holder(file, number, columns) for number, line in lines if (columns := line.partition("#")[0].split())
    )
    if not holders:
        raise ConfigurationError(f"The token file {file} has no token: write one a line, after a name if you like.")
    return holders


def _holder(file: Path, number: int, words: list[str]) -> TokenHolder:
    *name, token = words
    if len(name) > 1 or len(token) < _MIN_TOKEN_LENGTH or not token.isascii():
        raise ConfigurationError(
            f"Line {number} of {file} is not `name token` with a token of at least {_MIN_TOKEN_LENGTH} "
            "plain characters."
        )
    return TokenHolder(name[0] if name else f"line {number}", token.encode())

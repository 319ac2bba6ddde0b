"""Context windows that servers named when they refused a longer request: kept on the disk, by model and address."""

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from errand.system.regular_file import read_regular

_log = logging.getLogger(__name__)

# Providers of the cloud do not say that they gave a model a larger window.
_VALID_FOR = timedelta(days=30)
_MAX_WINDOWS = 500
_MAX_BYTES = 1024 * 1024


class LearnedWindow(msgspec.Struct, frozen=True):
    """`stated_tokens` is the window that the server stated when it refused the request, None if it stated none."""

    tokens: Annotated[int, msgspec.Meta(gt=0)]
    address: str
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    stated_tokens: int | None = None


class LearnedWindows:
    """The windows by address and model id, without `react/`. Without a file they are forgotten with the engine."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._windows = _read(file)

    def tokens(self, model_id: str, address: str) -> int | None:
        learned = self._windows.get(_key(model_id, address))
        return None if learned is None else learned.tokens

    def newest_address(self, model_id: str) -> str:
        """Return the address whose window for this model was learned last; empty for none."""
        windows = reversed(self._windows.items())
        return next((learned.address for key, learned in windows if key == _key(model_id, learned.address)), "")

    def learn(self, model_id: str, tokens: int, address: str, stated_tokens: int | None) -> None:
        self._windows.pop(key := _key(model_id, address), None)  # so that the newest are the last
        self._windows[key] = LearnedWindow(tokens, address, datetime.now(UTC), stated_tokens)
        self._write()

    def check(self, model_id: str, address: str, stated_tokens: int | None) -> None:
        """Forget a window if the server states another one than it did then."""
        learned = self._windows.get(key := _key(model_id, address))
        if learned is not None and learned.stated_tokens != stated_tokens:
            del self._windows[key]
            self._write()

    def _write(self) -> None:
        if self._file is None:
            return
        newest = dict(list(self._windows.items())[-_MAX_WINDOWS:])
        new = self._file.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.format(msgspec.json.encode(newest), indent=1))
            os.replace(new, self._file)
        except OSError as error:
            _log.warning("learned context windows are forgotten with the engine: %s", error)


def _key(model_id: str, address: str) -> str:
    return f"{address} {model_id}"


def _read(file: Path | None) -> dict[str, LearnedWindow]:
    """Return the stored windows that still hold; none if the file cannot be read, since they are learned again."""
    if file is None:
        return {}
    try:
        windows = msgspec.json.decode(read_regular(file, _MAX_BYTES), type=dict[str, LearnedWindow])
    except (OSError, ValueError, RecursionError):
        return {}
    oldest = datetime.now(UTC) - _VALID_FOR
    return {model_id: window for model_id, window in windows.items() if window.at > oldest}

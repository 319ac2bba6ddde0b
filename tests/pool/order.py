"""The order of the queue: files that take long first, so that no worker is left with one of them at the end."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

_BYTES_PER_SECOND = 3_000
"""The size of files over the time of their tests: an estimate for a file that never ran on this machine."""

_LONG_S = 1_000.0
_KNOWN_LONG = (
    "tests/window/accessibility/test_views.py",
    "tests/engine/tools/test_browser.py",
    "tests/end_to_end/window/test_desktop.py",
    "tests/end_to_end/window/test_tasks.py",
    "tests/end_to_end/storage/test_unusual_folders.py",
    "tests/attacks/test_keys_in_fields.py",
    "tests/attacks/stalls/test_engine_stands.py",
    "tests/client/test_launch.py",
    "tests/crash/test_crash.py",
)
"""Files that take longer than their size says: a first run on a new machine begins with them."""


def slowest_first(files: Iterable[Path], seconds: Mapping[str, float]) -> list[str]:
    """Sort files by the time that they took before, or by an estimate."""
    return sorted((str(file) for file in files), key=lambda file: (-_estimate(file, seconds), file))


def _estimate(file: str, seconds: Mapping[str, float]) -> float:
    if file in seconds:
        return seconds[file]
    return _LONG_S if file in _KNOWN_LONG else Path(file).stat().st_size / _BYTES_PER_SECOND


def load_seconds(file: Path) -> dict[str, float]:
    """Return what earlier runs stored; empty if there was none."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}


def store_seconds(file: Path, seconds: Mapping[str, float]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(seconds))
    temporary.replace(file)

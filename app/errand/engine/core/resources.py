"""Health conditions, the file descriptor limit, the disk reserve."""

import asyncio
import errno
import os
import shutil
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from errand.protocol.engine import Condition, ConditionKind
from errand.system.listeners import Listeners

HealthListener = Callable[[], None]

_RETRY_S = 1.0
_MAX_OPEN_FILES = 65_536  # cap for a higher hard limit
_SPARE = 32  # descriptors for starting a program, including those that threads open meanwhile

# For the endpoint file, a log line and the files that SQLite adds to an open database.
_RESERVE_BYTES = 1024 * 1024
# Free space required to create the reserve.
_MIN_FREE_BYTES = 4 * _RESERVE_BYTES


class Health:
    """Holds at most one condition of each kind."""

    def __init__(self) -> None:
        self._conditions: dict[ConditionKind, Condition] = {}
        self._listeners = Listeners[[]]()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(self._conditions.values())

    @property
    def blocking_condition(self) -> Condition | None:
        """The newest condition under which nothing can be saved."""
        return next((condition for condition in reversed(self._conditions.values()) if condition.holds), None)

    def report(self, condition: Condition) -> None:
        """Add a condition; a known one keeps its start time."""
        if condition.kind not in self._conditions:
            self._conditions[condition.kind] = condition
            self._listeners.notify()

    def clear(self, kind: ConditionKind) -> None:
        """Remove a condition."""
        if self._conditions.pop(kind, None) is not None:
            self._listeners.notify()

    def subscribe(self, listener: HealthListener) -> Callable[[], None]:
        """Call `listener` after each change; returns the unsubscriber, which may be called repeatedly."""
        return self._listeners.add(listener)


if sys.platform == "win32":

    def raise_limit() -> None:
        """Windows has no such limit."""

    @contextmanager
    def lowered(newest: int) -> Generator[None]:
        yield
else:
    import resource

    _original = resource.getrlimit(resource.RLIMIT_NOFILE)

    def raise_limit() -> None:
        """Raise this process's soft limit to the hard one. A few hundred tasks use up the usual 1,024."""
        soft, hard = _original
        soft_limit = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < soft_limit:
            with suppress(OSError, ValueError):  # macOS has a second limit
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard))

    @contextmanager
    def lowered(newest: int) -> Generator[None]:
        """Start children inside this with the engine's original limit: some programs rely on it.

        Do not await inside: the limit also applies to the engine. `newest` is a descriptor just opened, the lowest free
        one; if it is too close to the original limit, the children get the raised one.
        """
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        if raised[0] <= _original[0] or newest + _SPARE > _original[0]:
            yield
            return
        resource.setrlimit(resource.RLIMIT_NOFILE, _original)
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, raised)


class DescriptorLimit:
    """Reports exhausted descriptors. `on_error` is the loop's exception handler, which gets asyncio's accept errors."""

    def __init__(self, health: Health, describe: Callable[[], Condition]) -> None:
        self._health = health
        self._describe = describe
        self._is_retrying = False

    def on_error(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            self._health.report(self._describe())
            if not self._is_retrying:
                self._is_retrying = True
                loop.call_later(_RETRY_S, self._retry, loop)
        else:
            loop.default_exception_handler(dict(context))

    def _retry(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            loop.call_later(_RETRY_S, self._retry, loop)
        else:
            self._is_retrying = False
            self._health.clear("no_descriptors")


def release_disk_reserve(file: Path) -> None:
    """Delete the reserve file if the disk is full."""
    with suppress(OSError):
        if shutil.disk_usage(file.parent).free < _RESERVE_BYTES:
            file.unlink(missing_ok=True)


def keep_disk_reserve(file: Path) -> None:
    """Create the reserve file if it is missing and there is enough free space."""
    with suppress(OSError):
        if not file.exists() and shutil.disk_usage(file.parent).free >= _MIN_FREE_BYTES:
            file.write_bytes(bytes(_RESERVE_BYTES))

"""Health conditions, the limit of file descriptors, the disk reserve."""

import asyncio
import errno
import os
import shutil
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from app.listeners import Listeners
from app.protocol.engine import Condition, ConditionKind

HealthListener = Callable[[], None]

_AGAIN_S = 1.0
_ENOUGH = 65_536  # of a limit that is higher still
_NEEDED = 32  # to start a program, with what threads open meanwhile

# For the endpoint file, a line in the log and what SQLite keeps beside a database that is open.
_BYTES = 1024 * 1024
# It is only taken where there is plenty.
_PLENTY = 4 * _BYTES


class Health:
    """One condition of a kind at a time."""

    def __init__(self) -> None:
        self._conditions: dict[ConditionKind, Condition] = {}
        self._listeners = Listeners[HealthListener]()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(self._conditions.values())

    @property
    def holding(self) -> Condition | None:
        """The newest condition under which nothing can be saved."""
        return next((one for one in reversed(self._conditions.values()) if one.holds), None)

    def report(self, condition: Condition) -> None:
        """Say that something is the matter; what is known already keeps its time."""
        if condition.kind not in self._conditions:
            self._conditions[condition.kind] = condition
            self._tell()

    def clear(self, kind: ConditionKind) -> None:
        """Say that it is mended."""
        if self._conditions.pop(kind, None) is not None:
            self._tell()

    def subscribe(self, listener: HealthListener) -> Callable[[], None]:
        """Call `listener` after each change; returns what ends that, once or more often."""
        return self._listeners.add(listener)

    def _tell(self) -> None:
        self._listeners.tell(lambda listener: listener())


if sys.platform == "win32":

    def raise_limit() -> None:
        """There is no such limit here."""

    @contextmanager
    def lowered(newest: int) -> Generator[None]:
        yield
else:
    import resource

    _former = resource.getrlimit(resource.RLIMIT_NOFILE)

    def raise_limit() -> None:
        """Raise the soft limit of this process to the hard one. The usual 1,024 are used up by a few hundred tasks."""
        soft, hard = _former
        wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):  # macOS has a second limit
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    @contextmanager
    def lowered(newest: int) -> Generator[None]:
        """Children started inside have the limit that the engine was started with: some programs rely on it.

        Without await inside: it is the engine's own limit too. `newest` is a descriptor just opened, the lowest that
        was free; where that is too near to the former limit, the children keep the higher one.
        """
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        if raised[0] <= _former[0] or newest + _NEEDED > _former[0]:
            yield
            return
        resource.setrlimit(resource.RLIMIT_NOFILE, _former)
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, raised)


class DescriptorLimit:
    """`on_error` is the loop's exception handler: asyncio tells it when it cannot accept a client."""

    def __init__(self, health: Health, describe: Callable[[], Condition]) -> None:
        self._health = health
        self._describe = describe
        self._is_looking = False

    def on_error(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            self._health.report(self._describe())
            if not self._is_looking:
                self._is_looking = True
                loop.call_later(_AGAIN_S, self._look_again, loop)
        else:
            loop.default_exception_handler(dict(context))

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            loop.call_later(_AGAIN_S, self._look_again, loop)
        else:
            self._is_looking = False
            self._health.clear("no_descriptors")


def release_disk_reserve(file: Path) -> None:
    """Where the disk is full."""
    with suppress(OSError):
        if shutil.disk_usage(file.parent).free < _BYTES:
            file.unlink(missing_ok=True)


def keep_disk_reserve(file: Path) -> None:
    """Where it is not kept already, and the disk has it."""
    with suppress(OSError):
        if not file.exists() and shutil.disk_usage(file.parent).free >= _PLENTY:
            file.write_bytes(bytes(_BYTES))

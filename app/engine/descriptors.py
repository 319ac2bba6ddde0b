"""How many files and connections the engine may open: as many as the system allows, and a word when that is too few."""

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress

from app.engine.health import Health
from app.protocol.health import Condition

_AGAIN_S = 1.0
_ENOUGH = 65_536  # of a limit that is higher still
_NEEDED = 32  # to start a program, with what threads open meanwhile

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


class Descriptors:
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

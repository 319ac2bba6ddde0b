"""Notices that the engine may not open one more file or connection, and that it may again. asyncio waits by itself."""

import asyncio
import errno
import os
from collections.abc import Callable, Mapping

from app.engine.health import Health
from app.protocol.health import Condition

_AGAIN_S = 1.0


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

"""Notices that the engine may not open one more file or connection, and that it may again. asyncio waits by itself."""

import asyncio
import errno
import os
from collections.abc import Mapping

from app.engine.health import Health
from app.protocol.health import Condition

_AGAIN_S = 1.0


class Descriptors:
    """`on_error` is the loop's exception handler: asyncio tells it when it cannot accept a client."""

    def __init__(self, health: Health, condition: Condition) -> None:
        self._health = health
        self._condition = condition

    def on_error(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            if self._condition not in self._health.conditions:
                self._health.report(self._condition)
                loop.call_later(_AGAIN_S, self._look_again, loop)
        else:
            loop.default_exception_handler(dict(context))

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            loop.call_later(_AGAIN_S, self._look_again, loop)
        else:
            self._health.clear(self._condition.kind)

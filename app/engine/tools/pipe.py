"""The reading end of a child's output: hands over what comes, and never blocks the event loop."""

import asyncio
import os
from collections.abc import Callable

CHUNK = 256 * 1024
# What a background process writes after its command has ended is thrown away, at most this often.
_DISCARD_PAUSE_S = 0.05
_DISCARD_CHUNKS = 16


class Pipe:
    """Calls `on_data` until the last writer closes; `ended` is done then."""

    def __init__(self, descriptor: int, on_data: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._on_data = on_data
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._on_readable)

    def take_rest(self, chunks: int = 256) -> None:
        """Hand over what is in the pipe now, without waiting for more."""
        for _ in range(chunks):
            if self.ended.done() or not self._read():
                return

    def discard(self) -> None:
        """Throw away what still comes, so that a process left in the background neither blocks nor dies of it."""
        if self.ended.done():
            return
        self._on_data = _ignore
        self._loop.remove_reader(self._descriptor)
        self._loop.add_reader(self._descriptor, self._on_discardable)

    def _on_readable(self) -> None:
        self._read()

    def _on_discardable(self) -> None:
        self.take_rest(_DISCARD_CHUNKS)
        if not self.ended.done():
            self._loop.remove_reader(self._descriptor)
            self._loop.call_later(_DISCARD_PAUSE_S, self._loop.add_reader, self._descriptor, self._on_discardable)

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._on_data(data)
            return True
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.ended.set_result(None)
        return False


def _ignore(data: bytes) -> None:
    pass

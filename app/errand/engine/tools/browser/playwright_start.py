"""Starts Playwright's program with our marks, in a session of its own, instead of as a child without either."""

import asyncio
import ctypes
import gc
import importlib
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from errand.engine.sandbox.launch import Launch
from errand.engine.tools.processes import marks, spawn

if TYPE_CHECKING:
    from playwright._impl.transport import Transport
    from playwright.async_api import Playwright


def load_playwright() -> None:
    """Call it in a thread; `start_playwright` would import all this, the last in the event loop."""
    _import_large("playwright.async_api", "playwright._impl.local_utils", "playwright._impl.protocol_channels")


def _import_large(*names: str) -> None:
    """Import modules of thousands of objects; call it in a thread.

    Without garbage collection: one over 100,000 new objects would stop all threads for 200 ms. What was freed is given
    back to the system, as glibc keeps it by itself: 22 of 33 MB after Playwright (3 ms).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        for name in names:
            importlib.import_module(name)
    finally:
        gc.freeze()
        if collects:
            gc.enable()
        with suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)


async def start_playwright(mark: marks.ProcessMark, environment: dict[str, str], folder: Path) -> "Playwright":
    from playwright._impl import out_of_process
    from playwright.async_api import async_playwright

    # Playwright would start its program without marks, in the engine's session.
    transport = partial(_transport, mark=mark, environment=environment, folder=folder)
    out_of_process.PipeTransport = transport  # pyright: ignore[reportPrivateImportUsage] -- it is only called
    return await async_playwright().start()


def _transport(
    loop: asyncio.AbstractEventLoop, mark: marks.ProcessMark, environment: dict[str, str], folder: Path
) -> "Transport":
    from playwright._impl import _driver as files
    from playwright._impl.transport import Transport
    from playwright._impl.utils.tasks import wait_for_next_task

    class MarkedTransport(Transport):
        """The pipes to Playwright's program, which ends when its input is closed."""

        async def connect(self) -> None:
            self._stopped = loop.create_future()
            self._reader = asyncio.StreamReader(loop=loop)
            node, script = files.compute_driver_executable()
            read, write = os.pipe()
            launch = Launch([node, script, "run-driver"], folder, {**environment, "PW_LANG_NAME": "python"})
            try:
                child = spawn.start(launch, mark, self._reader.feed_data, _ignore, read)
            except BaseException:
                os.close(write)
                raise
            finally:
                os.close(read)
            child.stdout.ended.add_done_callback(lambda _: self._reader.feed_eof())
            self._output, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write, "wb", 0))

        async def run(self) -> None:
            try:
                while True:
                    length = int.from_bytes(await self._reader.readexactly(4), "little")
                    self.on_message(self.deserialize_message(await self._reader.readexactly(length)))
                    await wait_for_next_task()
            except asyncio.IncompleteReadError:
                pass
            finally:
                self._output.close()
                self._stopped.set_result(None)

        def send(self, message: dict[str, object]) -> None:
            data = self.serialize_message(message)  # pyright: ignore[reportUnknownMemberType] -- a bare Dict
            if not self._output.is_closing():
                self._output.write(len(data).to_bytes(4, "little") + data)

        def request_stop(self) -> None:
            self._output.close()

        async def wait_until_stopped(self) -> None:
            await self._stopped

    return MarkedTransport(loop)


def _ignore(data: bytes) -> None:
    pass

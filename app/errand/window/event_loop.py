"""The window after its first paint: one event loop for Qt and asyncio, signals, orderly shutdown.

The only module that imports qasync.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import qasync  # pyright: ignore[reportMissingTypeStubs] -- it has none; only its loop is made here
from PySide6.QtWidgets import QApplication

# Imported for its side effect: otherwise the first row, often right after a click, would wait 80 ms for it.
import errand.window.rows.registry  # noqa: F401  # pyright: ignore[reportUnusedImport] -- see above
from errand.window.desktop.integration import desktop_integration
from errand.window.desktop.quick_task import QuickTask
from errand.window.stores.session import EngineSession
from errand.window.stores.stores import Stores
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.shell.main_window import MainWindow

_EXIT_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _ignore_signal(number: int, frame: FrameType | None) -> None:
    """Does nothing: the wake-up descriptor notifies the loop. Without a handler the process would end."""


@contextmanager
def end_on_signals(end: Callable[[], None]) -> Generator[None]:
    """Call `end` in the loop on Ctrl+C and SIGTERM while the context is active."""
    loop = asyncio.get_running_loop()
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        loop.add_reader(reader.fileno(), end)
        wakeup = signal.set_wakeup_fd(writer.fileno())
        former_handlers = {number: signal.signal(number, _ignore_signal) for number in _EXIT_SIGNALS}
        try:
            yield
        finally:
            for number, handler in former_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            loop.remove_reader(reader.fileno())


def run_event_loop(application: QApplication, work: Coroutine[None, None, None]) -> None:
    """Run `work` in an event loop shared with Qt."""
    _run_on(qasync.QEventLoop(application), work)


def _run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[None, None, None]) -> None:
    with contextlib.closing(loop):
        asyncio.set_event_loop(loop)
        loop.run_until_complete(work)


async def run_window(
    application: QApplication,
    window: MainWindow,
    stores: Stores,
    theme: Theme,
    state: WindowStateStore,
    instance_file: Path | None,
) -> None:
    """Run until the window is closed. Without a `instance_file`, another window listens for second starts."""
    closed = asyncio.Event()
    window.closed.connect(closed.set)
    if not window.isVisible():  # it was closed before the loop started
        closed.set()
    window.conversations.restore()
    if not stores.session.is_connected:
        stores.session.spawn(stores.session.start())
    with end_on_signals(closed.set):
        async with desktop_integration(application, window, stores, theme, state, instance_file):
            await closed.wait()
    await stores.session.close()
    state.flush()


async def run_quick_task_dialog(
    application: QApplication, session: EngineSession, state: WindowStateStore, theme: Theme
) -> str:
    """Run until the dialog is closed; returns the conversation to show, or ""."""
    quick = QuickTask(application, session, state, theme)
    opened: list[str] = []
    closed = asyncio.Event()
    quick.opened.connect(opened.append)
    quick.closed.connect(closed.set)
    quick.open()
    with end_on_signals(closed.set):
        await closed.wait()
    return opened[0] if opened else ""

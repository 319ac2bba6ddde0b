"""A window's life after its first paint: Qt's loop and asyncio's as one, the line to the engine, attention, the end.

What it imports, asyncio and qasync with it, takes a fifth of the time to a first paint, which does not wait for it.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from pathlib import Path

import qasync  # pyright: ignore[reportMissingTypeStubs] -- it has none; only its loop is made here
from PySide6.QtWidgets import QApplication

# Loaded now, though nothing here uses it: the first row, which may come right after a click, would wait 80 ms for it.
import app.window.blocks.registry  # noqa: F401  # pyright: ignore[reportUnusedImport] -- see above
from app.window.attention.attending import attending
from app.window.signals import on_signals
from app.window.state import WindowState
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.views.main_window import MainWindow


def run(application: QApplication, work: Coroutine[None, None, None]) -> None:
    """Do `work` in a loop that is Qt's too."""
    _run_on(qasync.QEventLoop(application), work)


def _run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[None, None, None]) -> None:
    with contextlib.closing(loop):
        asyncio.set_event_loop(loop)
        loop.run_until_complete(work)


async def live(
    application: QApplication,
    window: MainWindow,
    stores: Stores,
    theme: Theme,
    state: WindowState,
    door_file: Path | None,
) -> None:
    """Until the window, which is on the screen, is closed. Without a `door_file` another window has the door."""
    closed = asyncio.Event()
    window.closed.connect(closed.set)
    if not window.isVisible():  # it was closed before there was a loop
        closed.set()
    window.desk.restore()
    if not stores.session.has_line:
        stores.session.spawn(stores.session.start())
    with on_signals(closed.set):
        async with attending(application, window, stores, theme, state, door_file):
            await closed.wait()
    await stores.session.close()
    state.flush()

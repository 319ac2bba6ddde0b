"""Opens the window: joins theme, state, stores and views, and runs Qt's loop and asyncio's as one."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Coroutine
from types import TracebackType

import qasync  # pyright: ignore[reportMissingTypeStubs] -- it has none; only its loop is made here
from PySide6.QtWidgets import QApplication

from app import log
from app.client.launch import connect
from app.paths import Paths, default_paths
from app.window.control import TaskControl
from app.window.first_paint import first_paint
from app.window.models import ModelStore
from app.window.signals import on_signals
from app.window.state import WindowState
from app.window.stores.stores import Stores, make_stores
from app.window.theme.theme import Theme
from app.window.tour import TourStore
from app.window.unread import UnreadStore
from app.window.views.main_window import MainWindow
from app.window.views.page import PageMaker
from app.window.views.pages import PagesView
from app.window.views.sidebar import SidebarView
from app.window.widgets.pulse import Pulse

_log = logging.getLogger(__name__)


def main() -> int:
    """Open the window and stay until it is closed."""
    paths = default_paths()
    paths.prepare()
    log.configure(paths, "window")
    application = QApplication(["errand"])
    application.setApplicationName("Errand")
    application.setDesktopFileName("errand")
    application.setQuitOnLastWindowClosed(False)  # the loop ends below, after the line to the engine
    _run_on(qasync.QEventLoop(application), run(application, paths))
    return 0


def _run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[None, None, None]) -> None:
    with contextlib.closing(loop):
        asyncio.set_event_loop(loop)
        loop.run_until_complete(work)


async def run(application: QApplication, paths: Paths) -> None:
    """The window from its first paint to its end."""
    state = WindowState(paths.home / "window.json")
    theme = Theme()
    theme.set_mode(state.kept.theme)
    theme.apply(application)
    stores = make_stores(lambda: connect(paths, "errand window"))
    window = build(application, stores, paths, state, theme)
    sys.excepthook = _Excepthook(window)
    closed = asyncio.Event()
    window.closed.connect(closed.set)
    window.show()
    await first_paint(window)
    _log.info("The window is painted")
    stores.session.spawn(stores.session.start())
    with on_signals(closed.set):
        await closed.wait()
    await stores.session.close()
    state.flush()


def build(application: QApplication, stores: Stores, paths: Paths, state: WindowState, theme: Theme) -> MainWindow:
    """All parts of a window on one set of stores."""
    models = ModelStore(stores.session)
    pulse = Pulse(theme, application)
    unread = UnreadStore(stores.tasks, state, lambda: pages.front_id)
    sidebar = SidebarView(stores, unread, theme, pulse)
    maker = PageMaker(stores, unread, models, state, theme, application.clipboard())
    pages = PagesView(maker, theme, pulse)
    control, tour = TaskControl(stores.session), TourStore(stores.session, paths.workspaces)
    return MainWindow(stores, control, tour, sidebar, maker, pages, theme, state)


class _Excepthook:
    """A mistake of ours in a slot is logged and said; the window goes on."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.error("A slot failed", exc_info=(kind, error, trace))
        self._window.tell_trouble(f"Something went wrong in the window: {error}. The log has more: logs/window.log.")

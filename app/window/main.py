"""Opens the window: joins theme, state, stores and views, and has them painted before anything else is loaded."""

import gc
import logging
import os
import sys
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication

from app import log
from app.environment import keys_in
from app.file_lock import FileLock
from app.paths import Paths
from app.redaction import Redactor
from app.window.accessible import install_roles
from app.window.control import TaskControl
from app.window.first_paint import first_paint
from app.window.garbage import GarbageCollector
from app.window.models import ModelStore
from app.window.pasted import PastedFiles
from app.window.state import WindowState
from app.window.stores.stores import Stores, make_stores
from app.window.theme.theme import Theme
from app.window.tour import TourStore
from app.window.unread import UnreadStore
from app.window.views.desk import Desk
from app.window.views.main_window import MainWindow
from app.window.views.page import PageMaker
from app.window.views.pages import PagesView
from app.window.views.sidebar import SidebarView
from app.window.widgets.pulse import Pulse

if TYPE_CHECKING:
    from app.client.connection import Connection

_log = logging.getLogger(__name__)


def main(paths: Paths, lock: FileLock | None, *, quick: bool = False) -> int:
    """Open the window and stay until it is closed; with `quick` the dialog for a quick task alone.

    Who holds the `lock` is the window that a second start brings to the front.
    """
    log.configure(paths, "window", Redactor(*keys_in(os.environ).values()))
    application = QApplication(["errand"])
    application.setApplicationName("Errand")
    application.setDesktopFileName("errand")
    application.setQuitOnLastWindowClosed(False)  # the loop ends below, after the line to the engine
    state, theme, stores = dressed(application, paths)
    if quick:
        GarbageCollector(application)
        from app.window.life import run

        run(application, _run_quick(application, paths, state, theme, stores))
        return 0
    window = _shown(application, paths, state, theme, stores)
    first_paint(window)
    gc.freeze()
    GarbageCollector(application)
    _log.info("The window is painted")
    from app.window.life import live, run

    run(application, live(application, window, stores, theme, state, paths.window_door if lock is not None else None))
    return 0


async def _run_quick(application: QApplication, paths: Paths, state: WindowState, theme: Theme, stores: Stores) -> None:
    """The dialog for a quick task; the window only if its task is to be seen."""
    from app.window.attention.alone import quick_alone
    from app.window.life import live

    stores.session.spawn(stores.session.start())
    conversation_id = await quick_alone(application, stores.session, state, theme)
    if conversation_id:
        lock = FileLock.take(paths.window_lock)
        state.kept.tabs = [*(known for known in state.kept.tabs if known != conversation_id), conversation_id]
        state.kept.current = conversation_id
        window = _shown(application, paths, state, theme, stores)
        await live(application, window, stores, theme, state, paths.window_door if lock is not None else None)
    else:
        await stores.session.close()
        state.flush()


def dressed(application: QApplication, paths: Paths) -> tuple[WindowState, Theme, Stores]:
    """What is kept, the look, and stores without a line yet."""
    state = WindowState(paths.home / "window.json")
    theme = Theme()
    wear(theme, state)
    theme.apply(application)
    return state, theme, make_stores(partial(_connect, paths))


async def _connect(paths: Paths) -> "Connection":
    from app.client.launch import connect  # with asyncio: the first paint does not wait for it

    return await connect(paths, "errand window")


def _shown(application: QApplication, paths: Paths, state: WindowState, theme: Theme, stores: Stores) -> MainWindow:
    window = build(application, stores, paths, state, theme)
    sys.excepthook = _Excepthook(window)
    window.show()
    return window


def wear(theme: Theme, state: WindowState) -> None:
    """Have the look that was kept."""
    kept = state.kept
    theme.set_mode(kept.theme)
    theme.set_motion(kept.motion)
    theme.set_reading(kept.reading_family, kept.reading_size)


def build(application: QApplication, stores: Stores, paths: Paths, state: WindowState, theme: Theme) -> MainWindow:
    """All parts of a window on one set of stores."""
    install_roles()
    models = ModelStore(stores.session)
    pulse = Pulse(theme, application)
    unread = UnreadStore(stores.tasks, state, lambda: desk.front_id)
    sidebar = SidebarView(stores, unread, theme, pulse)
    pictures = PastedFiles(paths.attachments / "pasted")
    maker = PageMaker(stores, unread, models, state, theme, application.clipboard(), pictures)
    pages = PagesView(maker, theme, pulse)
    desk = Desk(pages, maker, theme)
    control, tour = TaskControl(stores.session), TourStore(stores.session, paths.workspaces)
    return MainWindow(stores, control, tour, sidebar, maker, pages, desk, theme, state)


class _Excepthook:
    """A mistake of ours in a slot is logged and said; the window goes on."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.error("A slot failed", exc_info=(kind, error, trace))
        self._window.tell_trouble(f"Something went wrong in the window: {error}. The log has more: logs/window.log.")

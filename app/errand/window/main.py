"""Opens the window: joins theme, state, stores and views, and paints them before anything else is loaded."""

import gc
import logging
import os
import sys
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QEventLoop, QLibraryInfo, QObject, QTimer, QTranslator, Signal
from PySide6.QtWidgets import QApplication, QWidget

from errand.system import log
from errand.system.environment import is_from_terminal, keys_in, terminal_folder
from errand.system.file_lock import FileLock
from errand.system.paths import Paths
from errand.text.redaction import Redactor
from errand.text.translation import chosen, tr
from errand.window import CLIENT_NAME
from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import Stores, make_stores
from errand.window.stores.task_commands import TaskControlStore, TourStore
from errand.window.stores.tasks import UnreadStore
from errand.window.stores.welcome import WelcomeStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.drop_payload import PastedFiles
from errand.window.views.conversation.services import ViewServices
from errand.window.views.shell.actions import ACTIONS
from errand.window.views.shell.main_window import MainWindow
from errand.window.views.shell.open_conversation import OpenConversationFactory
from errand.window.views.shell.open_conversations import OpenConversations
from errand.window.views.shell.tabs import TabsView
from errand.window.views.sidebar.conversation_marks import ConversationMarks
from errand.window.views.sidebar.sidebar import SidebarView
from errand.window.widgets.accessibility import install_roles, keep_focus_in_view
from errand.window.widgets.input.field_keys import guard_compositions
from errand.window.widgets.pulse import PulseTimer

if TYPE_CHECKING:
    from errand.client.connection import Connection


_PAINT_TIMEOUT_MS = 500

_COLLECT_MS = 5_000

_log = logging.getLogger(__name__)


def wait_for_first_paint(window: QWidget) -> None:
    """Wait until `window` is painted, at most half a second, since a minimised one is not.

    Input is deferred meanwhile.
    """
    watch, loop = _PaintWatch(window), QEventLoop()
    watch.painted.connect(loop.quit)
    QTimer.singleShot(_PAINT_TIMEOUT_MS, loop.quit)
    loop.exec(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
    window.removeEventFilter(watch)


class _PaintWatch(QObject):
    painted = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self.painted.emit)  # the whole window is painted in this iteration of the loop
        return False


class GarbageCollector(QObject):
    """Replaces Python's automatic garbage collection, with the same thresholds, while it exists."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self)
        timer.setInterval(_COLLECT_MS)
        timer.timeout.connect(self.collect)
        timer.start()

    def collect(self) -> None:
        """Collect the oldest generation whose threshold is exceeded, like the automatic collection."""
        due = [
            age
            for age, (count, threshold) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True))
            if count > threshold
        ]
        if due:
            gc.collect(due[-1])


def main(paths: Paths, lock: FileLock | None, *, quick: bool = False) -> int:
    """Open the window and run until it is closed; with `quick`, only the dialog for a quick task.

    The process that holds the `lock` owns the window that a second start brings to the front.
    """
    log.configure(paths, "window", Redactor(*keys_in(os.environ).values()))
    application = QApplication(["errand"])
    application.setApplicationName("Errand")
    application.setDesktopFileName("errand")
    application.setQuitOnLastWindowClosed(False)  # the loop ends below, after disconnecting from the engine
    state, theme, stores = prepare(application, paths)
    if quick:
        GarbageCollector(application)
        from errand.window.event_loop import run_event_loop

        run_event_loop(application, _run_quick(application, paths, state, theme, stores))
        return 0
    window = _open_window(application, paths, state, theme, stores)
    wait_for_first_paint(window)
    gc.freeze()
    GarbageCollector(application)
    _log.info("The window is painted")
    from errand.window.event_loop import run_event_loop, run_window

    run_event_loop(
        application,
        run_window(application, window, stores, theme, state, paths.window_instance_file if lock is not None else None),
    )
    return 0


async def _run_quick(
    application: QApplication, paths: Paths, state: WindowStateStore, theme: Theme, stores: Stores
) -> None:
    """Run the dialog for a quick task; opens the window only to show the task."""
    from errand.window.event_loop import run_quick_task_dialog, run_window

    stores.session.spawn(stores.session.start())
    conversation_id = await run_quick_task_dialog(application, stores.session, state, theme)
    if conversation_id:
        lock = FileLock.acquire(paths.window_lock)
        state.settings.tabs = [
            *(open_id for open_id in state.settings.tabs if open_id != conversation_id),
            conversation_id,
        ]
        state.settings.current = conversation_id
        window = _open_window(application, paths, state, theme, stores)
        await run_window(
            application, window, stores, theme, state, paths.window_instance_file if lock is not None else None
        )
    else:
        await stores.session.close()
        state.flush()


def translate_qt(application: QApplication) -> None:
    """Qt's own texts: context menus, standard dialogs, and the names of keys."""
    if chosen() == "en":
        return
    translator = QTranslator(application)
    if translator.load(f"qtbase_{chosen()}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        application.installTranslator(translator)


def prepare(application: QApplication, paths: Paths) -> tuple[WindowStateStore, Theme, Stores]:
    """Qt's language, the stored state, the theme, and stores that are not connected yet."""
    translate_qt(application)
    state = WindowStateStore(paths.home / "window.json")
    theme = Theme()
    apply_appearance(theme, state)
    theme.apply(application)
    return state, theme, make_stores(partial(_connect, paths))


async def _connect(paths: Paths) -> "Connection":
    from errand.client.launch import connect  # imports asyncio, which the first paint does not need

    return await connect(paths, CLIENT_NAME, from_desktop=not is_from_terminal())


def _open_window(
    application: QApplication, paths: Paths, state: WindowStateStore, theme: Theme, stores: Stores
) -> MainWindow:
    window = build_window(application, stores, paths, state, theme, terminal_folder())
    sys.excepthook = _Excepthook(window)
    window.show()
    return window


def apply_appearance(theme: Theme, state: WindowStateStore) -> None:
    """Apply the stored appearance."""
    settings = state.settings
    theme.set_mode(settings.theme)
    theme.set_motion(settings.motion)
    theme.set_transcript_font(settings.reading_family, settings.reading_size)
    theme.set_zoom(settings.zoom)


def build_window(
    application: QApplication,
    stores: Stores,
    paths: Paths,
    state: WindowStateStore,
    theme: Theme,
    started_in: str = "",
) -> MainWindow:
    """Create all parts of a window on one set of stores. `started_in` is a folder to offer for tasks."""
    install_roles()
    keep_focus_in_view(application)
    guard_compositions(application)
    models = ModelStore(stores.session, state)
    pulse = PulseTimer(theme, application)
    unread = UnreadStore(stores.tasks, state, lambda: conversations.active_id)
    marks = ConversationMarks(stores.tasks, unread, paths.workspaces)
    sidebar = SidebarView(stores, unread, marks, theme, pulse)
    pasted = PastedFiles(paths.attachments / "pasted")
    welcome = WelcomeStore(stores.session, state, started_in)
    services = ViewServices(stores, models, welcome, theme.conversations, application.clipboard(), pasted)
    factory = OpenConversationFactory(services, unread, state)
    tabs = TabsView(factory, theme, pulse)
    conversations = OpenConversations(tabs, factory, theme)
    control, tour = TaskControlStore(stores.session), TourStore(stores.session, paths.workspaces)
    return MainWindow(control, tour, sidebar, factory, tabs, conversations, theme, state, ACTIONS)


class _Excepthook:
    """Logs and shows an exception of a slot; the window keeps running."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.error("A slot failed", exc_info=(kind, error, trace))
        self._window.show_error(
            tr("Something went wrong in the window: {error}. Details are in logs/window.log.").format(error=error)
        )

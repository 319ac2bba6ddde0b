"""Connects the desktop parts to a window: notifications, tray, badge, quick tasks, single instance, quitting."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from app.client.safe_text import plain
from app.window.desktop.global_shortcut import GlobalShortcut
from app.window.desktop.instance_server import InstanceServer
from app.window.desktop.notifications import DBusNotifications, TrayNotifications
from app.window.desktop.quick_task import QuickTask
from app.window.desktop.quit_dialog import QuitDialog
from app.window.desktop.single_instance import WakeRequest
from app.window.desktop.tray import Tray
from app.window.stores.notifications import NotificationStore
from app.window.stores.quit import QuitStore
from app.window.stores.stores import Stores
from app.window.stores.task_commands import TaskControlStore
from app.window.stores.window_state import WindowStateStore
from app.window.theme.theme import Theme
from app.window.views.shell.main_window import MainWindow

_ALERT_MS = 0  # until the window is activated

_NO_KEY = (
    "The desktop has given no key that works everywhere. In its keyboard settings, bind a key of your choice to the "
    "command: errand quick"
)


class WindowTitle(QObject):
    """`(2) Errand — title of the current conversation`. Separate conversation windows set their own title."""

    def __init__(self, application: QApplication, window: MainWindow, stores: Stores) -> None:
        super().__init__(window)
        self._application = application
        self._window = window
        self._stores = stores
        self._waiting: frozenset[str] = frozenset()
        stores.asks.changed.connect(self._on_asks_changed)
        stores.conversations.changed.connect(self._show)
        stores.conversations.reset.connect(self._show)
        window.pages.front_changed.connect(self._show)
        self._on_asks_changed()

    def _on_asks_changed(self) -> None:
        waiting = frozenset(ask.id for ask in self._stores.asks.waiting())
        if waiting - self._waiting and self._application.activeWindow() is None:
            self._application.alert(self._window, _ALERT_MS)
        self._waiting = waiting
        self._application.setBadgeNumber(len(waiting))
        self._show()

    def _show(self) -> None:
        waits = f"({len(self._waiting)}) " if self._waiting else ""
        known = self._stores.conversations.get(self._window.pages.front_id)
        title = " ".join(plain(known.title).split()) if known else ""
        self._window.setWindowTitle(f"{waits}Errand — {title}" if title else f"{waits}Errand")


class DesktopIntegration(QObject):
    """All desktop integration of one main window."""

    def __init__(
        self,
        application: QApplication,
        window: MainWindow,
        stores: Stores,
        theme: Theme,
        state: WindowStateStore,
        quick: QuickTask,
    ) -> None:
        super().__init__(window)
        self._application = application
        self._window = window
        self._stores = stores
        self._theme = theme
        self._state = state
        self.quick = quick
        self._control = TaskControlStore(stores.session)
        self._quitting = QuitStore(stores, self)
        self._quit_dialog: QuitDialog | None = None
        self._key_wanted = False
        self.title = WindowTitle(application, window, stores)
        self.notices = NotificationStore(stores, self._in_front, self._is_active)
        self.tray = self._make_tray()
        self.key = self._make_key()
        self._connect_notifications()
        window.closing.connect(self._on_closing)
        window.quit_requested.connect(self._on_quit_requested)
        window.quick_task_requested.connect(quick.open)
        window.global_shortcut_requested.connect(self._on_global_shortcut_requested)
        window.desk.front_changed.connect(self.notices.look_again)
        application.focusWindowChanged.connect(self.notices.look_again)
        self._control.failed.connect(window.show_error)
        quick.opened.connect(self._on_opened)

    def bring_to_front(self, activation: str = "") -> None:
        """Show and raise the window, even if hidden or minimised. Wayland requires an activation token."""
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation  # Qt reads and clears it
        window = self._window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()

    def on_rung(self, wish: WakeRequest) -> None:
        """Handles the request of a second start of Errand."""
        if wish.what == "quick":
            self.quick.open()
        elif wish.conversation_id:
            self._on_opened(wish.conversation_id, wish.activation)
        else:
            self.bring_to_front(wish.activation)

    def close(self) -> None:
        self._application.focusWindowChanged.disconnect(self.notices.look_again)  # the application outlives the window
        self._window.desk.front_changed.disconnect(self.notices.look_again)
        self.notices.close()
        self.key.close()
        if self.tray is not None:
            self.tray.icon.hide()  # some desktops leave a dead icon behind at exit

    def _on_closing(self) -> None:
        """The tray may have appeared or vanished since the start: some desktops start it late or restart it."""
        if self.tray is None:
            self.tray = self._make_tray()
        elif not QSystemTrayIcon.isSystemTrayAvailable():
            self._window.has_tray = False
        else:
            self._window.has_tray = True

    def _make_tray(self) -> Tray | None:
        """Create the tray only if the system reports one: otherwise a hidden window could not be shown again."""
        if not QSystemTrayIcon.isSystemTrayAvailable():
            return None
        tray = Tray(self._stores)
        self._window.has_tray = True
        tray.main_window_requested.connect(self.bring_to_front)
        tray.menu.main_window_requested.connect(self.bring_to_front)
        tray.menu.opened.connect(self._on_opened)
        tray.menu.stop_requested.connect(self._control.stop)
        tray.menu.new_task_requested.connect(self._on_new_task_requested)
        tray.menu.quick_task_requested.connect(self.quick.open)
        tray.menu.quit_requested.connect(self._on_quit_requested)
        return tray

    def _make_key(self) -> GlobalShortcut:
        """Bind only if the user has asked for the shortcut before, since the desktop may open a dialog."""
        key = GlobalShortcut(self)
        key.pressed.connect(self._on_key_pressed)
        key.bound.connect(self._on_key_bound)
        key.refused.connect(self._on_key_refused)
        if self._state.kept.quick_key:
            self._stores.session.spawn(key.bind())
        return key

    def _connect_notifications(self) -> None:
        self.notices.opened.connect(self._on_opened)
        if sys.platform == "linux":
            notifications = DBusNotifications(self)
            self.notices.wanted.connect(notifications.show)
            notifications.acted.connect(self._on_acted)
            self._stores.session.spawn(notifications.run())
        elif self.tray is not None:
            balloons = TrayNotifications(self.tray.icon)
            self.notices.wanted.connect(balloons.show)
            balloons.acted.connect(self._on_acted)

    def _is_active(self) -> bool:
        return self._application.activeWindow() is not None

    def _in_front(self) -> str:
        return self._window.desk.front_id if self._is_active() else ""

    def _on_acted(self, key: str, button: str, activation: str) -> None:
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation
        self.notices.act(key, button)

    def _on_opened(self, conversation_id: str, activation: str = "") -> None:
        if conversation_id:
            self._window.desk.open(conversation_id)
        if self._window.desk.front_window is None:  # otherwise a separate conversation window is already in front
            self.bring_to_front(activation)

    def _on_new_task_requested(self) -> None:
        self._window.desk.new()
        self.bring_to_front()

    def _on_global_shortcut_requested(self) -> None:
        self._key_wanted = True
        self._stores.session.spawn(self.key.bind())

    def _on_key_pressed(self, activation: str) -> None:
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation
        self.quick.open()

    def _on_key_bound(self, keys: str) -> None:
        self._keep_key(True)
        if self._key_wanted:
            name = keys or "The key you chose"
            self._window.trouble.tell(f"{name} opens the field for quick tasks, wherever you are.", "done")
        self._key_wanted = False

    def _on_key_refused(self) -> None:
        self._keep_key(False)
        if self._key_wanted:
            self._window.trouble.tell(_NO_KEY, "info")
        self._key_wanted = False

    def _keep_key(self, has_key: bool) -> None:
        if self._state.kept.quick_key != has_key:
            self._state.kept.quick_key = has_key
            self._state.save_soon()

    def _on_quit_requested(self) -> None:
        if self._quit_dialog is not None:
            self._quit_dialog.raise_()
            self._quit_dialog.activateWindow()
        elif self._quitting.tasks.running():
            parent = self._window if self._window.isVisible() else None
            self._quit_dialog = QuitDialog(self._quitting, self._theme, parent)
            self._quit_dialog.accepted.connect(self._window.leave)
            self._quit_dialog.finished.connect(self._on_quit_finished)
            self._quit_dialog.open()
        else:
            self._window.leave()

    def _on_quit_finished(self) -> None:
        self._quit_dialog = None


@asynccontextmanager
async def desktop_integration(
    application: QApplication,
    window: MainWindow,
    stores: Stores,
    theme: Theme,
    state: WindowStateStore,
    door_file: Path | None,
) -> AsyncGenerator[DesktopIntegration]:
    """Pass no `door_file` if another window already listens for second starts."""
    quick = QuickTask(application, stores.session, state, theme)
    attention = DesktopIntegration(application, window, stores, theme, state, quick)
    door = InstanceServer(door_file) if door_file is not None else None
    if door is not None:
        door.rung.connect(attention.on_rung)
        await door.open()
    try:
        yield attention
    finally:
        if door is not None:
            door.close()
        attention.close()

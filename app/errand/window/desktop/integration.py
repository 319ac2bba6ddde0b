"""Connects the desktop parts to a window: notifications, tray, badge, quick tasks, single instance, quitting."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from errand.client.safe_text import plain
from errand.text.translation import tr
from errand.window.desktop.global_shortcut import GlobalShortcut
from errand.window.desktop.instance_server import InstanceServer
from errand.window.desktop.notifications import DBusNotifications, TrayNotifications
from errand.window.desktop.quick_task import QuickTask
from errand.window.desktop.quit_dialog import QuitDialog
from errand.window.desktop.single_instance import WakeRequest
from errand.window.desktop.tray import Tray
from errand.window.stores.notifications import NotificationStore
from errand.window.stores.quit import QuitStore
from errand.window.stores.stores import Stores
from errand.window.stores.task_commands import TaskControlStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.shell.main_window import MainWindow

_ALERT_MS = 0  # until the window is activated

_NO_SHORTCUT = tr(
    "Your desktop doesn't support global shortcuts from apps. In its keyboard settings, bind a "
    "shortcut to the command: errand quick"
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
        window.tabs.active_changed.connect(self._show)
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
        conversation = self._stores.conversations.get(self._window.tabs.active_id)
        title = " ".join(plain(conversation.title).split()) if conversation else ""
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
        quick_task: QuickTask,
    ) -> None:
        super().__init__(window)
        self._application = application
        self._window = window
        self._stores = stores
        self._theme = theme
        self._state = state
        self.quick_task = quick_task
        self._control = TaskControlStore(stores.session)
        self._quitting = QuitStore(stores, self)
        self._quit_dialog: QuitDialog | None = None
        self._reports_binding = False
        self.title = WindowTitle(application, window, stores)
        self.notifications = NotificationStore(stores, self._active_conversation_id, self._is_active)
        self.tray = self._make_tray()
        self.shortcut = self._make_shortcut()
        self._connect_notifications()
        window.closing.connect(self._on_closing)
        window.quit_requested.connect(self._on_quit_requested)
        window.quick_task_requested.connect(quick_task.open)
        window.global_shortcut_requested.connect(self._on_global_shortcut_requested)
        window.conversations.active_changed.connect(self.notifications.on_activation_changed)
        application.focusWindowChanged.connect(self.notifications.on_activation_changed)
        self._control.failed.connect(window.show_error)
        quick_task.opened.connect(self._on_opened)

    def bring_to_front(self, activation: str = "") -> None:
        """Show and raise the window, even if hidden or minimised. Wayland requires an activation token."""
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation  # Qt reads and clears it
        window = self._window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()

    def on_wake_requested(self, request: WakeRequest) -> None:
        """Handles the request of a second start of Errand."""
        if request.what == "quick":
            self.quick_task.open()
        elif request.conversation_id:
            self._on_opened(request.conversation_id, request.activation)
        else:
            self._window.welcome.set_started_in(request.folder)
            self.bring_to_front(request.activation)

    def close(self) -> None:
        self._application.focusWindowChanged.disconnect(
            self.notifications.on_activation_changed
        )  # the application outlives the window
        self._window.conversations.active_changed.disconnect(self.notifications.on_activation_changed)
        self.notifications.close()
        self.shortcut.close()
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
        tray.menu.quick_task_requested.connect(self.quick_task.open)
        tray.menu.quit_requested.connect(self._on_quit_requested)
        return tray

    def _make_shortcut(self) -> GlobalShortcut:
        """Bind only if the user has asked for the shortcut before, since the desktop may open a dialog."""
        shortcut = GlobalShortcut(self)
        shortcut.pressed.connect(self._on_shortcut_pressed)
        shortcut.bound.connect(self._on_shortcut_bound)
        shortcut.refused.connect(self._on_shortcut_refused)
        if self._state.settings.quick_key:
            self._stores.session.spawn(shortcut.bind())
        return shortcut

    def _connect_notifications(self) -> None:
        self.notifications.opened.connect(self._on_opened)
        if sys.platform == "linux":
            dbus_notifications = DBusNotifications(self)
            self.notifications.notices_changed.connect(dbus_notifications.show)
            dbus_notifications.button_clicked.connect(self._on_notification_clicked)
            self._stores.session.spawn(dbus_notifications.run())
        elif self.tray is not None:
            tray_notifications = TrayNotifications(self.tray.icon)
            self.notifications.notices_changed.connect(tray_notifications.show)
            tray_notifications.button_clicked.connect(self._on_notification_clicked)

    def _is_active(self) -> bool:
        return self._application.activeWindow() is not None

    def _active_conversation_id(self) -> str:
        return self._window.conversations.active_id if self._is_active() else ""

    def _on_notification_clicked(self, key: str, button: str, activation: str) -> None:
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation
        self.notifications.handle_click(key, button)

    def _on_opened(self, conversation_id: str, activation: str = "") -> None:
        if conversation_id:
            self._window.conversations.open(conversation_id)
        if (
            self._window.conversations.active_window is None
        ):  # otherwise a separate conversation window is already in front
            self.bring_to_front(activation)

    def _on_new_task_requested(self) -> None:
        self._window.conversations.new()
        self.bring_to_front()

    def _on_global_shortcut_requested(self) -> None:
        self._reports_binding = True
        self._stores.session.spawn(self.shortcut.bind())

    def _on_shortcut_pressed(self, activation: str) -> None:
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation
        self.quick_task.open()

    def _on_shortcut_bound(self, keys: str) -> None:
        self._save_shortcut_setting(True)
        if self._reports_binding:
            name = keys or tr("Your shortcut")
            self._window.show_message(tr("{keys} opens a quick task from anywhere.").format(keys=name), "done")
        self._reports_binding = False

    def _on_shortcut_refused(self) -> None:
        self._save_shortcut_setting(False)
        if self._reports_binding:
            self._window.show_message(_NO_SHORTCUT)
        self._reports_binding = False

    def _save_shortcut_setting(self, is_enabled: bool) -> None:
        if self._state.settings.quick_key != is_enabled:
            self._state.settings.quick_key = is_enabled
            self._state.save_soon()

    def _on_quit_requested(self) -> None:
        if self._quit_dialog is not None:
            self._quit_dialog.raise_()
            self._quit_dialog.activateWindow()
        elif self._quitting.tasks.running():
            parent = self._window if self._window.isVisible() else None
            self._quit_dialog = QuitDialog(self._quitting, self._theme, parent)
            self._quit_dialog.accepted.connect(self._window.close_for_good)
            self._quit_dialog.finished.connect(self._on_quit_finished)
            self._quit_dialog.open()
        else:
            self._window.close_for_good()

    def _on_quit_finished(self) -> None:
        self._quit_dialog = None


@asynccontextmanager
async def desktop_integration(
    application: QApplication,
    window: MainWindow,
    stores: Stores,
    theme: Theme,
    state: WindowStateStore,
    instance_file: Path | None,
) -> AsyncGenerator[DesktopIntegration]:
    """Pass no `instance_file` if another window already listens for second starts."""
    quick_task = QuickTask(application, stores.session, state, theme)
    integration = DesktopIntegration(application, window, stores, theme, state, quick_task)
    instance_server = InstanceServer(instance_file) if instance_file is not None else None
    if instance_server is not None:
        instance_server.wake_requested.connect(integration.on_wake_requested)
        await instance_server.open()
    try:
        yield integration
    finally:
        if instance_server is not None:
            instance_server.close()
        integration.close()

"""All actions of the window: name, text, keys, and what each does. A dialog that an action opens is loaded here."""

from collections.abc import Callable

from PySide6.QtCore import Qt

from errand.protocol.conversations import Conversation
from errand.text.translation import tr
from errand.window.views.shell.main_window import MainWindow, WindowAction
from errand.window.widgets.dialogs import bring_to_front

_OWN = Qt.FindChildOption.FindDirectChildrenOnly


def _open_palette(window: MainWindow) -> None:
    from errand.window.views.shell.command_palette import CommandPalette  # not needed at startup

    def open_setting(name: str) -> None:
        window.dialogs.settings.open_setting(name)

    palette = window.findChild(CommandPalette, options=_OWN)
    if palette is None:
        stores = window.stores
        palette = CommandPalette(stores.conversations, stores.session, window.theme, window.shortcuts, window)
        palette.conversation_chosen.connect(window.conversations.open)
        palette.setting_chosen.connect(open_setting)
        palette.action_chosen.connect(window.commands.trigger)
    front = window.conversations.active_window
    palette.open_over(front or window, has_tabs=front is None)


def _open_usage(window: MainWindow) -> None:
    from errand.window.stores.usage import UsageStore
    from errand.window.views.usage.dialog import UsageDialog

    dialog = window.findChild(UsageDialog, options=_OWN)
    if dialog is None:
        store = UsageStore(window.stores.session, window.stores.tasks, window)
        dialog = UsageDialog(store, window.theme, window.services.clipboard, window)
        dialog.opened.connect(window.conversations.open)
    bring_to_front(dialog)


def _open_shortcuts(window: MainWindow) -> None:
    from errand.window.views.shell.shortcuts_dialog import ShortcutsDialog

    ShortcutsDialog(window.theme, window.shortcuts, window).open()


def _open_memory(window: MainWindow) -> None:
    window.dialogs.open_memory(window.conversations.active.store.conversation)


def _open_other_folders(window: MainWindow) -> None:
    window.dialogs.open_memory(window.conversations.active.store.conversation, "state")


def _switch_theme(window: MainWindow) -> None:
    window.theme.set_mode("light" if window.theme.tokens.dark else "dark")


def _switch_memory(window: MainWindow, switch: Callable[[Conversation], None]) -> None:
    conversation = window.conversations.active.store.conversation
    if conversation is None:
        window.show_message(tr("This conversation is still empty. Send a message first, or choose another one."))
    else:
        switch(conversation)


ACTIONS = (
    WindowAction("new_task", tr("New task"), ("Ctrl+T", "Ctrl+N"), run=lambda window: window.conversations.new()),
    WindowAction(
        "stop", tr("Stop task"), ("Ctrl+.",), run=lambda window: window.conversations.active.store.commands.stop()
    ),
    WindowAction(
        "stop_all",
        tr("Stop all tasks in this conversation"),
        run=lambda window: window.conversations.active.store.commands.stop_all(),
    ),
    WindowAction(
        "pause",
        tr("Pause or resume the task"),
        ("Ctrl+P",),
        run=lambda window: window.conversations.active.pause_or_resume(),
    ),
    WindowAction(
        "next_ask",
        tr("Go to the next request"),
        ("Ctrl+J",),
        run=lambda window: window.conversations.go_to_next_ask(),
    ),
    WindowAction(
        "allow_once",
        tr("Allow once"),
        ("Ctrl+Return", "Ctrl+Enter"),
        run=lambda window: window.conversations.active.asks.allow_once(),
    ),
    WindowAction(
        "palette",
        tr("Search actions, conversations and settings"),
        ("Ctrl+K",),
        in_palette=False,
        run=_open_palette,
    ),
    WindowAction("search", tr("Search all conversations"), ("Ctrl+Shift+F",), run=lambda window: window.focus_search()),
    WindowAction(
        "find",
        tr("Search this conversation"),
        ("Ctrl+F",),
        run=lambda window: window.conversations.active.search.open(),
    ),
    WindowAction(
        "find_next",
        tr("Next result"),
        ("F3", "Ctrl+G"),
        in_palette=False,
        repeats=True,
        run=lambda window: window.conversations.active.search.step(forward=True),
    ),
    WindowAction(
        "find_previous",
        tr("Previous result"),
        ("Shift+F3", "Ctrl+Shift+G"),
        in_palette=False,
        repeats=True,
        run=lambda window: window.conversations.active.search.step(forward=False),
    ),
    WindowAction(
        "tree",
        tr("Show or hide branches"),
        ("Ctrl+Shift+B",),
        run=lambda window: window.conversations.active.tree.toggle(),
    ),
    WindowAction(
        "review",
        tr("Review changed files"),
        ("Ctrl+Shift+R",),
        run=lambda window: window.conversations.active.review.toggle(),
    ),
    WindowAction(
        "ask_models",
        tr("Ask several models"),
        run=lambda window: window.conversations.active.dialogs.ask_models(),
    ),
    WindowAction(
        "compare",
        tr("Compare models"),
        run=lambda window: window.conversations.active.store.branches.compare_newest(),
    ),
    WindowAction(
        "add_agent",
        tr("Add agent"),
        run=lambda window: window.conversations.active.input_panel.agents.add_agent(),
    ),
    WindowAction(
        "summarise",
        tr("Summarise earlier messages"),
        run=lambda window: window.conversations.active.store.context.summarise(),
    ),
    WindowAction(
        "approvals",
        tr("Choose approval mode"),
        run=lambda window: window.conversations.active.input_panel.approval_mode.open_panel(),
    ),
    WindowAction(
        "export", tr("Export this conversation"), run=lambda window: window.conversations.active.dialogs.export()
    ),
    WindowAction("undo_archive", tr("Undo archiving"), ("Ctrl+Alt+Z",), run=lambda window: window.sidebar.undo.undo()),
    WindowAction("close_tab", tr("Close tab"), ("Ctrl+W",), run=lambda window: window.conversations.close_active()),
    WindowAction(
        "reopen_tab", tr("Reopen closed tab"), ("Ctrl+Shift+T",), run=lambda window: window.conversations.reopen()
    ),
    WindowAction(
        "next_tab",
        tr("Next tab"),
        ("Ctrl+Tab", "Ctrl+PgDown"),
        repeats=True,
        run=lambda window: window.conversations.in_main_window(lambda: window.tabs.bar.step(1)),
    ),
    WindowAction(
        "previous_tab",
        tr("Previous tab"),
        ("Ctrl+Shift+Tab", "Ctrl+PgUp"),
        repeats=True,
        run=lambda window: window.conversations.in_main_window(lambda: window.tabs.bar.step(-1)),
    ),
    WindowAction(
        "move_tab_left",
        tr("Move tab left"),
        ("Ctrl+Shift+PgUp",),
        of_tab=True,
        run=lambda window: window.tabs.bar.shift(-1),
    ),
    WindowAction(
        "move_tab_right",
        tr("Move tab right"),
        ("Ctrl+Shift+PgDown",),
        of_tab=True,
        run=lambda window: window.tabs.bar.shift(1),
    ),
    WindowAction(
        "pin_tab",
        tr("Pin or unpin tab"),
        ("Ctrl+Shift+P",),
        of_tab=True,
        run=lambda window: window.tabs.pin(window.tabs.bar.current),
    ),
    WindowAction(
        "all_tabs",
        tr("Search open tabs"),
        ("Ctrl+Shift+A",),
        run=lambda window: window.conversations.in_main_window(window.tabs.open_list),
    ),
    WindowAction(
        "own_window",
        tr("Open in new window or move back"),
        ("Ctrl+Shift+D",),
        run=lambda window: window.conversations.move_active(),
    ),
    WindowAction("next_pane", tr("Focus next pane"), ("F6",), run=lambda window: window.focus_next_pane()),
    WindowAction(
        "sidebar", tr("Show or hide sidebar"), ("Ctrl+B",), run=lambda window: window.splitter.toggle_sidebar()
    ),
    WindowAction(
        "zoom_in", tr("Zoom in"), ("Ctrl+=", "Ctrl++"), repeats=True, run=lambda window: window.theme.step_zoom(1)
    ),
    WindowAction("zoom_out", tr("Zoom out"), ("Ctrl+-",), repeats=True, run=lambda window: window.theme.step_zoom(-1)),
    WindowAction("zoom_reset", tr("Reset zoom"), ("Ctrl+0",), run=lambda window: window.theme.step_zoom(0)),
    WindowAction("tour", tr("Play the tour"), run=lambda window: window.tour.play()),
    WindowAction(
        "tour_for_real",
        tr("Run the tour's tasks with your model"),
        run=lambda window: window.tour.play_for_real(),
    ),
    WindowAction(
        "settings", tr("Settings"), ("Ctrl+,",), run=lambda window: window.dialogs.settings.open_page("general")
    ),
    WindowAction(
        "settings_models",
        tr("Settings: models and keys"),
        run=lambda window: window.dialogs.settings.open_page("providers"),
    ),
    WindowAction(
        "settings_local_models",
        tr("Settings: models on this machine"),
        run=lambda window: window.dialogs.settings.open_page("local_models"),
    ),
    WindowAction(
        "settings_personalities",
        tr("Settings: personalities"),
        run=lambda window: window.dialogs.settings.open_page("personalities"),
    ),
    WindowAction(
        "settings_permissions",
        tr("Settings: permissions"),
        run=lambda window: window.dialogs.settings.open_page("permissions"),
    ),
    WindowAction(
        "settings_tools",
        tr("Settings: tools and MCP servers"),
        run=lambda window: window.dialogs.settings.open_page("tools"),
    ),
    WindowAction(
        "settings_skills", tr("Settings: skills"), run=lambda window: window.dialogs.settings.open_page("skills")
    ),
    WindowAction(
        "settings_appearance",
        tr("Settings: appearance, theme and fonts"),
        run=lambda window: window.dialogs.settings.open_page("appearance"),
    ),
    WindowAction(
        "settings_data",
        tr("Settings: data, import and export"),
        run=lambda window: window.dialogs.settings.open_page("data"),
    ),
    WindowAction("usage", tr("Usage"), ("Ctrl+U",), run=_open_usage),
    WindowAction("memory", tr("Memory"), ("Ctrl+M",), run=_open_memory),
    WindowAction(
        "remember",
        tr("Include in memory or leave out"),
        run=lambda window: _switch_memory(window, window.stores.conversations.switch_remembering),
    ),
    WindowAction(
        "recall",
        tr("Use memory here or not"),
        run=lambda window: _switch_memory(window, window.stores.conversations.switch_recall),
    ),
    WindowAction("other_folders", tr("Memory of other folders"), run=_open_other_folders),
    WindowAction("theme", tr("Toggle light and dark theme"), run=_switch_theme),
    WindowAction("shortcuts", tr("Keyboard shortcuts"), ("Ctrl+/",), run=_open_shortcuts),
    WindowAction("quick", tr("Quick task"), ("Ctrl+Shift+N",), run=lambda window: window.quick_task_requested.emit()),
    WindowAction(
        "quick_key",
        tr("Set a global shortcut for quick tasks"),
        run=lambda window: window.global_shortcut_requested.emit(),
    ),
    WindowAction("quit", tr("Quit Errand"), ("Ctrl+Q",), run=lambda window: window.quit_requested.emit()),
)

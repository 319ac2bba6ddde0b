"""Every action of the window, declared once: menus, the palette and the shortcut sheet are made from this table."""

from dataclasses import dataclass
from typing import Literal

ActionName = Literal[
    "new_task",
    "stop",
    "stop_all",
    "next_ask",
    "allow_once",
    "palette",
    "search",
    "find",
    "find_next",
    "find_previous",
    "tree",
    "summarise",
    "ask_models",
    "add_agent",
    "close_tab",
    "reopen_tab",
    "next_tab",
    "previous_tab",
    "move_tab_left",
    "move_tab_right",
    "pin_tab",
    "all_tabs",
    "own_window",
    "next_pane",
    "sidebar",
    "tour",
    "settings",
    "usage",
    "theme",
    "shortcuts",
    "quick",
    "quick_key",
    "quit",
]


@dataclass(frozen=True, slots=True)
class Action:
    """What a person can do; the main window has a slot for each name. The first of `shortcuts` is the one shown.

    `in_palette` is false for what makes no sense there. `of_tab` is true for what a window without tabs cannot do.
    """

    name: ActionName
    text: str
    shortcuts: tuple[str, ...]
    in_palette: bool = True
    of_tab: bool = False


ACTIONS = (
    Action("new_task", "New task", ("Ctrl+T", "Ctrl+N")),
    Action("stop", "Stop the task in front", ("Ctrl+.",)),
    Action("stop_all", "Stop all tasks of this conversation", ()),
    Action("next_ask", "Go to the next that waits for you", ("Ctrl+J",)),
    Action("allow_once", "Allow once what waits in front", ("Ctrl+Return", "Ctrl+Enter")),
    Action("palette", "Find an action, a conversation or a setting", ("Ctrl+K",), False),
    Action("search", "Search all conversations", ("Ctrl+Shift+F",)),
    Action("find", "Find in this conversation", ("Ctrl+F",)),
    Action("find_next", "Find the next hit", ("F3", "Ctrl+G"), False),
    Action("find_previous", "Find the previous hit", ("Shift+F3", "Ctrl+Shift+G"), False),
    Action("tree", "Show or hide the branches of this conversation", ("Ctrl+Shift+B",)),
    Action("ask_models", "Ask several models the same", ()),
    Action("add_agent", "Add an agent to this conversation", ()),
    Action("summarise", "Summarise the older part of this conversation", ()),
    Action("close_tab", "Close tab", ("Ctrl+W",)),
    Action("reopen_tab", "Reopen closed tab", ("Ctrl+Shift+T",)),
    Action("next_tab", "Next tab", ("Ctrl+Tab", "Ctrl+PgDown")),
    Action("previous_tab", "Previous tab", ("Ctrl+Shift+Tab", "Ctrl+PgUp")),
    Action("move_tab_left", "Move tab left", ("Ctrl+Shift+PgUp",), of_tab=True),
    Action("move_tab_right", "Move tab right", ("Ctrl+Shift+PgDown",), of_tab=True),
    Action("pin_tab", "Pin or unpin tab", ("Ctrl+Shift+P",), of_tab=True),
    Action("all_tabs", "Find an open tab", ("Ctrl+Shift+A",)),
    Action("own_window", "Move to a window of its own, or back", ("Ctrl+Shift+D",)),
    Action("next_pane", "Go to the next pane", ("F6",)),
    Action("sidebar", "Show or hide the sidebar", ("Ctrl+B",)),
    Action("tour", "Play the tour", ()),
    Action("settings", "Settings", ("Ctrl+,",)),
    Action("usage", "Usage: tokens and money", ("Ctrl+U",)),
    Action("theme", "Change between light and dark", ()),
    Action("shortcuts", "Keyboard shortcuts", ("Ctrl+/",)),
    Action("quick", "Quick task in the background", ("Ctrl+Shift+N",)),
    Action("quick_key", "Set a key for quick tasks that works everywhere", ()),
    Action("quit", "Quit Errand", ("Ctrl+Q",)),
)

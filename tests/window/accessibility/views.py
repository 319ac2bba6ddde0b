"""Every view of the window, with the steps that show it. A new view is one more line in VIEWS."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import get_args

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QListView, QVBoxLayout, QWidget

from errand.text.translation import tr
from errand.window.desktop.quick_task import QuickTaskDialog
from errand.window.desktop.quit_dialog import QuitDialog
from errand.window.desktop.tray import TrayMenu
from errand.window.rows.disclosure import DisclosureButton
from errand.window.stores.quit import QuitStore
from errand.window.theme.style import push_button
from errand.window.transcript.view import TranscriptView
from errand.window.views.agents.dialogs import AddAgentDialog, TurnOrderDialog
from errand.window.views.composer.task_options_dialog import TaskOptionsDialog
from errand.window.views.conversation.find_bar import FindBarView
from errand.window.views.settings.data.page import StorageRowView
from errand.window.views.settings.dialog import PageName, SettingsDialog
from errand.window.views.settings.engine_settings_page import SettingView
from errand.window.views.settings.tools_page import ToolRowView
from errand.window.views.shared.picker import PickerDialog
from errand.window.views.shell.main_window import KeepRunningDialog
from errand.window.views.shell.shortcuts_dialog import ShortcutsDialog
from errand.window.views.sidebar.archive import DeleteDialog
from errand.window.views.usage.dialog import UsageDialog
from errand.window.views.usage.table import UsageTableView
from tests.support.row_actions import KeptActions
from tests.support.rows import RowList
from tests.support.window import press, until
from tests.window.accessibility import agents_views, memory_views, popup_views, review_views, settings_views
from tests.window.accessibility.every_row import every_row
from tests.window.accessibility.full_window import WindowFixture, top


@dataclass(frozen=True, slots=True)
class View:
    """`open` returns the window that shows the view."""

    name: str
    open: Callable[[WindowFixture], Awaitable[QWidget]]


async def _first_mode(fixture: WindowFixture) -> QWidget:
    fixture.window.commands.trigger("new_task")
    fixture.front.welcome.first_mode.show()  # also on a machine without a sandbox
    await until(fixture.front.welcome.first_mode.isVisible)
    return fixture.window


async def _first_run(fixture: WindowFixture) -> QWidget:
    fixture.window.commands.trigger("new_task")
    fixture.window.dialogs.settings_closed.emit()  # searches for models again
    welcome = fixture.front.welcome
    await until(welcome.set_up.isVisible)
    QTest.keyClicks(fixture.front.composer.field, "Count")
    QTest.keyClick(fixture.front.composer.field, Qt.Key.Key_Return)
    return fixture.window


async def _draft(fixture: WindowFixture) -> QWidget:
    file = fixture.home / "notes.txt"
    file.write_text("a line")
    fixture.window.commands.trigger("new_task")
    QTest.keyClicks(fixture.front.composer.field, "Read this")
    fixture.front.composer.attachments.add([str(file)])
    return fixture.window


async def _branches(fixture: WindowFixture) -> QWidget:
    view = await fixture.open(fixture.branched)
    if not view.tree.panes:
        fixture.window.commands.trigger("tree")
    list_views = view.tree.panel.findChildren(QListView)
    await until(lambda: any(list_view.isVisible() for list_view in list_views))
    return fixture.window


async def _find(fixture: WindowFixture) -> QWidget:
    view = await fixture.open(fixture.branched)
    view.search.open()
    QTest.keyClicks(fixture.window.focusWidget(), "red")
    (bar,) = view.findChildren(FindBarView)
    await until(lambda: bar.count.text() != "" and bar.count.width() >= bar.count.sizeHint().width())
    return fixture.window


async def _conversation(fixture: WindowFixture, which: str) -> QWidget:
    await fixture.open({"busy": fixture.busy, "asking": fixture.asking, "approving": fixture.approving}[which])
    return fixture.window


async def _search(fixture: WindowFixture) -> QWidget:
    sidebar = fixture.window.sidebar
    QTest.keyClicks(sidebar.search, "sugar")
    await until(sidebar.results.isVisible)
    return fixture.window


async def _archive(fixture: WindowFixture) -> QWidget:
    sidebar = fixture.window.sidebar
    press(sidebar, tr("Archived"))
    await until(lambda: fixture.engine.stores.conversations.archived.count() > 0 and sidebar.archive.list.isVisible())
    return fixture.window


async def _narrow(fixture: WindowFixture) -> QWidget:
    await fixture.open(fixture.approving)
    fixture.window.resize(700, 600)
    return fixture.window


async def _choices(fixture: WindowFixture) -> QWidget:
    fixture.window.commands.trigger("new_task")
    QTest.mouseClick(fixture.front.input_panel.task_options.more_button, Qt.MouseButton.LeftButton)
    return top(TaskOptionsDialog)


async def _action(fixture: WindowFixture, name: str, kind: type[QDialog]) -> QWidget:
    fixture.window.commands.trigger(name)
    return top(kind)


async def _usage(fixture: WindowFixture) -> QWidget:
    dialog = await _action(fixture, "usage", UsageDialog)
    await until(lambda: any(table.isVisible() for table in dialog.findChildren(UsageTableView)))
    return dialog


async def _settings(fixture: WindowFixture, page: PageName) -> QWidget:
    fixture.window.dialogs.settings.open_page(page)
    dialog = top(SettingsDialog)
    if page in _ROWS:
        await until(lambda: any(row.isVisible() for row in dialog.findChildren(_ROWS[page])))
    return dialog


async def _server_form(fixture: WindowFixture) -> QWidget:
    dialog = await _settings(fixture, "providers")
    press(dialog, tr("Add provider…"))
    return dialog


async def _quick(fixture: WindowFixture) -> QWidget:
    dialog = QuickTaskDialog(fixture.theme)
    fixture.keep(dialog)
    dialog.show_with("Half a thought", "in a new folder")
    dialog.open_on(fixture.window.screen())
    dialog.show_started("Count the files")
    return dialog


async def _quit(fixture: WindowFixture) -> QWidget:
    dialog = QuitDialog(QuitStore(fixture.engine.stores), fixture.theme, fixture.window)
    dialog.show()
    return dialog


async def _leave(fixture: WindowFixture) -> QWidget:
    dialog = KeepRunningDialog(2, fixture.window)
    fixture.keep(dialog)
    dialog.show()
    return dialog


async def _delete(fixture: WindowFixture) -> QWidget:
    dialog = DeleteDialog("A title", 3, 1, fixture.window)
    dialog.show()
    return dialog


async def _own_window(fixture: WindowFixture) -> QWidget:
    await fixture.open(fixture.asking)
    fixture.window.commands.trigger("own_window")
    return fixture.window.conversations.windows[0]


async def _tray(fixture: WindowFixture) -> QWidget:
    menu = TrayMenu(fixture.engine.stores)
    fixture.keep(menu)
    menu.popup(fixture.window.pos())
    return menu


async def _every_row(fixture: WindowFixture, closed: bool) -> QWidget:
    window, view = QWidget(), TranscriptView(RowList(every_row()), fixture.theme, KeptActions())
    fixture.keep(window)
    column = QVBoxLayout(window)
    column.addWidget(view)
    column.addWidget(push_button("Below"))
    window.resize(800, 4_000)
    window.show()
    if not closed:
        for line in view.findChildren(DisclosureButton):
            if line.isEnabled():
                line.click()
        press(view, tr("Always allow…"))
        view.lay_out()
    return window


_ROWS: dict[PageName, type[QWidget]] = {"general": SettingView, "tools": ToolRowView, "data": StorageRowView}
"""What a page shows once it is loaded."""

_PAGES: tuple[PageName, ...] = get_args(PageName)

VIEWS = (
    View("the first choice of a mode", _first_mode),
    View("the first run", _first_run),
    View("a draft with a file", _draft),
    View("branches and their tree", _branches),
    View("find in a conversation", _find),
    *(
        View(f"the one that is {which}", partial(_conversation, which=which))
        for which in ("busy", "asking", "approving")
    ),
    View("search results", _search),
    View("the archive", _archive),
    View("a narrow window", _narrow),
    View("choices for the next task", _choices),
    View("the palette", partial(_action, name="palette", kind=PickerDialog)),
    View("all tabs", partial(_action, name="all_tabs", kind=PickerDialog)),
    View("usage", _usage),
    View("memory: entries", memory_views.entries),
    View("memory: forgetting", memory_views.forgetting),
    View("memory: forgetting a message", memory_views.forget_message),
    View("memory: facts", memory_views.facts),
    View("memory: state", memory_views.state),
    View("the sheet of shortcuts", partial(_action, name="shortcuts", kind=ShortcutsDialog)),
    *(View(f"settings: {page}", partial(_settings, page=page)) for page in _PAGES),
    View("settings: a model server's form", _server_form),
    View("a quick task", _quick),
    View("quit", _quit),
    View("leave", _leave),
    View("delete", _delete),
    View("the tray's menu", _tray),
    View("every kind of row, closed", partial(_every_row, closed=True)),
    View("every kind of row, open", partial(_every_row, closed=False)),
    View("a window of its own", _own_window),
    View("several agents", agents_views.several),
    View(
        "one more agent",
        partial(agents_views.asked, ask=lambda view: view.input_panel.agents.add_agent(), kind=AddAgentDialog),
    ),
    View(
        "turns", partial(agents_views.asked, ask=lambda view: view.input_panel.agents.set_turns(), kind=TurnOrderDialog)
    ),
    View("several models", agents_views.models),
    View("an agent is removed", agents_views.removal),
    View("two branches", agents_views.side_by_side),
    View("the review, empty", review_views.empty),
    View("the review, unified", review_views.unified),
    View("the review, side by side", review_views.side_by_side),
    View("the model picker", popup_views.model_picker),
    View("the approval modes", popup_views.approval_modes),
    View("the context of a turn", popup_views.context),
    View("the whole text of a notice", popup_views.notice_details),
    View("a to-do list", popup_views.todo_list),
    View("a command in the background", popup_views.background),
    View("the output of a background command", popup_views.background_output),
    View("a picture", popup_views.picture),
    View("the folder of an imported conversation", popup_views.folder_question),
    View("the menu of a tab", popup_views.tab_menu),
    View("a request in the inbox", popup_views.inbox_row),
    View("an approval that is denied with a reason", popup_views.deny_reason),
    View("archived a moment ago", popup_views.undo_archiving),
    View("archiving undone", popup_views.archived_back),
    View("settings: a personality's form", settings_views.personality),
    View("settings: a rule and its form", settings_views.rules),
    View("settings: an MCP server and its form", settings_views.servers),
    View("settings: models on this machine", settings_views.local_models),
    View("settings: a skill and its form", settings_views.skills),
    View("settings: licences", settings_views.licences),
    View(
        "settings: a provider, its models and a model's form", settings_views.provider
    ),  # from here on there is a model
)

"""Popups, panels and cards that a click or a key opens over a conversation."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from errand.protocol.settings import Model
from errand.protocol.tasks.groups import TaskActivity, TaskRequest, TodoItem
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.stores.conversation.commands import WorkspaceQuestion
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.theme.style import push_button
from errand.window.views.composer.approval_mode import ApprovalModeDialog, ApprovalModeView
from errand.window.views.composer.background_output import BackgroundOutputDialog
from errand.window.views.composer.todo_view import TodoItemView, TodoView
from errand.window.views.conversation.dialogs import WorkspaceDialog
from errand.window.views.shared.model_picker import ModelPicker
from errand.window.views.shell.tab_bar import TabMenu
from errand.window.views.usage.context_bar import ContextBarView
from errand.window.widgets.notice_line import NoticeDetailsDialog
from errand.window.widgets.picture_viewer import PictureViewer
from tests.support.rows import NOW, image
from tests.support.window import press, until
from tests.window.accessibility.full_window import WindowFixture, top

_NOTICE = "The connection to the engine was lost. Tasks continue, and everything that was written is kept. " * 3


async def model_picker(fixture: WindowFixture) -> QWidget:
    models = tuple(
        Model(id=f"{provider}/{name}", provider=provider) for provider in ("lab", "openai") for name in ("small", "big")
    )
    defaults = TaskOptionDefaults(models=models, favourites=("lab/big",), recent=("openai/small",))
    picker = ModelPicker(fixture.theme, defaults, "lab/small", fixture.window)
    fixture.keep(picker)
    picker.open_beside(fixture.window)
    return picker


async def approval_modes(fixture: WindowFixture) -> QWidget:
    view = await fixture.open(fixture.approving)
    (mode,) = view.findChildren(ApprovalModeView)
    QTest.mouseClick(mode.mode_button, Qt.MouseButton.LeftButton)
    return top(ApprovalModeDialog)


async def context(fixture: WindowFixture) -> QWidget:
    view = await fixture.open(fixture.branched)
    (bar,) = view.findChildren(ContextBarView)
    await until(bar.isVisible)
    bar.click()
    await until(lambda: bar.popover is not None and bar.popover.isVisible())
    assert bar.popover is not None
    return bar.popover


async def notice_details(fixture: WindowFixture) -> QWidget:
    dialog = NoticeDetailsDialog(fixture.theme, _NOTICE, QGuiApplication.clipboard(), fixture.window)
    dialog.open_above(fixture.window.sidebar)
    return dialog


async def todo_list(fixture: WindowFixture) -> QWidget:
    items = (TodoItem(text="look", status="done"), TodoItem(text="work", status="in_progress"), TodoItem(text="test"))
    task = Task(
        id="task_1",
        conversation_id="conv_1",
        agent_id="agent_1",
        started_at=NOW,
        todo=items,
        request=TaskRequest(prompt="go", model="m", workspace="/w"),
        activity=TaskActivity(status="thinking"),
    )
    window, view = QWidget(), TodoView(fixture.theme)
    fixture.keep(window)
    column = QVBoxLayout(window)
    column.addWidget(view)
    column.addWidget(push_button("Below"))
    view.show_task(task)
    window.resize(500, 300)
    window.show()
    if not view.findChildren(TodoItemView)[0].isVisible():
        view.line.click()
    return window


async def background(fixture: WindowFixture) -> QWidget:
    """A command in the background, listed above the message field."""
    await _with_background(fixture)
    return fixture.window


async def background_output(fixture: WindowFixture) -> QWidget:
    await _with_background(fixture)
    view = fixture.front.input_panel.background
    view.rows[0].setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(view.rows[0], Qt.Key.Key_Return)
    dialog = top(BackgroundOutputDialog)
    assert isinstance(dialog, BackgroundOutputDialog)
    await until(lambda: bool(dialog.text.toPlainText()))
    return dialog


async def _with_background(fixture: WindowFixture) -> None:
    await fixture.open(fixture.serving)
    view = fixture.front.input_panel.background
    await until(lambda: bool(view.rows))
    if not view.rows[0].isVisible():
        QTest.keyClick(view.header, Qt.Key.Key_Return)


async def picture(fixture: WindowFixture) -> QWidget:
    viewer = PictureViewer(image().image, fixture.theme, lambda _: None, fixture.window)
    viewer.open()
    return viewer


async def folder_question(fixture: WindowFixture) -> QWidget:
    dialog = WorkspaceDialog(WorkspaceQuestion("/elsewhere", "/own", lambda _: None), fixture.window)
    dialog.show()
    return dialog


async def tab_menu(fixture: WindowFixture) -> QWidget:
    menu = TabMenu(fixture.window, is_pinned=False)
    fixture.keep(menu)
    menu.popup(fixture.window.pos())
    return menu


async def inbox_row(fixture: WindowFixture) -> QWidget:
    """A request, opened in the inbox."""
    fixture.window.commands.trigger("new_task")
    fixture.window.sidebar.inbox.rows[1].expand()
    return fixture.window


async def undo_archiving(fixture: WindowFixture) -> QWidget:
    """The banners of the sidebar."""
    await fixture.open(fixture.branched)
    fixture.window.sidebar.notice.show_message(_NOTICE[:80])
    fixture.engine.stores.conversations.archive(fixture.branched)
    await until(fixture.window.sidebar.undo.isVisible)
    return fixture.window


async def archived_back(fixture: WindowFixture) -> QWidget:
    """Undone by its button."""
    undo = fixture.window.sidebar.undo
    if undo.isVisible():
        undo.undo()
    fixture.window.sidebar.notice.hide()
    await fixture.open(fixture.branched)
    return fixture.window


async def deny_reason(fixture: WindowFixture) -> QWidget:
    """The field for a reason in the card of an approval."""
    view = await fixture.open(fixture.approving)
    press(view, tr("Deny with reason…"))
    return fixture.window

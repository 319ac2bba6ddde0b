"""The tree panel on a real engine's conversation."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QListView, QWidget
from pytestqt.qtbot import QtBot

from errand.protocol.tasks.methods import TaskRetryParams, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.conversation.tree import TreeStore
from errand.window.stores.review.changes import ChangesStore
from errand.window.theme.theme import Theme
from errand.window.views.branches.tree_panel import TreePanelView
from errand.window.views.conversation.side_panels import SidePanelsView
from errand.window.views.shared.export_dialog import ExportDialog
from tests.support.model_server import ModelServer, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until, view_fixture


async def say(engine: StoreEngine) -> Task:
    params = TaskStartParams(
        prompt="Write a poem", model="openai_compatible/test-model", api_base=engine.parts.model.url
    )
    started = await engine.parts.services.runner.start(params)
    return await engine.parts.watcher.end(started.id)


async def retry(engine: StoreEngine, node_id: str) -> None:
    started = await engine.parts.services.runner.retry(TaskRetryParams(node_id=node_id))
    await engine.parts.watcher.end(started.id)


def panel_on(store: ConversationStore, engine: StoreEngine, theme: Theme, qtbot: QtBot) -> TreePanelView:
    panel = TreePanelView(TreeStore(store, engine.stores.session), theme)
    qtbot.addWidget(panel)
    panel.resize(320, 400)
    panel.show()
    return panel


async def test_a_single_branch_shows_a_hint_and_two_are_drawn(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer(replies=[Reply(text="Roses."), Reply(text="Violets.")])) as engine:
        task = await say(engine)
        reply = engine.parts.watcher.nodes()[1]
        store, _ = await engine.open(task.conversation_id)
        panel = panel_on(store, engine, theme, qtbot)
        assert panel.note == "Loading branches…"
        await until(lambda: "This conversation has one branch" in panel.note)
        await retry(engine, reply.id)
        await until(lambda: len(panel.lines) == 3 and not panel.note)
        await until(lambda: all(task.outcome.ended_at for line in panel.lines for task in line.tasks))
        list_view = panel.findChild(QListView)
        assert list_view is not None and list_view.accessibleName() == "Branches of this conversation"
        spoken = [list_view.model().index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(3)]
        assert spoken == [
            "Write a poem, You, in front",
            "Roses., 1 of 2, Agent, Ended, in another branch",
            "Violets., 2 of 2, Agent, Ended, here now",
        ]


async def test_enter_switches_to_the_branch_of_a_line(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer(replies=[Reply(text="Roses."), Reply(text="Violets.")])) as engine:
        task = await say(engine)
        reply = engine.parts.watcher.nodes()[1]
        await retry(engine, reply.id)
        store, _ = await engine.open(task.conversation_id)
        panel = panel_on(store, engine, theme, qtbot)
        await until(lambda: len(panel.lines) == 3)
        list_view = panel.findChild(QListView)
        assert list_view is not None and list_view.currentIndex().row() == 2, "it opens where the conversation stands"
        QTest.keyClick(list_view, Qt.Key.Key_Up)
        QTest.keyClick(list_view, Qt.Key.Key_Return)
        await until(lambda: store.branch.holds(reply.id))
        await until(lambda: [line.is_head for line in panel.lines] == [False, True, False])
        assert list_view.currentIndex().row() == 1


async def test_the_branch_of_a_line_is_exported_to_a_file(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with view_fixture(qapp, theme, tmp_path, [Reply(text="Violets.")]) as fixture:
        await fixture.finish()
        await retry(fixture.engine, fixture.engine.parts.watcher.nodes()[1].id)
        fixture.view.tree.toggle()
        panel = fixture.view.tree.panel
        await until(lambda: len(panel.lines) == 3)
        menu = panel.menu_of(panel.lines[1])
        (export,) = (action for action in menu.actions() if action.text() == "Export branch…")
        export.trigger()
        (dialog,) = fixture.view.findChildren(ExportDialog)
        assert (dialog.windowTitle(), dialog.nameFilters()[-1]) == (
            "Export branch",
            "Complete export (*.jsonl)",
        )
        exported: list[str] = []
        fixture.engine.stores.conversations.exported.connect(exported.append)
        path = tmp_path / "branch.html"
        dialog.fileSelected.emit(str(path))
        await until(lambda: bool(exported))
        page = path.read_text(encoding="utf-8")
        assert ("At work." in page, "Violets." in page) == (True, False)
        assert "on other branches" in page
        dialog.reject()


async def test_the_tree_panel_is_opened_and_closed_by_keyboard(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    replies = [Reply(text=text) for text in ("Roses.", "Violets.", "Lilies.")]
    async with store_engine(tmp_path, ModelServer(replies=replies)) as engine:
        task = await say(engine)
        await retry(engine, engine.parts.watcher.nodes()[1].id)
        store, _ = await engine.open(task.conversation_id)
        session, copied = engine.stores.session, list[str]()
        split = SidePanelsView(QWidget(), store, ChangesStore(store, session), session, theme, copied.append)
        qtbot.addWidget(split)
        split.resize(900, 400)
        split.show()
        left: list[bool] = []
        split.closed_with_focus.connect(lambda: left.append(True))
        assert split.panes == ()
        split.tree.toggle()
        (panel,) = split.panes
        assert isinstance(panel, TreePanelView)
        await until(lambda: len(panel.lines) == 3)
        assert isinstance(split.focusWidget(), QListView)
        split.tree.toggle()
        assert (split.panes, left) == ((), [True])
        await retry(engine, engine.parts.watcher.nodes()[1].id)
        split.tree.toggle()
        await until(lambda: len(panel.lines) == 4)


async def test_before_the_first_task_the_tree_explains_branches(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with store_engine(tmp_path, ModelServer()) as engine:
        panel = panel_on(engine.stores.open(None), engine, theme, qtbot)
        assert "This conversation has one branch" in panel.note

"""The list of conversations: headings, keys, menu, and inline renaming."""

from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QMenu
from pytestqt.qtbot import QtBot

from errand.protocol.conversations import Conversation
from errand.protocol.events import ConversationUpdate
from errand.protocol.tasks.task import replace_fields
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import UnreadStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.shared.export_dialog import ExportDialog, file_name
from errand.window.views.shared.item_delegate import COUNT, DETAIL, HEADING, HINT, STATE
from errand.window.views.sidebar.conversation_list import ConversationListView, ListAction
from errand.window.views.sidebar.conversation_marks import ConversationMarks
from errand.window.views.sidebar.conversation_model import short_time
from errand.window.views.sidebar.grouping import day_heading
from errand.window.views.sidebar.search_results import plain_snippet
from tests.support.engine_server import EngineServer, engine_server
from tests.support.records import conversation, task
from tests.support.store_engine import stores_on
from tests.support.window import until

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=timezone(timedelta(hours=1)))


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        yield running


@pytest.fixture
async def stores(engine: EngineServer) -> AsyncGenerator[Stores]:
    for number in range(6):
        put(engine, dated(number))
    await engine.log.flush()
    async with stores_on(engine.endpoint) as connected:
        await until(lambda: connected.conversations.is_loaded)
        yield connected


@pytest.fixture
def state(tmp_path: Path) -> WindowStateStore:
    return WindowStateStore(tmp_path / "window.json")


@pytest.fixture
def view(
    stores: Stores, theme: Theme, qtbot: QtBot, state: WindowStateStore, tmp_path: Path
) -> Generator[ConversationListView]:
    unread = UnreadStore(stores.tasks, state, lambda: "")
    marks = ConversationMarks(stores.tasks, unread, tmp_path / "workspaces")
    view = ConversationListView(stores.conversations, marks, theme, lambda: NOW)
    qtbot.addWidget(view)
    view.resize(260, 400)
    view.show()
    yield view
    state.flush()


def dated(number: int, *, pinned: bool = False) -> Conversation:
    """One conversation per day, number 0 today."""
    base = conversation(f"c{number}", at=NOW - timedelta(days=number))
    return msgspec.structs.replace(base, title=f"Title {number}", pinned=pinned)


def of_today(number: int, *, folder: str = "") -> Conversation:
    """Number 0 is the newest."""
    base = conversation(f"d{number:03}", at=NOW - timedelta(minutes=number + 1))
    return msgspec.structs.replace(base, title=f"Today {number}", workspace=folder)


def put(engine: EngineServer, changed: Conversation) -> None:
    engine.log.publish(ConversationUpdate(conversation=changed))


def shown(view: ConversationListView) -> list[str]:
    """Titles, and headings in brackets."""
    model = view.model()
    lines: list[str] = []
    for row in range(model.rowCount()):
        index = model.index(row, 0)
        heading = index.data(HEADING)
        lines += ([f"[{heading}]"] if heading else []) + [str(index.data())]
    return lines


def press(
    view: ConversationListView, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    QTest.keyClick(view, key, modifiers)


def index_of(view: ConversationListView, text: str) -> QModelIndex:
    model = view.model()
    return next(index for row in range(model.rowCount()) if (index := model.index(row, 0)).data() == text)


def click(view: ConversationListView, text: str) -> None:
    index = index_of(view, text)
    view.scrollTo(index)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center())


async def test_finished_conversations_of_a_day_fold_to_five(engine: EngineServer, view: ConversationListView) -> None:
    for number in range(8):
        put(engine, of_today(number))
    folded = ["[Today]", "Title 0", *(f"Today {number}" for number in range(4)), "Show 4 more", "[Yesterday]"]
    await until(lambda: shown(view)[:8] == folded)
    click(view, "Show 4 more")
    unfolded = ["[Today]", "Title 0", *(f"Today {number}" for number in range(8)), "Show fewer", "[Yesterday]"]
    assert shown(view)[:12] == unfolded
    click(view, "Show fewer")
    assert shown(view)[:8] == folded
    view.select("d007")
    assert shown(view)[6:8] == ["Today 7", "Show 3 more"]  # what is in front is never folded away


async def test_what_runs_waits_or_is_unread_is_never_folded_away(
    engine: EngineServer, stores: Stores, view: ConversationListView, state: WindowStateStore
) -> None:
    for number in range(12):
        put(engine, of_today(number))
    await until(lambda: "Show 8 more" in shown(view))
    for task_id, number, status in (("t1", 9, "running"), ("t2", 10, "waiting_user"), ("t3", 11, "completed")):
        ended = datetime.now(UTC) + timedelta(seconds=1) if status == "completed" else None
        stores.tasks.put(
            replace_fields(
                task(task_id, started_at=NOW, ended_at=ended),
                conversation_id=f"d{number:03}",
                agent_id=f"a{number}",
                status=status,
                stop_reason="completed" if ended else None,
            )
        )
    assert shown(view)[6:10] == ["Today 9", "Today 10", "Today 11", "Show 5 more"]
    marks = [
        (index_of(view, f"Today {number}").data(STATE), index_of(view, f"Today {number}").data(COUNT))
        for number in (0, 9, 10, 11)
    ]
    assert marks == [("idle", 0), ("working", 0), ("waiting", 0), ("idle", 1)]
    spoken = index_of(view, "Today 11").data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == f"Today 11, 1 unread, {short_time(NOW - timedelta(minutes=12), NOW)}"


async def test_conversations_are_grouped_by_their_folders(
    engine: EngineServer, view: ConversationListView, tmp_path: Path
) -> None:
    for number, folder in enumerate(
        ("/work/app", "/home/app", "/srv/site", "/work/app", str(tmp_path / "workspaces" / "w1"))
    ):
        put(engine, of_today(number, folder=folder))
    await until(lambda: "Today 4" in shown(view))
    assert [index_of(view, f"Today {number}").data(DETAIL) for number in range(5)] == ["app", "app", "site", "app", ""]
    view.set_grouping("folder")
    assert shown(view)[:4] == ["[No folder]", "Title 0", "Today 4", "Title 1"]
    assert [line for line in shown(view) if line.startswith("[")] == [
        "[No folder]",
        "[work/app]",
        "[home/app]",
        "[site]",
    ]
    assert index_of(view, "Today 0").data(DETAIL) == ""
    assert [index_of(view, f"Title {number}").data(HINT) for number in (0, 1, 2)] == ["09:30", "Thu", "Wed"]


async def test_the_heading_of_the_group_stays_at_the_top_while_it_scrolls(
    engine: EngineServer, view: ConversationListView
) -> None:
    for number in range(30):
        put(engine, msgspec.structs.replace(of_today(number), updated_at=NOW - timedelta(days=40, minutes=number)))
    await until(lambda: view.verticalScrollBar().maximum() > 0 and view.heading.text == "Today")
    view.scrollToBottom()
    assert view.heading.text == "October 2026" and view.heading.isVisible()
    view.scrollToTop()
    assert view.heading.text == "Today"


async def test_the_grouping_is_chosen_in_a_menu(view: ConversationListView) -> None:
    chosen: list[str] = []
    view.grouping_chosen.connect(chosen.append)
    view.group_button.click()
    (menu,) = view.findChildren(QMenu)
    assert [(entry.text(), entry.isChecked()) for entry in menu.actions()] == [
        ("Group by day", True),
        ("Group by folder", False),
    ]
    menu.actions()[1].trigger()
    menu.close()
    assert chosen == ["folder"] and shown(view)[0] == "[No folder]"


async def test_pinned_conversations_are_on_top_under_a_separate_heading(
    engine: EngineServer, view: ConversationListView
) -> None:
    assert shown(view)[:4] == ["[Today]", "Title 0", "[Yesterday]", "Title 1"]
    view.select("c4")
    press(view, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    await until(lambda: shown(view)[:4] == ["[Pinned]", "Title 4", "[Today]", "Title 0"])
    assert view.selected is not None and view.selected.id == "c4"
    put(engine, msgspec.structs.replace(dated(5, pinned=True), updated_at=NOW))
    await until(lambda: shown(view)[:4] == ["[Pinned]", "Title 5", "Title 4", "[Today]"])
    press(view, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    await until(lambda: "Title 4" in shown(view)[4:])


async def test_the_selected_conversation_stays_selected_while_others_are_added_and_moved(
    engine: EngineServer, view: ConversationListView
) -> None:
    view.select("c2")
    put(engine, msgspec.structs.replace(dated(5), updated_at=NOW + timedelta(seconds=1)))
    put(engine, msgspec.structs.replace(dated(9), updated_at=NOW + timedelta(seconds=2)))
    await until(lambda: shown(view)[:3] == ["[Today]", "Title 9", "Title 5"])
    assert view.selected is not None and view.selected.id == "c2"


async def test_a_title_is_edited_inline_while_the_list_moves(
    engine: EngineServer, stores: Stores, view: ConversationListView
) -> None:
    view.setFocus()
    view.select("c1")
    press(view, Qt.Key.Key_F2)
    (field,) = view.viewport().findChildren(QLineEdit)
    assert (field.text(), field.selectedText(), field.accessibleName()) == ("Title 1", "Title 1", "Title")
    QTest.keyClicks(field, "Better")
    put(engine, msgspec.structs.replace(dated(5), updated_at=NOW + timedelta(seconds=1)))
    await until(lambda: shown(view)[1] == "Title 5")
    assert field.text() == "Better"
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: "Better" in shown(view))
    renamed = stores.conversations.get("c1")
    assert renamed is not None and renamed.title == "Better"


@pytest.mark.parametrize("typed", ["", "   "])
async def test_an_empty_title_changes_nothing(view: ConversationListView, stores: Stores, typed: str) -> None:
    failures: list[str] = []
    stores.conversations.failed.connect(failures.append)
    view.select("c1")
    press(view, Qt.Key.Key_F2)
    (field,) = view.viewport().findChildren(QLineEdit)
    field.clear()
    QTest.keyClicks(field, typed)
    QTest.keyClick(field, Qt.Key.Key_Return)
    press(view, Qt.Key.Key_Delete)
    await until(lambda: "Title 1" not in shown(view))
    assert failures == []


async def test_shortcuts_and_the_context_menu_do_the_same(view: ConversationListView) -> None:
    opened: list[str] = []
    behind: list[str] = []
    view.opened.connect(opened.append)
    view.opened_in_background.connect(behind.append)
    view.select("c1")
    press(view, Qt.Key.Key_Return)
    press(view, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.mouseClick(
        view.viewport(),
        Qt.MouseButton.MiddleButton,
        pos=view.visualRect(view.model().index(2, 0)).center(),
    )
    assert (opened, behind) == (["c1"], ["c1", "c2"])
    view.select("c1")
    view.customContextMenuRequested.emit(view.visualRect(view.currentIndex()).center())
    (menu,) = view.findChildren(QMenu)
    texts = [action.text() for action in menu.actions()]
    memory = ["Leave out of memory", "Don't use memory here", "Memory of other folders…"]
    assert texts == ["Open", "Open in background", "Rename", "Pin", "Export…", *memory, "Archive"]
    menu.actions()[8].trigger()
    menu.close()
    await until(lambda: "Title 1" not in shown(view))


async def test_the_menu_switches_what_memory_does_with_a_conversation(
    view: ConversationListView, stores: Stores
) -> None:
    switched: list[Conversation] = []
    stores.conversations.memory_switched.connect(switched.append)

    def entry(text: str) -> ListAction | None:
        current = stores.conversations.get("c1")
        assert current is not None
        return next((action for action in view.actions_for(current) if action.text == text), None)

    async def choose(text: str) -> None:
        action, current = entry(text), stores.conversations.get("c1")
        assert action is not None and current is not None
        before = len(switched)
        action.run(current)
        await until(lambda: len(switched) > before and entry(text) is None)

    await choose("Leave out of memory")
    await choose("Don't use memory here")
    assert [(update.remembers, update.recalls) for update in switched] == [(False, True), (False, False)]
    await choose("Include in memory")
    await choose("Use memory here")
    current = stores.conversations.get("c1")
    assert current is not None and (current.remembers, current.recalls) == (True, True)


async def test_a_conversation_is_exported_by_keyboard_in_the_chosen_format(
    view: ConversationListView, stores: Stores, tmp_path: Path
) -> None:
    exported: list[str] = []
    stores.conversations.exported.connect(exported.append)
    for form, start in (("html", b"<!doctype html>"), ("md", b"# Title 0"), ("jsonl", b'{"errand_export":3')):
        view.select("c0")
        press(view, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
        (dialog,) = view.findChildren(ExportDialog)
        (name_filter,) = (name for name in dialog.nameFilters() if f"*.{form})" in name)
        dialog.selectNameFilter(name_filter)
        dialog.filterSelected.emit(name_filter)
        assert dialog.defaultSuffix() == form
        path = tmp_path / f"one.{form}"
        dialog.fileSelected.emit(str(path))
        dialog.reject()
        await until(lambda path=path: any(str(path) in text for text in exported))
        assert path.read_bytes().startswith(start)
        await until(lambda: not view.findChildren(ExportDialog))


def test_a_title_becomes_a_portable_file_name() -> None:
    assert file_name("../a/b: «ü»? CON.") == "a-b-ü-CON"
    assert file_name("???") == "conversation"
    assert len(file_name("word " * 100)) <= 60


@pytest.mark.parametrize(
    ("moment", "heading", "time"),
    [
        (NOW, "Today", "09:30"),
        (datetime(2026, 11, 19, 23, 30, tzinfo=UTC), "Today", "00:30"),
        (NOW + timedelta(hours=20), "Today", "05:30"),
        (NOW - timedelta(days=1), "Yesterday", "09:30"),
        (NOW - timedelta(days=3), "Tuesday", "09:30"),
        (NOW - timedelta(days=8), "November 2026", "12 Nov"),
        (NOW - timedelta(days=400), "October 2025", "16 Oct"),
    ],
)
def test_a_date_has_the_heading_of_its_day(moment: datetime, heading: str, time: str) -> None:
    assert (day_heading(moment, NOW), short_time(moment, NOW)) == (heading, time)


@pytest.mark.parametrize(
    ("snippet", "plain"),
    [
        ("## The **\u2068plan\u2069**\n\n- [x] do `it`\n> said", "The \u2068plan\u2069 do it said"),
        ("| a | \u2068b\u2069 |\n|---|---|\n| 1 | 2 |", "a \u2068b\u2069 1 2"),
        ("```python\nprint(__name__, a_b, 2 * 3)\n```", "print(__name__, a_b, 2 * 3)"),
        ("see [the _docs_](https://example.org/x) and *that*", "see the docs and that"),
    ],
)
def test_a_snippet_of_a_search_is_plain_text(snippet: str, plain: str) -> None:
    assert plain_snippet(snippet) == plain

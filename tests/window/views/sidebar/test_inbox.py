"""The inbox: asks, ended and running tasks, each in a section, operated by keyboard."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from errand.protocol.asks import Ask, AskAnswerParams, ReachedLimit
from errand.protocol.events import AskUpdate, ConversationUpdate, TaskUpdate
from errand.protocol.tasks.task import replace_fields
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import UnreadStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.sidebar.inbox import InboxView
from errand.window.views.sidebar.inbox_row import InboxRowView
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.pulse import PulseTimer
from tests.support.connections import cable_to
from tests.support.engine_server import EngineServer, engine_server
from tests.support.records import NOW, conversation, task
from tests.support.rows import APPROVAL, LIMIT, QUESTION
from tests.support.store_engine import stores_on
from tests.support.window import until


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        running.log.publish(ConversationUpdate(conversation=conversation()))
        yield running


@pytest.fixture
async def stores(engine: EngineServer) -> AsyncGenerator[Stores]:
    async with stores_on(engine.endpoint) as connected:
        yield connected


@pytest.fixture
def inbox(stores: Stores, theme: Theme, tmp_path: Path, qtbot: QtBot) -> InboxView:
    unread = UnreadStore(stores.tasks, WindowStateStore(tmp_path / "window.json"), lambda: "")
    inbox = InboxView(stores, unread, theme, PulseTimer(theme, theme))
    qtbot.addWidget(inbox)
    inbox.resize(280, 900)
    with qtbot.waitActive(inbox):
        inbox.show()
        inbox.activateWindow()
    return inbox


async def ask(engine: EngineServer, inbox: InboxView, *asks: Ask) -> None:
    """Raise these asks, in this order."""
    count = len(inbox.rows)
    for number, template in enumerate(asks):
        engine.log.publish(TaskUpdate(task=task(template.task_id)))
        raised = msgspec.structs.replace(template, conversation_id="c1", created_at=NOW + timedelta(seconds=number))
        engine.runner.asks[raised.id] = raised
        engine.log.publish(AskUpdate(ask=raised))
    await until(lambda: len(inbox.rows) > count)


def reach(row: InboxRowView) -> None:
    """Focus an entry, like Tab and the arrow keys."""
    row.setFocus(Qt.FocusReason.TabFocusReason)
    row.window().grab()


def texts(row: InboxRowView) -> str:
    assert row.detail is not None
    return "\n".join(label.text() for label in row.detail.findChildren(QLabel))


def asking(inbox: InboxView) -> list[str]:
    """The entries with an open ask."""
    return [row.text for row in inbox.rows if row.entry.asks]


def headings(inbox: InboxView) -> list[str]:
    labels = [label for label in inbox.findChildren(QLabel) if label.isVisible()]
    return [label.text() for label in labels if label.text().endswith(")")]


@pytest.mark.parametrize(("key", "allow"), [(Qt.Key.Key_A, True), (Qt.Key.Key_D, False)])
async def test_an_approval_is_answered_by_one_key_once_it_was_fully_shown(
    engine: EngineServer, inbox: InboxView, key: Qt.Key, allow: bool
) -> None:
    await ask(engine, inbox, APPROVAL)
    (row,) = inbox.rows
    QTest.keyClick(row, key)
    assert (row.detail is not None, engine.runner.answers) == (True, [])  # the first press only shows it
    assert "Medium risk" in texts(row) and "it runs a program" in texts(row)
    await until(lambda: row.detail is not None and row.detail.can_decide)
    QTest.keyClick(row, key)
    await until(lambda: asking(inbox) == [])
    assert [(answer.ask_id, answer.allow) for answer in engine.runner.answers] == [("ask_a", allow)]


async def test_control_enter_allows_the_focused_approval(engine: EngineServer, inbox: InboxView) -> None:
    await ask(engine, inbox, APPROVAL)
    reach(inbox.rows[0])
    await until(lambda: inbox.rows[0].detail is not None and inbox.rows[0].detail.can_decide)
    QTest.keyClick(inbox.rows[0], Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await until(lambda: asking(inbox) == [])


async def test_an_approval_too_long_for_the_inbox_is_opened_not_allowed(engine: EngineServer, inbox: InboxView) -> None:
    assert APPROVAL.approval is not None
    command = "\n".join(f"echo {number}" for number in range(40))
    long = msgspec.structs.replace(APPROVAL.approval, command=command)
    await ask(engine, inbox, msgspec.structs.replace(APPROVAL, approval=long))
    opened: list[str] = []
    inbox.opened.connect(opened.append)
    (row,) = inbox.rows
    reach(row)
    QTest.keyClick(row, Qt.Key.Key_A)
    assert row.detail is not None
    next(button for button in row.detail.findChildren(QPushButton) if button.text().startswith("Allow")).click()
    assert (opened, engine.runner.answers) == (["c1", "c1"], [])


async def test_equal_approvals_share_one_entry_and_one_answer(engine: EngineServer, inbox: InboxView) -> None:
    others = [msgspec.structs.replace(APPROVAL, id=f"ask_{number}", task_id=f"t{number}") for number in range(3)]
    await ask(engine, inbox, *others)
    await until(lambda: asking(inbox) == ["3 × Run a command: python -m pytest -q && rm -rf build"])
    row = inbox.rows[0]
    reach(row)
    await until(lambda: row.detail is not None and row.detail.can_decide)
    QTest.keyClick(row, Qt.Key.Key_A)
    await until(lambda: asking(inbox) == [])
    assert {answer.ask_id for answer in engine.runner.answers} == {"ask_0", "ask_1", "ask_2"}


async def test_at_a_limit_the_inbox_goes_on_with_a_number(engine: EngineServer, inbox: InboxView) -> None:
    limit = msgspec.structs.replace(LIMIT, limit=ReachedLimit(kind="money", used=0.5, limit=0.5, adds=0.5))
    await ask(engine, inbox, limit)
    (row,) = inbox.rows
    reach(row)
    assert row.detail is not None
    (field,) = row.detail.findChildren(QLineEdit)
    go_on = next(button for button in row.detail.findChildren(QPushButton) if button.text() == "Continue")
    assert (field.text(), field.accessibleName()) == ("0.50", "Amount: $ more")
    field.setText("nothing")
    assert not go_on.isEnabled()
    await until(lambda: row.detail is not None and row.detail.can_decide)
    QTest.keyClick(row, Qt.Key.Key_A)
    assert engine.runner.answers == []
    field.setText("2")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: asking(inbox) == [])
    assert engine.runner.answers == [AskAnswerParams(ask_id="ask_l", allow=True, amount=2.5)]


async def test_a_question_is_answered_in_the_inbox(engine: EngineServer, inbox: InboxView) -> None:
    await ask(engine, inbox, QUESTION, msgspec.structs.replace(QUESTION, id="ask_2", text="And why?", choices=()))
    first, second = (row for row in inbox.rows if row.entry.asks)
    reach(first)
    assert first.detail is not None
    next(button for button in first.detail.findChildren(QPushButton) if button.accessibleName() == "Blue").click()
    reach(second)
    assert second.detail is not None and first.detail is None  # one at a time
    field = second.detail.findChild(QLineEdit)
    assert isinstance(field, QLineEdit)
    QTest.keyClicks(field, "Add a doc ")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: asking(inbox) == [])
    assert {answer.text for answer in engine.runner.answers} == {"Blue", "Add a doc"}


async def test_the_arrow_keys_move_between_entries_and_enter_opens_one(engine: EngineServer, inbox: InboxView) -> None:
    await ask(engine, inbox, LIMIT, QUESTION)
    opened: list[str] = []
    inbox.opened.connect(opened.append)
    first, second = (row for row in inbox.rows if row.entry.asks)
    reach(first)
    QTest.keyClick(first, Qt.Key.Key_Down)
    assert (second.detail is not None, first.detail) == (True, None)
    QTest.keyClick(second, Qt.Key.Key_Return)
    QTest.keyClick(second, Qt.Key.Key_Up)
    assert (first.detail is not None, opened) == (True, ["c1"])


async def test_finished_tasks_have_a_section_and_are_dismissed_one_by_one_or_all(
    engine: EngineServer, inbox: InboxView, stores: Stores
) -> None:
    later = NOW + timedelta(days=10_000)
    for number in range(3):
        ended = task(f"t{number}", started_at=NOW + timedelta(seconds=number), ended_at=later)
        engine.log.publish(TaskUpdate(task=replace_fields(ended, summary=f"Summary {number}")))
    engine.log.publish(TaskUpdate(task=task("t9")))
    await until(lambda: headings(inbox) == ["Finished (3)", "Running (1)"])
    await ask(engine, inbox, QUESTION)
    await until(lambda: headings(inbox)[0] == "Waiting for you (1)")
    finished = next(row for row in inbox.rows if "Summary 1" in row.text)
    QTest.keyClick(finished, Qt.Key.Key_Delete)
    await until(lambda: headings(inbox)[1] == "Finished (2)")
    clear = next(button for button in inbox.findChildren(QPushButton) if button.text() == "Clear")
    clear.click()
    await until(lambda: not any(heading.startswith("Finished") for heading in headings(inbox)))


async def test_the_entry_of_a_finished_task_shows_its_summary_without_markup(
    engine: EngineServer, inbox: InboxView
) -> None:
    ended = task("t1", started_at=NOW, ended_at=NOW + timedelta(days=10_000))
    engine.log.publish(TaskUpdate(task=replace_fields(ended, summary="**All 3** tests of `shop` pass:\n\n- now")))
    await until(lambda: [row.entry.detail for row in inbox.rows] == ["All 3 tests of shop pass: now"])


async def test_more_than_six_entries_are_shown_on_demand(engine: EngineServer, inbox: InboxView) -> None:
    for number in range(9):
        engine.log.publish(TaskUpdate(task=task(f"t{number}", started_at=NOW + timedelta(seconds=number))))
    await until(lambda: headings(inbox) == ["Running (9)"])
    more = next(button for button in inbox.findChildren(QPushButton) if button.text() == "Show 3 more")
    assert len(inbox.rows) == 6
    more.click()
    assert (len(inbox.rows), more.text()) == (9, "Show fewer")


async def test_rows_are_touched_only_when_what_they_show_has_changed(
    engine: EngineServer, inbox: InboxView, stores: Stores
) -> None:
    engine.log.publish(TaskUpdate(task=task("t1")))
    await until(lambda: [row.entry.title for row in inbox.rows] == ["A title"])
    (row,) = inbox.rows
    entry = row.entry
    for count in range(1, 50):
        stores.tasks.put(task("t1", step_count=count))
    resized: list[bool] = []
    inbox.resized.connect(lambda: resized.append(True))
    await until(lambda: bool(resized))
    assert row.entry is entry


async def test_interrupted_tasks_have_a_section_and_are_resumed_together(
    engine: EngineServer, stores: Stores, inbox: InboxView
) -> None:
    resumed: list[str] = []
    inbox.resume_requested.connect(resumed.append)
    for task_id in ("t1", "t2"):
        engine.log.publish(TaskUpdate(task=replace_fields(task(task_id), status="interrupted", worked_s=4.0)))
    engine.log.publish(TaskUpdate(task=task("t3")))
    await until(lambda: len(inbox.rows) == 3)
    headings = [label.text() for label in inbox.findChildren(QLabel) if label.isVisible() and "(" in label.text()]
    assert headings == ["Interrupted (2)", "Running (1)"]
    next(button for button in inbox.findChildren(QPushButton) if button.text() == "Resume all").click()
    assert sorted(resumed) == ["t1", "t2"]
    assert [running_task.id for running_task in stores.tasks.running()] == ["t3"]


async def test_a_long_change_does_not_make_an_entry_wider_than_the_sidebar(
    engine: EngineServer, inbox: InboxView
) -> None:
    assert APPROVAL.approval is not None
    preview = "--- a\n+++ a\n@@ -0,0 +1,40 @@\n" + "".join(f"+line {number}\n" for number in range(40))
    long = msgspec.structs.replace(APPROVAL.approval, preview=preview)
    await ask(engine, inbox, msgspec.structs.replace(APPROVAL, approval=long))
    (row,) = inbox.rows
    reach(row)
    assert row.minimumSizeHint().width() < 220
    names = [button.text() for button in row.findChildren(QPushButton) if button.isVisible()]
    assert "Show all" in names or any(name.endswith("Show all") for name in names)


async def test_while_the_engine_is_lost_no_task_is_called_running(
    theme: Theme, engine: EngineServer, tmp_path: Path, qtbot: QtBot
) -> None:
    async with cable_to(engine.endpoint()) as cable, stores_on(cable.find) as stores:
        unread = UnreadStore(stores.tasks, WindowStateStore(tmp_path / "other.json"), lambda: "")
        inbox = InboxView(stores, unread, theme, PulseTimer(theme, theme))
        qtbot.addWidget(inbox)
        inbox.show()
        engine.log.publish(TaskUpdate(task=task("t1")))
        await until(lambda: headings(inbox) == ["Running (1)"])
        cable.pull()
        await until(lambda: headings(inbox) == ["Last seen running (1)"])
        await until(lambda: inbox.lines == ("A title: No connection to the engine",))
        assert not row_button(inbox.rows[0]).isEnabled()
        cable.pulled = False
        await until(lambda: headings(inbox) == ["Running (1)"])
        await until(lambda: row_button(inbox.rows[0]).isEnabled())


def row_button(row: InboxRowView) -> IconButton:
    return next(button for button in row.findChildren(IconButton) if button.accessibleName().startswith("Stop"))

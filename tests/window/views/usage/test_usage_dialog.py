"""The usage dialog on a real engine: its content, live updates, and keyboard access."""

from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from errand.engine.storage.records import conversations, tasks, turns
from errand.protocol.usage import Usage, UsageReportResult, UsageRow
from errand.window.stores.usage import UsageStore
from errand.window.theme.theme import Theme
from errand.window.views.usage.chart import axis_maximum, make_bars
from errand.window.views.usage.dialog import UsageDialog, to_csv
from tests.support.model_server import ModelServer, Reply
from tests.support.records import conversation, task
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import press, until

TODAY = date(2026, 11, 20)


def row(key: str, cost: float | None, tokens: int = 100, unpriced: int = 0) -> UsageRow:
    usage = Usage(input_tokens=tokens, output_tokens=10, cost_usd=cost)
    return UsageRow(by="day", key=key, title=key, usage=usage, turns=2, tasks=1, unpriced_turns=unpriced)


def report(*days: UsageRow, total: UsageRow) -> UsageReportResult:
    return UsageReportResult(total=total, days=days, models=(), conversations=())


def test_a_chart_has_a_bar_for_each_day_also_for_those_without_use() -> None:
    bars = make_bars(report(row("2026-11-18", 0.5), total=row("", 0.5)), 3, TODAY)
    assert (bars.title, [bar.label for bar in bars.bars]) == ("Money per day", ["18 Nov", "19 Nov", "20 Nov"])
    assert [bar.value for bar in bars.bars] == [0.5, 0.0, 0.0]
    assert bars.bars[0].description == "18 November 2026: $0.5000 · 110 tokens · 2 turns · 1 task"
    assert (bars.bars[1].description, axis_maximum(bars)) == ("19 November 2026: no usage", pytest.approx(0.6))


def test_without_costs_the_chart_shows_tokens_and_long_periods_are_grouped_by_month() -> None:
    days = [row("2026-01-31", 0.0, 1000), row("2026-02-01", 0.0, 2000), row("2026-02-28", None, 500, 2)]
    bars = make_bars(report(*days, total=row("", 0.0)), None, TODAY)
    assert bars.title == "Tokens per month"
    assert [(bar.label, bar.value) for bar in bars.bars[:3]] == [
        ("Jan 2026", 1010),
        ("Feb 2026", 2520),
        ("Mar 2026", 0),
    ]
    assert (len(bars.bars), axis_maximum(bars)) == (11, 4000)


def test_the_csv_copy_has_every_row_and_no_formula() -> None:
    usage_report = UsageReportResult(
        total=row("", 1.0),
        days=(row("2026-11-20", 1.0),),
        models=(row("m", None, 100, 2),),
        conversations=(row("=1+1", 0.5),),
    )
    assert to_csv(usage_report).splitlines()[1:] == [
        "day,2026-11-20,2026-11-20,1.0,100,0,0,10,2,1,0,0",
        "day,m,m,,100,0,0,10,2,1,2,0",
        "day,=1+1,'=1+1,0.5,100,0,0,10,2,1,0,0",
    ]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[StoreEngine]:
    async with store_engine(tmp_path, ModelServer(replies=[Reply(text="Done.")])) as running:
        yield running


def dialog_on(engine: StoreEngine, theme: Theme, qapp: QApplication, qtbot: QtBot) -> UsageDialog:
    dialog = UsageDialog(UsageStore(engine.stores.session, engine.stores.tasks), theme, qapp.clipboard())
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


async def store_turns(engine: StoreEngine) -> None:
    """Turns of today, and of two months ago without a price."""
    journal = engine.parts.services.database.journal
    now = datetime.now(UTC)
    journal.put(conversations.save(conversation()), *tasks.add(task()))
    for turn, model, at, cost in ((1, "openai/gpt-5.4", now, 0.25), (2, "mine/x", now - timedelta(days=60), None)):
        journal.put(
            turns.started("c1", "t1", turn, model, at),
            turns.finished("t1", turn, "complete", Usage(input_tokens=1000 * turn, output_tokens=5, cost_usd=cost), at),
        )
    await journal.flush()


def texts(dialog: UsageDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(QLabel) if label.isVisible()]


async def test_totals_chart_and_tables_cover_the_chosen_period(
    engine: StoreEngine, theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    await store_turns(engine)
    dialog = dialog_on(engine, theme, qapp, qtbot)
    await until(lambda: dialog.totals.texts == ("$0.2500", "1,000", "0", "5", "1", "1"))
    assert [table_row.key for table_row in dialog.table.rows] == ["openai/gpt-5.4"]
    assert dialog.chart.accessibleDescription().endswith("$0.2500 · 1,005 tokens · 1 turn · 1 task")
    assert not dialog.note.isVisible()
    QTest.keyClick(dialog.periods, Qt.Key.Key_Right)
    await until(lambda: dialog.totals.texts[1] == "3,000")
    assert "The price of 1 turn is unknown" in dialog.note.text() and dialog.note.isVisible()
    assert [table_row.key for table_row in dialog.table.rows] == ["openai/gpt-5.4", "mine/x"]
    dialog.table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert [table_row.key for table_row in dialog.table.rows] == ["mine/x", "openai/gpt-5.4"]


async def test_the_arrow_keys_move_between_bars_and_describe_each(
    engine: StoreEngine, theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    await store_turns(engine)
    dialog = dialog_on(engine, theme, qapp, qtbot)
    await until(lambda: "$0.2500" in dialog.chart.description)
    QTest.keyClick(dialog.chart, Qt.Key.Key_Left)
    assert dialog.chart.description.endswith("no usage") and dialog.chart.description in texts(dialog)
    QTest.keyClick(dialog.chart, Qt.Key.Key_End)
    QTest.mouseMove(dialog.chart, dialog.chart.rect().center())
    await until(lambda: dialog.chart.description.endswith("no usage"))
    QTest.keyClick(dialog.chart, Qt.Key.Key_Right)
    assert dialog.chart.accessibleDescription() == dialog.chart.description


async def test_the_dialog_says_that_nothing_was_used_and_updates_when_a_task_ends(
    engine: StoreEngine, theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    dialog = dialog_on(engine, theme, qapp, qtbot)
    await until(lambda: "No usage" in texts(dialog))
    assert not dialog.copy_button.isEnabled()
    done = await engine.parts.watcher.end((await engine.parts.start()).id)
    await until(lambda: dialog.totals.isVisible() and dialog.totals.texts[4:] == ("1", "1"))
    dialog.kinds.setCurrentIndex(1)
    opened: list[str] = []
    dialog.opened.connect(opened.append)
    dialog.table.selectRow(0)
    QTest.keyClick(dialog.table, Qt.Key.Key_Return)
    assert (opened, dialog.isVisible()) == ([done.conversation_id], False)


async def test_the_usage_is_copied_as_csv(engine: StoreEngine, theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    await store_turns(engine)
    dialog = dialog_on(engine, theme, qapp, qtbot)
    await until(dialog.copy_button.isEnabled)
    press(dialog, "Copy as CSV")
    assert "model,openai/gpt-5.4,openai/gpt-5.4,0.25,1000" in qapp.clipboard().text()


async def test_without_an_engine_the_usage_dialog_shows_an_error(
    engine: StoreEngine, theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    await engine.stores.session.close()
    dialog = dialog_on(engine, theme, qapp, qtbot)
    await until(lambda: dialog.banner.isVisible())


async def test_every_control_has_a_name_and_is_reached_by_tab(
    engine: StoreEngine, theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    await store_turns(engine)
    dialog = dialog_on(engine, theme, qapp, qtbot)
    await until(lambda: dialog.totals.isVisible())
    controls = (dialog.periods, dialog.copy_button, dialog.chart, dialog.kinds, dialog.table)
    assert all(control.accessibleName() for control in controls)
    assert all(control.focusPolicy() & Qt.FocusPolicy.TabFocus for control in controls)

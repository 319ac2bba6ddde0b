"""The context bar in the status line and its popover, on a real engine."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from errand.protocol.tasks.methods import TaskStartParams
from errand.window.stores.usage import ContextUsageStore
from errand.window.theme.theme import Theme
from errand.window.views.usage.context_bar import ContextBarView
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until

PRICED = "openai/gpt-5.4"


async def run(engine: StoreEngine, model: str) -> str:
    params = TaskStartParams(
        prompt="Look around", model=model, api_base=engine.parts.model.url, api_key="sk-test", approve="all"
    )
    started = await engine.parts.services.runner.start(params)
    return (await engine.parts.watcher.end(started.id)).id


async def bar_of(engine: StoreEngine, theme: Theme, qtbot: QtBot, task_id: str) -> ContextBarView:
    store = ContextUsageStore(engine.stores.session)
    bar = ContextBarView(store, theme)
    qtbot.addWidget(bar)
    assert bar.isHidden()
    store.show_task(None)
    store.show_task(await engine.parts.services.database.tasks.get(task_id))
    await until(bar.isVisible)
    return bar


def window_of(engine: StoreEngine) -> int:
    window = engine.parts.services.models.router.context_tokens(PRICED)
    assert window is not None
    return window


async def test_the_bar_shows_the_used_share_and_its_popover_opens_by_keyboard(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "echo hi"}),)), Reply(text="Done.", usage=(90_000, 5))]
    async with store_engine(tmp_path, ModelServer(replies=replies)) as engine:
        bar = await bar_of(engine, theme, qtbot, await run(engine, PRICED))
        window = window_of(engine)
        assert (bar.text(), bar.is_nearly_full) == (f"{90_000 / window:.0%}".replace("%", " %"), False)
        assert bar.accessibleName() == f"Context used by the last reply: 90,000 tokens of {window:,}. Show details"
        QTest.keyClick(bar, Qt.Key.Key_Return)
        assert bar.popover is not None and bar.popover.isVisible()
        labels = [label for label in bar.popover.findChildren(QLabel) if label.isVisible()]
        cut = [label.text() for label in labels if label.height() < label.heightForWidth(label.width())]
        assert cut == []
        texts = [label.text() for label in labels]
        assert texts[:2] == ["Context of turn 2", f"90,000 tokens of {window:,} that {PRICED} can read"]
        parts = ("Instructions", "Tools", "Working folder", "Messages", "Tool results")
        assert tuple(text for text in texts if text in parts) == parts
        assert "1 result" in texts and "2 messages" in texts
        below = texts[texts.index("Instructions") + 3 : texts.index("Tools")]
        assert below[::2] == ["Personality", "How agents work"]
        QTest.keyClick(bar.popover, Qt.Key.Key_Escape)
        assert not bar.popover.isVisible()


async def test_the_bar_turns_amber_when_the_window_is_nearly_full(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    server = ModelServer(answer=lambda request: Reply(text="Done.", usage=(used, 5)))
    used = 0
    async with store_engine(tmp_path, server) as engine:
        used = round(0.85 * window_of(engine))
        bar = await bar_of(engine, theme, qtbot, await run(engine, PRICED))
        assert (bar.text(), bar.is_nearly_full) == ("85 %", True)


async def test_without_a_known_window_size_the_bar_shows_only_the_count(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with store_engine(tmp_path, ModelServer(replies=[Reply(text="Done.", usage=(1234, 5))])) as engine:
        bar = await bar_of(engine, theme, qtbot, await run(engine, "openai_compatible/mine"))
        assert (bar.text(), bar.is_nearly_full) == ("1,234 tokens of context", False)


async def test_the_popover_summarises_older_messages_unless_a_task_runs(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with store_engine(tmp_path, ModelServer(replies=[Reply(text="Done.", usage=(1234, 5))])) as engine:
        bar = await bar_of(engine, theme, qtbot, await run(engine, "openai_compatible/mine"))
        bar.lock("The agent is at work.")
        bar.click()
        assert bar.popover is not None
        (button,) = (
            candidate for candidate in bar.popover.findChildren(QPushButton) if candidate.text() == "Summarise now"
        )
        assert (button.isEnabled(), button.toolTip()) == (False, "The agent is at work.")
        bar.lock("")
        with qtbot.waitSignal(bar.summarise_requested):
            QTest.keyClick(button, Qt.Key.Key_Space)
        assert not bar.popover.isVisible()

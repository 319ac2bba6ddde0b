"""The find bar: type, step, close."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from errand.protocol.blocks import TextBlock, ThinkingBlock
from errand.protocol.events import AgentUpdate, ConversationUpdate, TaskMessage
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.registry import row_text
from errand.window.rows.text_view import TextView
from errand.window.stores.conversation.find import FindStore
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from errand.window.views.conversation.find_bar import FindBarView
from tests.support.engine_server import engine_server
from tests.support.processes import until
from tests.support.records import agent, conversation, node
from tests.support.row_actions import KeptActions
from tests.support.store_engine import stores_on

FIELD = "Search this conversation"


class Searched:
    """A conversation of 40 messages with its find bar, in a window."""

    def __init__(self, page: QWidget, transcript: TranscriptView, bar: FindBarView, composer: QLineEdit) -> None:
        self.page = page
        self.transcript = transcript
        self.bar = bar
        self.composer = composer

    @property
    def field(self) -> QLineEdit:
        return next(field for field in self.bar.findChildren(QLineEdit) if field.accessibleName() == FIELD)

    def type(self, text: str) -> None:
        QTest.keyClicks(self.field, text)
        QTest.keyClick(self.field, Qt.Key.Key_Return)

    def marked(self) -> list[tuple[str, str]]:
        """The marked words in view, each with its kind."""
        views = [view for view in self.transcript.findChildren(TextView) if view.isVisible()]
        return [
            (view.cursor_between(mark.start, mark.end).selectedText(), mark.kind)
            for view in views
            for mark in view.highlights
        ]


@asynccontextmanager
async def searched(home: Path, theme: Theme, qtbot: QtBot) -> AsyncGenerator[Searched]:
    async with engine_server(home) as engine, stores_on(engine.endpoint) as stores:
        engine.log.publish(ConversationUpdate(conversation=conversation()))
        for number in range(40):
            message = node(
                f"n{number}", f"n{number - 1}" if number else None, text=f"Message {number}, a line to read."
            )
            if number == 3:
                message = node("n3", "n2", text="")
                thought = ThinkingBlock(text="I keep a secret, a second secret.")
                message = type(message)(
                    id="n3", conversation_id="c1", parent_id="n2", role="assistant", author="a1",
                    blocks=(thought, TextBlock(text="Nothing.")), status="complete", created_at=message.created_at,
                )  # fmt: skip
            engine.log.publish(TaskMessage(node=message))
        engine.log.publish(AgentUpdate(agent=agent(version=1, head_id="n39")))
        await engine.log.flush()
        store = stores.open("c1")
        await until(lambda: store.is_loaded)
        transcript = TranscriptView(store, theme, KeptActions())
        bar = FindBarView(FindStore(store, stores.session, row_text), transcript, theme)
        page, composer = QWidget(), QLineEdit()
        column = QVBoxLayout(page)
        for widget in (bar, transcript, composer):
            column.addWidget(widget)
        qtbot.addWidget(page)
        page.resize(700, 500)
        page.show()
        page.activateWindow()
        composer.setFocus()
        yield Searched(page, transcript, bar, composer)


def _count(bar: FindBarView) -> str:
    return bar.count.text()


async def test_every_visible_hit_is_highlighted_and_the_current_one_differently(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with searched(tmp_path, theme, qtbot) as search:
        search.bar.open()
        search.type("line")
        assert _count(search.bar).endswith("of 39")
        kinds = [kind for word, kind in search.marked() if word == "line"]
        assert len(kinds) > 3
        assert (kinds.count("hit_now"), set(kinds)) == (1, {"hit", "hit_now"})
        QTest.keyClick(search.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        before = _count(search.bar)
        QTest.keyClick(search.field, Qt.Key.Key_Return)
        assert _count(search.bar) != before


async def test_a_distant_hit_scrolls_into_view(tmp_path: Path, theme: Theme, qtbot: QtBot) -> None:
    async with searched(tmp_path, theme, qtbot) as search:
        search.bar.open()
        search.type("message 1,")
        assert _count(search.bar) == "1 of 1"
        assert 1 in search.transcript.shown
        assert ("Message 1,", "hit_now") in search.marked()


async def test_a_collapsed_card_counts_its_hits_and_expands_for_the_current_one(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with searched(tmp_path, theme, qtbot) as search:
        search.transcript.to_start()
        search.bar.open()
        search.type("secret")
        assert _count(search.bar) == "1 of 2"
        assert search.marked() == [("secret", "hit_now"), ("secret", "hit")]
        line = next(line for line in search.transcript.findChildren(DisclosureButton) if line.isVisible())
        line.click()
        search.transcript.lay_out()
        assert line.text().endswith("· 2 found")


async def test_closing_the_find_bar_clears_the_highlights_and_restores_the_focus(
    tmp_path: Path, theme: Theme, qtbot: QtBot, qapp: QApplication
) -> None:
    async with searched(tmp_path, theme, qtbot) as search:
        qtbot.waitUntil(search.page.isActiveWindow)
        search.bar.open()
        assert search.page.focusWidget() is search.field
        search.type("nowhere to be found")
        assert _count(search.bar) == "No results"
        search.field.selectAll()
        search.type("line")
        QTest.keyClick(search.field, Qt.Key.Key_Escape)
        assert (search.bar.isVisible(), search.marked()) == (False, [])
        assert search.page.focusWidget() is search.composer


async def test_words_highlighted_after_a_jump_are_cleared_by_the_next_click(
    tmp_path: Path, theme: Theme, qtbot: QtBot
) -> None:
    async with searched(tmp_path, theme, qtbot) as search:
        search.transcript.hits.highlight_words(["read", "message"])
        assert {word for word, _ in search.marked()} == {"Message", "read"}
        QTest.mouseClick(search.transcript.viewport(), Qt.MouseButton.LeftButton)
        assert search.marked() == []

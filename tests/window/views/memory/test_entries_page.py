"""The page of entries on a real engine: list, search, filters, the entry in full, pinning and forgetting."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLineEdit, QPlainTextEdit

from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Conversation, Node
from errand.protocol.events import ConversationUpdate, TaskMessage
from errand.protocol.memory import MemoryFilter
from errand.window.theme.theme import Theme
from errand.window.views.memory.dialog import MemoryDialog
from errand.window.views.memory.fact_form import FactTextEdit
from errand.window.views.shared.item_delegate import HINT
from tests.support.engine_parts import remembered
from tests.support.model_server import ModelServer, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until
from tests.window.views.memory.conftest import has, press, visible


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[StoreEngine]:
    async with store_engine(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as running:
        yield running


@pytest.fixture
async def dialog(engine: StoreEngine, theme: Theme) -> AsyncGenerator[MemoryDialog]:
    view = MemoryDialog(engine.stores, theme)
    yield view
    view.close()
    view.deleteLater()


async def say(engine: StoreEngine, *texts: str) -> str:
    """A conversation with these messages of a person, each answered by "Noted."; its id."""
    task = await engine.parts.start(texts[0], mode="chat")
    await engine.parts.watcher.end(task.id)
    for text in texts[1:]:
        again = await engine.parts.start(text, mode="chat", conversation_id=task.conversation_id)
        await engine.parts.watcher.end(again.id)
    await remembered(engine.parts)
    return task.conversation_id


async def store(engine: StoreEngine, *texts: str) -> None:
    """A conversation with these messages, one below the other."""
    now = datetime.now(UTC)
    log = engine.parts.services.log
    base = Conversation(id="conv_many", title="Many", workspace="/work/many", created_at=now, updated_at=now)
    log.publish(ConversationUpdate(conversation=base))
    for number, text in enumerate(texts):
        log.publish(TaskMessage(node=_node(number, text, now)))
    await engine.parts.services.database.journal.flush()
    await remembered(engine.parts)


def _node(number: int, text: str, now: datetime) -> Node:
    return Node(
        id=f"node_{number}",
        conversation_id="conv_many",
        parent_id=f"node_{number - 1}" if number else None,
        role="user",
        author="user",
        blocks=(TextBlock(text=text),),
        status="complete",
        created_at=now,
    )


async def opened(dialog: MemoryDialog, count: int) -> None:
    dialog.open_for("", "")
    await until(lambda: len(dialog.entries.list.lines) == count)


async def search(dialog: MemoryDialog, text: str) -> None:
    dialog.entries.search.setText(text)
    QTest.keyClick(dialog.entries.search, Qt.Key.Key_Return)


def whole_text(dialog: MemoryDialog) -> str:
    boxes = dialog.entries.entry.findChildren(QPlainTextEdit)
    return next(box.toPlainText() for box in boxes if box.accessibleName() == "Entry text")


def fact_field(dialog: MemoryDialog) -> FactTextEdit:
    return dialog.entries.findChildren(FactTextEdit)[0]


def scope(dialog: MemoryDialog, text: str) -> None:
    boxes = dialog.entries.findChildren(QComboBox)
    next(box for box in boxes if box.accessibleName() == "Where the fact applies").setCurrentText(text)


def choose(dialog: MemoryDialog, name: str, text: str) -> None:
    box = next(candidate for candidate in dialog.findChildren(QComboBox) if candidate.accessibleName() == name)
    box.setCurrentText(text)
    box.activated.emit(box.currentIndex())


async def test_an_empty_memory_says_what_it_is_for(dialog: MemoryDialog) -> None:
    dialog.open_for("", "")
    await until(lambda: has(dialog, "Memory is empty"))


async def test_entries_are_listed_newest_first_and_page_by_page(dialog: MemoryDialog, engine: StoreEngine) -> None:
    await store(engine, *(f"Entry number {number}" for number in range(250)))
    await opened(dialog, 100)
    assert dialog.entries.list.lines[0] == "Entry number 249"
    dialog.entries.list.scrollToBottom()
    await until(lambda: len(dialog.entries.list.lines) == 200)
    dialog.entries.list.scrollToBottom()
    await until(lambda: len(dialog.entries.list.lines) == 250)
    assert dialog.entries.list.lines[-1] == "Entry number 0"


async def test_a_search_shows_the_best_first_with_scores_and_says_when_only_words_count(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await say(engine, "The kettle leaks at the seam", "The kettle is new", "Roses bloom in June")
    await opened(dialog, 6)
    await search(dialog, "kettle that leaks")
    await until(lambda: dialog.entries.list.lines[:1] == ("The kettle leaks at the seam",))
    model = dialog.entries.list.model()
    spoken = str(model.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole))
    assert "The kettle leaks at the seam: You, " in spoken and " · " in spoken
    assert has(dialog, "Only words were searched")
    assert whole_text(dialog) == "The kettle leaks at the seam"
    await search(dialog, "zeppelin")
    await until(lambda: has(dialog, "No results"))
    await press(dialog, "Clear search and filters")
    await until(lambda: len(dialog.entries.list.lines) == 6)
    assert dialog.entries.search.hasFocus()


async def test_of_equal_texts_a_search_shows_the_newest_and_says_how_many_there_are(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await store(
        engine, *["There is nothing to commit."] * 3, "The kettle costs 12 € today.", "The kettle costs 14 € today."
    )
    await opened(dialog, 5)
    await search(dialog, "nothing to commit, what costs the kettle")
    await until(lambda: len(dialog.entries.list.lines) == 3)
    hints = {line: str(dialog.entries.list.model().index(row, 0).data(HINT)) for row, line in enumerate(lines(dialog))}
    assert "3 times" in hints["There is nothing to commit."]
    assert "older statement" in hints["The kettle costs 12 € today."]
    assert lines(dialog).index("The kettle costs 14 € today.") < lines(dialog).index("The kettle costs 12 € today.")
    dialog.entries.list.select(lines(dialog).index("There is nothing to commit."))
    await until(lambda: has(dialog, " · message · 3 times"))


def lines(dialog: MemoryDialog) -> tuple[str, ...]:
    return dialog.entries.list.lines


async def test_until_a_search_has_ended_the_entries_before_have_no_score(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await say(engine, "The kettle leaks")
    await opened(dialog, 2)
    await search(dialog, "kettle")
    first = dialog.entries.list.model().index(0, 0)
    assert first.data() == "Noted." and " · " not in str(first.data(HINT))
    await until(lambda: dialog.entries.list.lines[:1] == ("The kettle leaks",))
    assert " · " in str(dialog.entries.list.model().index(0, 0).data(HINT))


async def test_filters_narrow_the_list_by_kind_and_folder(dialog: MemoryDialog, engine: StoreEngine) -> None:
    await say(engine, "The kettle leaks")
    await store(engine, "Many things")
    await opened(dialog, 3)
    choose(dialog, "Type", "Answers")
    await until(lambda: dialog.entries.list.lines == ("Noted.",))
    choose(dialog, "Type", "All types")
    dialog.open_for("conv_many", "/work/many")
    choose(dialog, "Location", "This folder: /work/many")
    await until(lambda: dialog.entries.list.lines == ("Many things",))
    choose(dialog, "Time", "Last 24 hours")
    await until(lambda: dialog.entries.list.lines == ("Many things",))


async def test_the_place_can_be_the_conversation_in_front_and_stays_when_memory_is_opened_again(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    kettle = await say(engine, "The kettle leaks")
    await store(engine, "Many things")
    dialog.open_for(kettle, "")
    await until(lambda: len(dialog.entries.list.lines) == 3)
    choose(dialog, "Location", "This conversation")
    await until(lambda: dialog.entries.list.lines == ("Noted.", "The kettle leaks"))
    dialog.open_for(kettle, "")
    assert dialog.entries.filters.where == MemoryFilter(conversation_ids=(kettle,))
    dialog.open_for("conv_many", "")
    await until(lambda: len(dialog.entries.list.lines) == 3)


async def test_entries_that_come_while_another_is_read_are_added_by_a_click(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await say(engine, "The kettle leaks")
    await opened(dialog, 2)
    QTest.keyClick(dialog.entries.search, Qt.Key.Key_Down)
    QTest.keyClick(dialog.entries.list, Qt.Key.Key_Down)
    await until(lambda: whole_text(dialog) == "The kettle leaks")
    await say(engine, "The roof is dry")
    await until(lambda: "Show 2 new entries" in visible(dialog))
    assert (len(dialog.entries.list.lines), whole_text(dialog)) == (2, "The kettle leaks")
    await press(dialog, "Show 2 new entries")
    await until(lambda: len(dialog.entries.list.lines) == 4)
    assert dialog.entries.list.hasFocus() and not any("new" in name for name in visible(dialog))


async def test_entries_that_come_during_a_search_are_searched_by_a_click(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await say(engine, "The kettle leaks")
    await opened(dialog, 2)
    await search(dialog, "kettle")
    await until(lambda: dialog.entries.list.lines[:1] == ("The kettle leaks",))
    await say(engine, "The kettle is mended")
    await press(dialog, "Search again: 2 new entries")
    await until(lambda: "The kettle is mended" in dialog.entries.list.lines)


async def test_why_words_alone_were_searched_leads_to_the_state(dialog: MemoryDialog, engine: StoreEngine) -> None:
    await say(engine, "The kettle leaks")
    await opened(dialog, 2)
    assert "Show status" not in visible(dialog)
    await search(dialog, "kettle")
    await press(dialog, "Show status")
    assert dialog.state.isVisible()


async def test_a_long_entry_is_shown_whole_and_leads_to_its_source(dialog: MemoryDialog, engine: StoreEngine) -> None:
    text = "\n".join(f"Line {number} of a long message." for number in range(400))
    await store(engine, text)
    went: list[tuple[str, str]] = []

    def on_source_requested(conversation_id: str, node_id: str) -> None:
        went.append((conversation_id, node_id))

    dialog.source_requested.connect(on_source_requested)
    await opened(dialog, 1)
    await until(lambda: whole_text(dialog) == text)
    QTest.keyClick(dialog.entries.search, Qt.Key.Key_Down)
    assert dialog.entries.list.hasFocus()
    QTest.keyClick(dialog.entries.list, Qt.Key.Key_Return)
    assert went == [("conv_many", "node_0")]
    assert not dialog.isVisible()


async def test_an_entry_is_pinned_as_a_fact_that_knows_where_it_was_said(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await store(engine, "We water on Sundays.")
    await opened(dialog, 1)
    await press(dialog, "Pin as fact…")
    await press(dialog, "Pin fact")
    await until(lambda: has(dialog, "Pinned as a fact."))
    (fact,) = engine.stores.facts.pinned
    assert (fact.text, fact.scope, fact.conversation_id, fact.node_id) == (
        "We water on Sundays.",
        "always",
        "conv_many",
        "node_0",
    )


async def test_an_entry_that_is_corrected_becomes_a_fact_once_forgetting_its_message_is_confirmed(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await say(engine, "The safe is behind the mirror")
    await opened(dialog, 2)
    await search(dialog, "mirror")
    await until(lambda: dialog.entries.list.lines[:1] == ("The safe is behind the mirror",))
    await press(dialog, "Correct…")
    fact_field(dialog).setPlainText("The safe is below the stairs")
    await press(dialog, "Correct entry…")
    await until(lambda: has(dialog, "This permanently removes 1 text"))
    assert engine.stores.facts.pinned == ()
    await press(dialog, "Cancel")
    assert fact_field(dialog).isVisible() and fact_field(dialog).text == "The safe is below the stairs"
    await press(dialog, "Correct entry…")
    await press(dialog, "Forget permanently")
    await until(lambda: has(dialog, "Forgotten: 1 text"))
    (fact,) = engine.stores.facts.pinned
    assert (fact.text, fact.scope) == ("The safe is below the stairs", "folder")  # told nowhere else
    assert fact.folder == str(engine.parts.workspace)


async def test_entries_are_merged_into_one_fact_and_their_messages_are_forgotten(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await store(engine, "The safe is behind the mirror.", "Its key hangs in the hall.", "The kettle leaks.")
    await opened(dialog, 3)
    assert "Merge…" not in visible(dialog)  # one is selected
    dialog.entries.list.select(1)
    QTest.keyClick(dialog.entries.list, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    await until(lambda: has(dialog, "2 entries"))
    assert has(dialog, "Merged, they become one fact, and their messages are forgotten.")  # in whole, on its lines
    assert "Correct…" not in visible(dialog)
    await press(dialog, "Merge…")
    assert fact_field(dialog).text == "The safe is behind the mirror. Its key hangs in the hall."
    fact_field(dialog).setPlainText("x" * 501)
    assert has(dialog, "501 characters; a fact has at most 500.") and "Merge entries…" not in visible(dialog)
    fact_field(dialog).setPlainText("The safe is behind the mirror, its key in the hall.")
    scope(dialog, "Always")
    QTest.keyClick(fact_field(dialog), Qt.Key.Key_Return)
    await until(lambda: has(dialog, "This permanently removes 2 texts"))
    await press(dialog, "Forget permanently")
    await until(lambda: has(dialog, "Forgotten: 2 texts"))
    assert [fact.text for fact in engine.stores.facts.pinned] == ["The safe is behind the mirror, its key in the hall."]
    await until(lambda: dialog.entries.list.lines == ("The kettle leaks.",))
    await until(lambda: whole_text(dialog) == "The kettle leaks." and "Forget…" in visible(dialog))


async def test_entries_of_different_folders_are_merged_where_the_person_chooses(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await say(engine, "The safe is behind the mirror.")
    await store(engine, "Its key hangs in the hall.")
    await opened(dialog, 3)
    dialog.entries.list.selectAll()
    await press(dialog, "Merge…")
    assert has(dialog, "These apply in different folders.") and "Merge entries…" not in visible(dialog)
    scope(dialog, "In a folder")
    (folder,) = (
        line for line in dialog.entries.findChildren(QLineEdit) if line.accessibleName() == "Folder for the fact"
    )
    await until(lambda: folder.width() > fact_field(dialog).width() // 2)  # a path can be read in it
    scope(dialog, "About me")
    assert "Merge entries…" in visible(dialog)
    QTest.keyClick(fact_field(dialog), Qt.Key.Key_Escape)
    assert dialog.isVisible() and "Merge…" in visible(dialog)


async def test_a_search_that_ends_late_leaves_what_is_being_pinned_open(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await store(engine, "We water on Sundays.", "The roof is dry.")
    await opened(dialog, 2)
    for query, hits in (("Sundays", ("We water on Sundays.",)), ("zeppelin", ())):
        await press(dialog, "Pin as fact…")
        fact_field(dialog).setPlainText("The roof is dry, they say.")
        await search(dialog, query)
        await until(lambda hits=hits: dialog.entries.list.lines[:1] == hits)
        assert fact_field(dialog).isVisible() and whole_text(dialog) == "The roof is dry."
        QTest.keyClick(fact_field(dialog), Qt.Key.Key_Escape)
        await search(dialog, "")
        await until(lambda: len(dialog.entries.list.lines) == 2)


async def test_while_an_agent_works_there_a_correction_is_refused_and_kept(tmp_path: Path, theme: Theme) -> None:
    gate = asyncio.Event()
    replies = [Reply(text="Noted."), Reply(text="At work.", gate=gate)]
    async with store_engine(tmp_path, ModelServer(replies)) as engine:
        view = MemoryDialog(engine.stores, theme)
        conversation_id = await say(engine, "The key hangs in the hall.")
        await opened(view, 2)
        view.entries.list.select(1)
        await press(view, "Correct…")
        fact_field(view).setPlainText("It hangs in the cellar.")
        await press(view, "Correct entry…")
        await until(lambda: "Forget permanently" in visible(view))
        task = await engine.parts.start("What now?", mode="chat", conversation_id=conversation_id)
        await engine.parts.model.request(1)
        await press(view, "Forget permanently")
        await until(view.banner.isVisible)
        assert "an agent works in “The key hangs in the hall.”" in view.banner.accessibleName()
        assert fact_field(view).isVisible() and fact_field(view).text == "It hangs in the cellar."
        await until(lambda: engine.stores.facts.pinned == ())
        gate.set()
        await engine.parts.watcher.end(task.id)
        view.close()
        view.deleteLater()


async def test_forgetting_says_what_goes_and_then_what_went(dialog: MemoryDialog, engine: StoreEngine) -> None:
    await say(engine, "The safe is behind the mirror", "The kettle leaks")
    await opened(dialog, 4)
    await search(dialog, "mirror")
    await until(lambda: dialog.entries.list.lines[:1] == ("The safe is behind the mirror",))
    dialog.entries.list.setFocus()
    QTest.keyClick(dialog.entries.list, Qt.Key.Key_Delete)
    await until(lambda: has(dialog, "This permanently removes 1 text"))
    QTest.keyClick(_button(dialog, "Cancel"), Qt.Key.Key_Escape)
    assert dialog.isVisible() and "Forget…" in visible(dialog)
    await press(dialog, "Forget…")
    await press(dialog, "Forget permanently")
    await until(lambda: has(dialog, "Forgotten: 1 text, 1 memory entry"))
    assert "The safe is behind the mirror" not in dialog.entries.list.lines
    await search(dialog, "")
    await until(lambda: len(dialog.entries.list.lines) == 3)
    assert "The safe is behind the mirror" not in dialog.entries.list.lines


async def test_while_an_agent_works_there_forgetting_is_refused_in_words_and_offered_again(
    tmp_path: Path, theme: Theme
) -> None:
    gate = asyncio.Event()
    async with store_engine(tmp_path, ModelServer([Reply(text="At work.", gate=gate)])) as engine:
        view = MemoryDialog(engine.stores, theme)
        task = await engine.parts.start("The safe is behind the mirror", mode="chat")
        await engine.parts.model.request(0)
        await remembered(engine.parts)
        await opened(view, 1)
        await press(view, "Forget…")
        await until(view.banner.isVisible)
        assert "has not ended. Wait for it, or stop it" in view.banner.accessibleName()
        assert "Forget…" in visible(view) and whole_text(view) == "The safe is behind the mirror"
        gate.set()
        await engine.parts.watcher.end(task.id)
        view.close()
        view.deleteLater()


async def test_without_an_engine_the_page_says_so_and_keeps_what_was_typed(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await store(engine, "We water on Sundays.")
    await opened(dialog, 1)
    await engine.stores.session.close()
    await search(dialog, "water")
    await until(dialog.banner.isVisible)
    assert "Not connected" in dialog.banner.accessibleName()
    assert (dialog.entries.search.text(), dialog.entries.list.lines) == ("water", ("We water on Sundays.",))


async def test_what_was_typed_without_an_engine_is_searched_once_it_is_back(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await store(engine, "We water on Sundays.", "The roof is dry.")
    await opened(dialog, 2)
    engine.cable.pull()
    await until(lambda: engine.stores.session.state != "ready")
    await search(dialog, "water")
    await until(dialog.banner.isVisible)
    dialog.entries.list.setFocus()
    engine.cable.pulled = False
    await until(lambda: dialog.entries.list.lines[:1] == ("We water on Sundays.",))
    assert not dialog.banner.isVisible() and dialog.entries.list.hasFocus()


def _button(dialog: MemoryDialog, name: str) -> QAbstractButton:
    return visible(dialog)[name]

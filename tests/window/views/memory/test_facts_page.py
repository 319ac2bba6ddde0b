"""The page of facts on a real engine: adding, changing, accepting, declining, removing and putting back."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from errand.engine.memory.facts import FactDraft
from errand.protocol.memory import MEMORY_FACTS, MEMORY_PIN, Fact, MemoryFactsParams, MemoryPinParams
from errand.window.stores.stores import Stores
from errand.window.theme.theme import Theme
from errand.window.views.memory.fact_form import FactTextEdit
from errand.window.views.memory.facts_page import FactsPageView
from errand.window.views.sidebar.sidebar import FactBannerView
from tests.support.engine_server import EngineServer
from tests.support.window import until
from tests.window.views.memory.conftest import has, press, visible


@pytest.fixture
def notices() -> list[tuple[str, bool]]:
    return []


@pytest.fixture
async def page(stores: Stores, theme: Theme, qtbot: QtBot, notices: list[tuple[str, bool]]) -> FactsPageView:
    view = FactsPageView(theme, stores.facts)

    def on_said(text: str, can_undo: bool) -> None:
        notices.append((text, can_undo))

    view.notified.connect(on_said)
    qtbot.addWidget(view)
    view.resize(900, 600)
    view.show()
    view.open()
    await until(lambda: stores.facts.is_loaded)
    return view


def field(page: FactsPageView, name: str) -> QLineEdit:
    return next(candidate for candidate in page.findChildren(QLineEdit) if candidate.accessibleName() == name)


def fact_field(page: FactsPageView) -> FactTextEdit:
    return page.findChildren(FactTextEdit)[0]


async def add(page: FactsPageView, text: str) -> None:
    await press(page, "Add fact…")
    QTest.keyClicks(fact_field(page), text)
    QTest.keyClick(fact_field(page), Qt.Key.Key_Return)
    await until(lambda: has(page, text))


async def known(stores: Stores) -> list[tuple[str, str, str]]:
    facts = (await stores.session.call(MEMORY_FACTS, MemoryFactsParams())).facts
    return [(fact.text, fact.scope, fact.folder) for fact in facts]


async def test_an_empty_page_says_what_facts_are_for(page: FactsPageView) -> None:
    assert has(page, "No facts yet") and has(page, "Pin what agents should always know")


async def test_a_fact_is_added_by_keyboard_and_the_engine_has_it(
    page: FactsPageView, stores: Stores, notices: list[tuple[str, bool]]
) -> None:
    await add(page, "Use tabs.")
    await until(lambda: bool(notices))
    assert await known(stores) == [("Use tabs.", "always", "")]
    assert notices == [("Pinned. Applies to new tasks.", False)]
    assert not fact_field(page).isVisible() and not has(page, "No facts yet")


async def test_a_fact_of_a_folder_needs_the_folder_and_a_refusal_is_shown_in_the_form(
    page: FactsPageView, stores: Stores, tmp_path: Path
) -> None:
    await press(page, "Add fact…")
    fact_field(page).setPlainText("The build is slow.")
    box = next(combo_box for combo_box in page.findChildren(QComboBox))
    box.setCurrentText("In a folder")
    assert "Pin fact" not in visible(page)
    field(page, "Folder for the fact").setText("not/absolute")
    await press(page, "Pin fact")
    await until(lambda: "Pin fact" in visible(page))
    assert has(page, "absolute") and await known(stores) == []
    field(page, "Folder for the fact").setText(str(tmp_path))
    await press(page, "Pin fact")
    await until(lambda: has(page, f"In {tmp_path}"))
    assert await known(stores) == [("The build is slow.", "folder", str(tmp_path))]


async def test_a_removed_fact_is_put_back_by_undo(
    page: FactsPageView, stores: Stores, notices: list[tuple[str, bool]]
) -> None:
    await add(page, "Use tabs.")
    await press(page, "Remove: Use tabs.")
    await until(lambda: notices[-1:] == [("Removed. Applies to new tasks.", True)])
    assert await known(stores) == []
    await until(lambda: has(page, "No facts yet"))
    page.undo()
    await until(lambda: has(page, "Use tabs."))
    assert await known(stores) == [("Use tabs.", "always", "")]


async def test_a_changed_fact_is_as_before_after_undo(
    page: FactsPageView, stores: Stores, notices: list[tuple[str, bool]]
) -> None:
    await add(page, "Use tabs.")
    await press(page, "Edit: Use tabs.")
    assert fact_field(page).text == "Use tabs."
    fact_field(page).setPlainText("Use spaces.")
    await press(page, "Save fact")
    await until(lambda: notices[-1:] == [("Saved.", True)])
    assert await known(stores) == [("Use spaces.", "always", "")]
    page.undo()
    await until(lambda: has(page, "Use tabs."))
    assert await known(stores) == [("Use tabs.", "always", "")]


async def test_the_focus_returns_to_the_fact_that_was_changed_and_leaves_one_that_is_gone(
    page: FactsPageView, stores: Stores, notices: list[tuple[str, bool]]
) -> None:
    await add(page, "Use tabs.")
    await add(page, "Use ruff.")
    visible(page)["Edit: Use tabs."].setFocus()
    QTest.keyClick(visible(page)["Edit: Use tabs."], Qt.Key.Key_Return)
    QTest.keyClick(fact_field(page), Qt.Key.Key_Escape)
    assert page.focusWidget() is visible(page)["Edit: Use tabs."]
    QTest.keyClick(visible(page)["Edit: Use tabs."], Qt.Key.Key_Return)
    fact_field(page).setPlainText("Use spaces.")
    QTest.keyClick(fact_field(page), Qt.Key.Key_Return)
    await until(lambda: "Edit: Use spaces." in visible(page) and visible(page)["Edit: Use spaces."].hasFocus())
    remove = visible(page)["Remove: Use spaces."]
    remove.setFocus()
    QTest.keyClick(remove, Qt.Key.Key_Return)
    await until(lambda: visible(page)["Add fact…"].hasFocus())


async def test_facts_of_other_clients_appear_and_go(page: FactsPageView, stores: Stores) -> None:
    fact: Fact = (await stores.session.call(MEMORY_PIN, MemoryPinParams(text="From elsewhere."))).fact
    await until(lambda: has(page, "From elsewhere."))
    assert [pinned.id for pinned in stores.facts.pinned] == [fact.id]
    assert has(page, "Always · pinned by window on")


async def test_escape_closes_the_form_and_keeps_what_is_around_it(page: FactsPageView) -> None:
    await press(page, "Add fact…")
    QTest.keyClicks(fact_field(page), "half a")
    QTest.keyClick(fact_field(page), Qt.Key.Key_Escape)
    assert page.isVisible() and not fact_field(page).isVisible()
    await press(page, "Add fact…")
    assert fact_field(page).text == ""


async def test_markup_in_a_fact_is_shown_as_text(page: FactsPageView, stores: Stores) -> None:
    await stores.session.call(MEMORY_PIN, MemoryPinParams(text="Use <b>tabs</b>."))
    await until(lambda: has(page, "Use <b>tabs</b>."))


async def test_a_proposed_fact_is_accepted_or_declined(
    page: FactsPageView, engine: EngineServer, stores: Stores, notices: list[tuple[str, bool]]
) -> None:
    for text in ("Nadia is on leave.", "Ivo likes tea."):
        await engine.services.facts.propose(FactDraft(text, "me"), "Assistant")
    await until(lambda: has(page, "Ivo likes tea."))
    assert has(page, "Proposed by agents") and has(page, "About me · proposed by Assistant on")
    await press(page, "Accept: Nadia is on leave.")
    await until(lambda: bool(notices))
    await press(page, "Decline: Ivo likes tea.")
    await until(lambda: len(notices) == 2)
    assert notices == [("Accepted. Applies to new tasks.", False), ("Declined.", False)]
    assert [fact.text for fact in stores.facts.pinned] == ["Nadia is on leave."]
    assert await known(stores) == [("Nadia is on leave.", "me", "")]
    await until(lambda: not has(page, "Proposed by agents"))


async def test_a_proposed_fact_can_be_accepted_with_other_words(
    page: FactsPageView, engine: EngineServer, stores: Stores, notices: list[tuple[str, bool]]
) -> None:
    await engine.services.facts.propose(FactDraft("Nadia is away.", "me"), "Assistant")
    await press(page, "Edit: Nadia is away.")
    fact_field(page).setPlainText("Nadia is away until May.")
    await press(page, "Accept fact")
    await until(lambda: bool(notices))
    assert [(fact.text, fact.status) for fact in stores.facts.pinned] == [("Nadia is away until May.", "pinned")]
    assert stores.facts.proposed == ()


async def test_the_side_bar_says_that_a_fact_is_proposed_until_it_is_settled_or_dismissed(
    engine: EngineServer, stores: Stores, theme: Theme, qtbot: QtBot
) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    banner = FactBannerView(stores.facts, theme)
    QVBoxLayout(holder).addWidget(banner)
    holder.show()
    first, _ = await engine.services.facts.propose(FactDraft("Ivo likes tea.", "me"), "Assistant")
    await until(lambda: has(banner, "Proposed fact: “Ivo likes tea.”"))
    await engine.services.facts.propose(FactDraft("Nadia likes coffee.", "me"), "Assistant")
    await until(lambda: has(banner, "2 facts proposed by agents"))
    stores.facts.remove(first.id, lambda: None)
    await until(lambda: has(banner, "Proposed fact: “Nadia likes coffee.”"))
    await press(banner, "Dismiss")
    stores.facts.load()
    await until(lambda: banner.isHidden())
    await engine.services.facts.propose(FactDraft("Ivo has a dog.", "me"), "Assistant")
    await until(lambda: has(banner, "Proposed fact: “Ivo has a dog.”"))


async def test_facts_are_merged_into_one_and_the_merge_is_undone(
    page: FactsPageView, stores: Stores, notices: list[tuple[str, bool]]
) -> None:
    for text in ("Use tabs.", "Use ruff.", "Answer in German."):
        await add(page, text)
    visible(page)["Select: Use tabs."].click()
    assert not any(name.startswith("Merge") for name in visible(page))
    visible(page)["Select: Use ruff."].click()
    await press(page, "Merge 2 facts…")
    assert fact_field(page).text == "Use tabs. Use ruff."
    fact_field(page).setPlainText("Use tabs\nand ruff.")
    QTest.keyClick(fact_field(page), Qt.Key.Key_Return)
    await until(lambda: ("Merged. Applies to new tasks.", True) in notices)
    assert await known(stores) == [("Use tabs and ruff.", "always", ""), ("Answer in German.", "always", "")]
    await until(lambda: "Edit: Use tabs and ruff." in visible(page) and "Edit: Use ruff." not in visible(page))
    page.undo()
    await until(lambda: "Edit: Use tabs." in visible(page) and "Edit: Use ruff." in visible(page))
    assert sorted(text for text, *_ in await known(stores)) == ["Answer in German.", "Use ruff.", "Use tabs."]


async def test_a_merge_that_would_be_equal_to_another_fact_is_refused_and_kept(
    page: FactsPageView, stores: Stores
) -> None:
    for text in ("Use tabs.", "Use ruff.", "Answer in German."):
        await add(page, text)
    for text in ("Use tabs.", "Use ruff."):
        visible(page)[f"Select: {text}"].click()
    await press(page, "Merge 2 facts…")
    fact_field(page).setPlainText("Answer in German.")
    await press(page, "Merge facts")
    await until(lambda: has(page, "There is the same fact already."))
    assert len(await known(stores)) == 3
    QTest.keyClick(fact_field(page), Qt.Key.Key_Escape)
    assert "Merge 2 facts…" in visible(page)

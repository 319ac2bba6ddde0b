"""Behaviours 75 and 76: conversations are pinned, archived and found by title; asks are settled in the inbox."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from errand.window.views.shared.item_delegate import HEADING
from errand.window.views.sidebar.conversation_list import PagedListView
from tests.support.open_window import OpenWindow


def shown(view: PagedListView) -> list[str]:
    """Titles, and headings in brackets."""
    model = view.model()
    lines: list[str] = []
    for row in range(model.rowCount()):
        heading = model.index(row, 0).data(HEADING)
        lines += ([f"[{heading}]"] if heading else []) + [str(model.index(row, 0).data())]
    return lines


async def test_a_conversation_is_pinned_archived_found_by_title_and_restored(person: OpenWindow) -> None:
    await person.press("Play the tour")
    sidebar = person.window.sidebar
    await person.until(lambda: len(person.stores.asks.waiting()) == 2 and sidebar.list.model().rowCount() == 3)
    pinned = person.stores.conversations.at(2)
    sidebar.list.select(pinned.id)
    QTest.keyClick(sidebar.list, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    await person.until(lambda: shown(sidebar.list)[:3] == ["[Pinned]", pinned.title, "[Today]"])
    QTest.keyClick(sidebar.list, Qt.Key.Key_Delete)
    await person.until(lambda: pinned.title not in shown(sidebar.list) and sidebar.undo.isVisible())
    await person.press("Undo", sidebar.undo)
    await person.until(lambda: shown(sidebar.list)[:2] == ["[Pinned]", pinned.title])
    sidebar.list.select(pinned.id)
    QTest.keyClick(sidebar.list, Qt.Key.Key_Delete)
    await person.until(lambda: pinned.title not in shown(sidebar.list))
    await person.press("Dismiss", sidebar.undo)
    QTest.keyClick(person.window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier)
    await person.until(lambda: shown(sidebar.list)[:2] == ["[Pinned]", pinned.title])
    person.stores.conversations.rename(pinned.id, "An unlikely marmalade")
    await person.until(lambda: "An unlikely marmalade" in shown(sidebar.list))
    person.stores.conversations.archive(pinned.id)
    await person.until(lambda: sidebar.list.model().rowCount() == 2)
    QTest.keyClicks(sidebar.search, "marmal")
    QTest.keyClick(sidebar.search, Qt.Key.Key_Return)  # before any result: the first one that arrives is opened
    await person.until(lambda: person.front.store.title == "An unlikely marmalade")
    assert sidebar.results.lines == ("An unlikely marmalade",)
    assert sidebar.results.isVisible()
    assert any(row.entry.asks and row.isVisible() for row in sidebar.inbox.rows), "a search hides nothing that waits"
    person.window.commands.trigger("search")
    QTest.keyClick(sidebar.search, Qt.Key.Key_Escape)
    await person.press("Archived", sidebar)
    archived = sidebar.archive.list
    await person.until(lambda: shown(archived)[-1:] == ["An unlikely marmalade"])
    archived.select(pinned.id)
    QTest.keyClick(archived, Qt.Key.Key_Backspace, Qt.KeyboardModifier.ControlModifier)
    await person.until(lambda: shown(archived) == [])
    QTest.keyClick(sidebar.archive, Qt.Key.Key_Escape)
    assert shown(sidebar.list)[:2] == ["[Pinned]", "An unlikely marmalade"]


async def test_an_approval_and_a_question_are_answered_in_the_inbox_by_keyboard_alone(person: OpenWindow) -> None:
    await person.press("Play the tour")
    inbox = person.window.sidebar.inbox
    await person.until(lambda: sum(bool(row.entry.asks) for row in inbox.rows) == 2)
    person.window.activateWindow()
    for kind in ("approval", "question"):
        row = next(row for row in inbox.rows if row.entry.asks and row.entry.asks[0].kind == kind)
        row.setFocus(Qt.FocusReason.TabFocusReason)
        await person.until(lambda: row.detail is not None and row.detail.can_decide)  # noqa: B023 -- awaited at once
        assert row.detail is not None
        if kind == "approval":
            QTest.keyClick(row, Qt.Key.Key_A)
        else:
            field = row.detail.findChild(QLineEdit)
            assert isinstance(field, QLineEdit)
            QTest.keyClicks(field, "friendly")
            QTest.keyClick(field, Qt.Key.Key_Return)
        await person.until(lambda: kind not in {ask.kind for ask in person.stores.asks.waiting()})  # noqa: B023 -- awaited at once
    await person.until(lambda: not person.stores.tasks.running())

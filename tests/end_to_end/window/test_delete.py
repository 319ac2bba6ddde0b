"""Permanent deletion in the window with a real engine: confirmed, closes the tab, refused while a task runs."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from errand.window.views.sidebar.archive import DeleteDialog
from tests.support.open_window import OpenWindow


async def ask_to_delete(person: OpenWindow, conversation_id: str, rows: int) -> DeleteDialog:
    """Delete from the archive with the keyboard."""
    archived = person.window.sidebar.archive.list
    await person.until(lambda: archived.model().rowCount() == rows)
    archived.select(conversation_id)
    QTest.keyClick(archived, Qt.Key.Key_Delete)
    await person.until(lambda: bool(dialogs(person)))
    return dialogs(person)[0]


def dialogs(person: OpenWindow) -> list[DeleteDialog]:
    return [dialog for dialog in person.window.findChildren(DeleteDialog) if dialog.isVisible()]


def ended(person: OpenWindow) -> list[str]:
    """Conversations whose task has ended."""
    ids = [person.stores.conversations.at(row).id for row in range(3)]
    tasks = [person.stores.tasks.of_conversation(conversation_id) for conversation_id in ids]
    return [task.conversation_id for task in tasks if task is not None and task.outcome.ended_at is not None]


async def test_a_conversation_is_deleted_after_a_confirmation_but_not_during_a_task(person: OpenWindow) -> None:
    await person.press("Play the tour")
    store = person.stores.conversations
    await person.until(lambda: len(person.stores.asks.waiting()) == 2 and store.count() == 3)
    await person.until(lambda: len(ended(person)) == 1)
    (done,) = ended(person)
    busy = next(store.at(row).id for row in range(3) if store.at(row).id != done)
    failures: list[str] = []
    store.failed.connect(failures.append)
    store.archive(done)
    store.archive(busy)
    await person.press("Archived", person.window.sidebar)
    dialog = await ask_to_delete(person, busy, rows=2)
    await person.press("Delete permanently", dialog)
    await person.until(lambda: bool(failures))
    assert "works on a task of this conversation" in failures[0]
    dialog = await ask_to_delete(person, done, rows=2)
    await person.press("Cancel", dialog)
    dialog = await ask_to_delete(person, done, rows=2)
    await person.press("Delete permanently", dialog)
    await person.until(lambda: person.window.sidebar.archive.list.model().rowCount() == 1)

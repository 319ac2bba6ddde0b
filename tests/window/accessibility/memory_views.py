"""The pages of memory's window, with something on each."""

from PySide6.QtWidgets import QPushButton, QWidget

from errand.client.conversation.rows import UserRow
from errand.engine.memory.facts import FactDraft
from errand.text.translation import tr
from errand.window.views.memory.dialog import MemoryDialog, MemoryPage
from errand.window.views.memory.forget_dialog import ForgetDialog
from tests.support.engine_parts import remembered
from tests.support.window import press, until
from tests.window.accessibility.full_window import WindowFixture, top


async def facts(fixture: WindowFixture) -> QWidget:
    """A proposed and a pinned fact, and the open form."""
    store = fixture.engine.parts.services.facts
    await store.propose(FactDraft("Nadia is on leave.", "me", fixture.branched, "n1"), "Assistant")
    await store.pin(FactDraft("Ivo likes tea.", "always"), "fact_1", "window")
    dialog = _open(fixture, "facts")
    stored = fixture.engine.stores.facts
    await until(lambda: (len(stored.proposed), len(stored.pinned)) == (1, 1))
    press(dialog, tr("Add fact…"))
    return dialog


async def entries(fixture: WindowFixture) -> QWidget:
    """The entries, and the open form that pins one."""
    await remembered(fixture.engine.parts)
    dialog = _open(fixture, "entries")
    await until(lambda: bool(dialog.entries.list.lines))
    press(dialog.entries.entry, tr("Pin as fact…"))
    return dialog


async def forgetting(fixture: WindowFixture) -> QWidget:
    """The question before something is forgotten."""
    await remembered(fixture.engine.parts)
    dialog = _open(fixture, "entries")
    dialog.entries.search.setText("poem")
    dialog.entries.search.search_now()
    await until(lambda: any("poem" in line for line in dialog.entries.list.lines[:1]))
    dialog.entries.entry.ask_to_forget()
    await until(
        lambda: any(button.isVisible() and button.text() == tr("Cancel") for button in dialog.findChildren(QPushButton))
    )
    return dialog


async def forget_message(fixture: WindowFixture) -> QWidget:
    """The question about one message of a conversation."""
    view = await fixture.open(fixture.branched)
    row = view.store.row(0)
    assert isinstance(row, UserRow)
    fixture.window.dialogs.open_forget(row.node.id)
    dialog = top(ForgetDialog)
    await until(
        lambda: any(
            button.isVisible() and button.text() == tr("Forget permanently")
            for button in dialog.findChildren(QPushButton)
        )
    )
    return dialog


async def state(fixture: WindowFixture) -> QWidget:
    """The state, and a question."""
    dialog = _open(fixture, "state")
    await until(dialog.state.numbers.isVisible)
    press(dialog, tr("Rebuild index"))
    return dialog


def _open(fixture: WindowFixture, page: MemoryPage) -> MemoryDialog:
    fixture.window.dialogs.open_memory(None, page)
    dialog = top(MemoryDialog)
    assert isinstance(dialog, MemoryDialog)
    return dialog

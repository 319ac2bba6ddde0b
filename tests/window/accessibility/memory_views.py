"""The pages of memory's window, with something on each."""

from PySide6.QtWidgets import QPushButton, QWidget

from errand.client.conversation.rows import UserRow
from errand.engine.memory.facts import FactDraft
from errand.text.translation import tr
from errand.window.views.memory.dialog import MemoryDialog, MemoryPage
from errand.window.views.memory.forget_dialog import ForgetDialog
from tests.support.engine_parts import remembered
from tests.support.window import press, until
from tests.window.accessibility.full_window import Office, top


async def facts(office: Office) -> QWidget:
    """A proposed and a pinned fact, and the open form."""
    known = office.engine.parts.services.facts
    await known.propose(FactDraft("Nadia is on leave.", "me", office.told, "n1"), "Assistant")
    await known.pin(FactDraft("Ivo likes tea.", "always"), "fact_1", "window")
    dialog = _open(office, "facts")
    stored = office.engine.stores.facts
    await until(lambda: (len(stored.proposed), len(stored.pinned)) == (1, 1))
    press(dialog, tr("Add fact…"))
    return dialog


async def entries(office: Office) -> QWidget:
    """The entries, and the open form that pins one."""
    await remembered(office.engine.parts)
    dialog = _open(office, "entries")
    await until(lambda: bool(dialog.entries.list.lines))
    press(dialog.entries.entry, tr("Pin as fact…"))
    return dialog


async def forgetting(office: Office) -> QWidget:
    """The question before something is forgotten."""
    await remembered(office.engine.parts)
    dialog = _open(office, "entries")
    dialog.entries.search.setText("poem")
    dialog.entries.search.search_now()
    await until(lambda: any("poem" in line for line in dialog.entries.list.lines[:1]))
    dialog.entries.entry.ask_to_forget()
    await until(lambda: any(one.isVisible() and one.text() == tr("Cancel") for one in dialog.findChildren(QPushButton)))
    return dialog


async def forget_message(office: Office) -> QWidget:
    """The question about one message of a conversation."""
    view = await office.open(office.told)
    row = view.store.row(0)
    assert isinstance(row, UserRow)
    office.window.dialogs.open_forget(row.node.id)
    dialog = top(ForgetDialog)
    await until(
        lambda: any(
            one.isVisible() and one.text() == tr("Forget permanently") for one in dialog.findChildren(QPushButton)
        )
    )
    return dialog


async def state(office: Office) -> QWidget:
    """The state, and a question."""
    dialog = _open(office, "state")
    await until(dialog.state.numbers.isVisible)
    press(dialog, tr("Rebuild index"))
    return dialog


def _open(office: Office, page: MemoryPage) -> MemoryDialog:
    office.window.dialogs.open_memory(None, page)
    dialog = top(MemoryDialog)
    assert isinstance(dialog, MemoryDialog)
    return dialog

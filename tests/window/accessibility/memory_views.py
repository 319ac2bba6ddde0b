"""The pages of memory's window, with something on each."""

from PySide6.QtWidgets import QWidget

from app.engine.memory.facts import FactDraft
from app.window.views.memory.dialog import MemoryDialog
from tests.support.window import press, until
from tests.window.accessibility.full_window import Office, top


async def facts(office: Office) -> QWidget:
    """A proposed and a pinned fact, and the open form."""
    known = office.engine.parts.services.facts
    await known.propose(FactDraft("Nadia is on leave.", "me", office.told, "n1"), "Assistant")
    await known.pin(FactDraft("Ivo likes tea.", "always"), "fact_1", "window")
    office.window.commands.trigger("memory")
    dialog = top(MemoryDialog)
    assert isinstance(dialog, MemoryDialog)
    stored = office.engine.stores.facts
    await until(lambda: (len(stored.proposed), len(stored.pinned)) == (1, 1))
    press(dialog, "Add a fact …")
    return dialog

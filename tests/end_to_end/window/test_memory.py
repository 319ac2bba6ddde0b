"""Memory in the window with a real engine process: what was said is recalled, and leads back to its source."""

import pytest
from PySide6.QtWidgets import QApplication

from app.window.rows.disclosure import DisclosureButton
from app.window.rows.row import RecallRow, TaskEndRow
from app.window.views.memory.dialog import MemoryDialog
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window

_SAID = "The spare key of the boat house hangs behind the mirror in the hall"
_ASKED = "Where does the spare key of the boat house hang?"


async def _told(person: OpenWindow, text: str) -> str:
    """A finished conversation that begins with this message; its id."""
    person.window.commands.trigger("new_task")
    await person.begin(text)
    await person.until(lambda: any(isinstance(row, TaskEndRow) for row in person.rows))
    return person.window.conversations.active_id


async def test_what_was_said_before_is_recalled_with_a_message_and_leads_to_its_source(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(answer=lambda request: Reply(text="Noted.")) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            first = await _told(person, _SAID)
            person.window.commands.trigger("memory")
            dialog = next(one for one in qapp.topLevelWidgets() if isinstance(one, MemoryDialog) and one.isVisible())
            await person.until(lambda: _SAID in dialog.entries.list.lines)
            dialog.close()
            second = await _told(person, _ASKED)
            await person.until(lambda: any(isinstance(row, RecallRow) for row in person.rows))
            lines = person.front.transcript.findChildren(DisclosureButton)
            next(line for line in lines if line.text().startswith("Recalled")).click()
            (recalled,) = (row for row in person.rows if isinstance(row, RecallRow))
            entry = recalled.recall.entries[0]
            assert (entry.text, entry.conversation_id, second != first) == (_SAID, first, True)
            await person.press("Go to source", person.front.transcript)
            await person.until(lambda: person.window.conversations.active_id == first)

"""Memory in the window with a real engine process: what was said is recalled, and leads back to its source."""

import pytest
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu

from errand.client.conversation.rows import RecallRow, TaskEndRow, ToolCallRow
from errand.window.rows.disclosure import DisclosureButton
from errand.window.views.memory.dialog import MemoryDialog
from errand.window.views.memory.forget_dialog import ForgetDialog
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.open_window import OpenWindow, open_window

_SAID = "The spare key of the boat house hangs behind the mirror in the hall"
_ASKED = "Where does the spare key of the boat house hang?"


async def _told(person: OpenWindow, text: str) -> str:
    """A finished conversation that begins with this message; its id."""
    person.window.commands.trigger("new_task")
    await person.begin(text)
    await person.until(lambda: any(isinstance(row, TaskEndRow) for row in person.rows))
    return person.window.conversations.active_id


def _menu_of(line: DisclosureButton) -> dict[str, QAction]:
    """Open the context menu of a row with the keyboard and return its actions by text."""
    middle = line.rect().center()
    QApplication.sendEvent(line, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, middle, line.mapToGlobal(middle)))
    row_view = line.parentWidget()
    assert row_view is not None
    menus = [menu for menu in row_view.findChildren(QMenu) if menu.isVisible()]
    return {action.text(): action for menu in menus for action in menu.actions()}


async def test_a_tool_call_is_forgotten_from_its_row(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [Reply(calls=(Call("search_memory", {"query": "the spare key"}),)), Reply(text="Nowhere.")]
    async with ModelServer(replies=replies) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await _told(person, "look")
            (line,) = (
                button
                for button in person.front.transcript.findChildren(DisclosureButton)
                if "spare key" in button.text()
            )
            _menu_of(line)["Forget…"].trigger()
            for menu in person.front.transcript.findChildren(QMenu):
                menu.close()
            dialog = next(
                widget for widget in qapp.topLevelWidgets() if isinstance(widget, ForgetDialog) and widget.isVisible()
            )
            await person.press("Forget permanently", dialog)
            await person.press("Close", dialog)
            await person.until(lambda: "spare key" not in line.text())
            (call,) = (row for row in person.rows if isinstance(row, ToolCallRow))
            assert call.call.arguments == {} and call.result is not None and "forgotten" in call.result.marks
            assert "Forget…" not in _menu_of(line)


async def test_what_was_said_before_is_recalled_with_a_message_and_leads_to_its_source(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(answer=lambda request: Reply(text="Noted.")) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            first = await _told(person, _SAID)
            person.window.commands.trigger("memory")
            dialog = next(
                widget for widget in qapp.topLevelWidgets() if isinstance(widget, MemoryDialog) and widget.isVisible()
            )
            await person.until(lambda: _SAID in dialog.entries.list.lines)
            dialog.close()
            second = await _told(person, _ASKED)
            await person.until(lambda: bool(_recalled(person)))
            _recalled(person)[0].click()
            (recalled,) = (row for row in person.rows if isinstance(row, RecallRow))
            entry = recalled.recall.entries[0]
            assert (entry.text, entry.conversation_id, second != first) == (_SAID, first, True)
            await person.press("Go to source", person.front.transcript)
            await person.until(lambda: person.window.conversations.active_id == first)


def _recalled(person: OpenWindow) -> list[DisclosureButton]:
    lines = person.front.transcript.findChildren(DisclosureButton)
    return [line for line in lines if line.text().startswith("Recalled")]

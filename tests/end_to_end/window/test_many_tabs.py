"""Tabs that were not shown for long: without a view, and as before when they are shown again."""

from pathlib import Path

from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from errand.client.conversation.rows import ReplyRow
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, conversations, nodes
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.open_window import OpenWindow, open_window
from tests.support.records import agent, conversation, node

_TABS = 12


async def _fill(home: Path) -> None:
    """A message in each conversation."""
    paths = Paths(home)
    paths.prepare()
    database = await Database.open(sqlite_url(paths.database), paths.copies)
    for number in range(_TABS):
        name = f"conv_{number:02}"
        own = replace(agent(f"agent_{number}", head_id=f"node_{number}"), conversation_id=name)
        message = node(f"node_{number}", conversation_id=name, text=f"Said in {number}")
        database.journal.put(conversations.save(conversation(name)), nodes.save(message), agents.save_agent(own))
    await database.journal.flush()
    await database.close()


async def _show(person: OpenWindow, number: int) -> None:
    person.window.conversations.open(f"conv_{number:02}")
    await person.until(lambda: person.front.navigation.has_position and person.front.store.count() > 0)


async def test_tabs_shown_long_ago_have_no_view_unless_something_is_written_there(
    qapp: QApplication, own_errand: Errand
) -> None:
    await _fill(own_errand.home)
    async with open_window(qapp, own_errand.home) as person:
        await person.until(lambda: person.stores.session.state == "ready")
        await _show(person, 0)
        person.type("half a thought")
        for number in range(1, _TABS):
            await _show(person, number)
        pages = {page.conversation_id: page for page in person.window.tabs.pages.values()}
        loaded = [name for name, page in pages.items() if page.is_shown]
        assert loaded == ["conv_00", *(f"conv_{number:02}" for number in range(4, _TABS))]
        titles = [page.title for page in pages.values()]
        assert titles == ["A title"] * _TABS
        await _show(person, 1)
        assert [row.node.id for row in person.rows if isinstance(row, ReplyRow)] == ["node_1"]
        await _show(person, 0)
        assert person.front.composer.text == "half a thought"

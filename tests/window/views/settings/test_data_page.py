"""The data page on a real engine server."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QCheckBox

from errand.engine.storage.records import nodes
from errand.protocol.events import AgentUpdate, ConversationUpdate
from errand.window.views.settings.data.page import DataPageView
from tests.support.engine_server import EngineServer
from tests.support.records import agent, conversation, node
from tests.support.window import until
from tests.window.views.settings.conftest import Settings


async def fill(engine: EngineServer) -> None:
    """An open conversation and one that was archived long ago."""
    long_ago = datetime.now(UTC) - timedelta(days=400)
    old = msgspec.structs.replace(conversation("c2"), archived=True, updated_at=long_ago)
    for published in (conversation("c1"), old):
        engine.log.publish(ConversationUpdate(conversation=published))
        engine.database.journal.put(nodes.save(node(f"n-{published.id}", conversation_id=published.id)))
    await engine.log.flush()


def page_of(settings: Settings) -> DataPageView:
    (page,) = settings.dialog.findChildren(DataPageView)
    return page


async def test_the_parts_of_the_data_folder_are_shown_with_their_sizes(
    settings: Settings, engine: EngineServer
) -> None:
    await fill(engine)
    settings.dialog.open_page("data")
    await settings.see("2 conversations · 1 archived")
    for text in (str(engine.services.paths.home), "Records", "Long output", " free"):
        await settings.see(text)


@pytest.mark.parametrize("records_on", ["postgresql"], indirect=True)
async def test_records_on_a_server_are_shown_with_its_name(settings: Settings, engine: EngineServer) -> None:
    settings.dialog.open_page("data")
    await settings.see("free · records in database errand_")


async def test_everything_is_exported_and_imported_again(
    settings: Settings, engine: EngineServer, tmp_path: Path
) -> None:
    await fill(engine)
    settings.dialog.open_page("data")
    page_of(settings).export("json", str(tmp_path / "all.jsonl"))
    await settings.see(f"Exported 2 conversations, 2 messages to {tmp_path / 'all.jsonl'}")
    page_of(settings).import_file(str(tmp_path / "all.jsonl"))
    await settings.see("2 were here already and were not changed.")
    page_of(settings).import_file(str(tmp_path / "window.json"))
    await settings.see("cannot be read: No such file or directory. Nothing was imported.")
    await until(lambda: settings.buttons()["Import…"].isEnabled())
    page_of(settings).export("markdown", str(tmp_path / "pages"))
    await settings.see(f"to {tmp_path / 'pages'}")
    assert len(list((tmp_path / "pages").glob("*.md"))) == 2


async def test_old_conversations_are_counted_before_they_are_deleted(settings: Settings, engine: EngineServer) -> None:
    await fill(engine)
    settings.dialog.open_page("data")
    await settings.see("2 conversations")
    settings.buttons()["Count what would be deleted"].click()
    await settings.see("This deletes 1 conversation, 1 message")
    assert "Delete permanently" in settings.buttons()
    assert await engine.database.conversations.get("c2") is not None
    settings.buttons()["Cancel"].click()
    assert "Delete permanently" not in settings.buttons()
    settings.buttons()["Count what would be deleted"].click()
    await until(lambda: "Delete permanently" in settings.buttons())
    settings.buttons()["Delete permanently"].click()
    await settings.see("Deleted: 1 conversation, 1 message.")
    assert await engine.database.conversations.get("c2") is None
    settings.buttons()["Count what would be deleted"].click()
    await settings.see("No archived conversation is that old.")


async def test_conversations_without_an_agent_are_listed_with_sizes_before_deletion(
    settings: Settings, engine: EngineServer
) -> None:
    await fill(engine)
    engine.log.publish(AgentUpdate(agent=agent("a1")))
    await engine.log.flush()
    settings.dialog.open_page("data")
    await settings.see("2 conversations")
    settings.buttons()["List conversations without an agent"].click()
    await settings.see("1 conversation without an agent")
    await settings.see("A title · 1 message, ")
    settings.buttons()["Cancel"].click()
    assert await engine.database.conversations.get("c2") is not None
    settings.buttons()["List conversations without an agent"].click()
    await until(lambda: "Delete conversations without an agent permanently" in settings.buttons())
    settings.buttons()["Delete conversations without an agent permanently"].click()
    await settings.see("1 conversation deleted.")
    assert await engine.database.conversations.get("c2") is None
    assert await engine.database.conversations.get("c1") is not None
    settings.buttons()["List conversations without an agent"].click()
    await settings.see("Every conversation has an agent.")


_REAL = Path(__file__).parents[3] / "engine" / "data" / "importers" / "files" / "real"


async def _programs(settings: Settings) -> dict[str, QCheckBox]:
    """The boxes of the programs that were found, by name."""
    by_name: dict[str, QCheckBox] = {}

    def look() -> bool:
        boxes = [box for box in settings.dialog.findChildren(QCheckBox) if box.isVisible()]
        by_name.update({box.text().partition(" ·")[0]: box for box in boxes})
        return {"Codex", "pi"} <= by_name.keys()

    await until(look)
    return by_name


async def test_sessions_of_other_programs_are_found_and_taken_in_by_choice(
    settings: Settings, engine: EngineServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    settings.dialog.open_page("data")
    await until(lambda: "Find sessions from other apps" in settings.buttons())
    find = settings.buttons()["Find sessions from other apps"]
    find.click()
    await settings.see("No sessions from other apps found. Searched in:")
    shutil.copytree(_REAL / "codex", home / ".codex" / "sessions")
    shutil.copytree(_REAL / "pi", home / ".pi" / "agent" / "sessions")
    find.click()
    await settings.see(str(home / ".codex" / "sessions"))
    boxes = await _programs(settings)
    assert "5 sessions · 5 new" in boxes["Codex"].text()
    boxes["Codex"].click()
    settings.buttons()["Import"].click()
    await settings.see("2 conversations, ")
    assert len((await engine.database.conversations.page()).conversations) == 2
    await until(find.isEnabled)
    assert settings.dialog.focusWidget() is find
    find.click()
    boxes = await _programs(settings)
    assert "2 here already" in boxes["pi"].text() and not boxes["pi"].isEnabled()
    settings.buttons()["Cancel"].click()
    assert not any(box.isVisible() for box in boxes.values())

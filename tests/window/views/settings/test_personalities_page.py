"""The personalities page on a real engine server."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QPlainTextEdit

from errand.client import personality_file
from errand.client.personality_file import NotAPersonality
from errand.protocol.agents import Personality
from errand.protocol.events import PersonalityUpdate
from errand.window.views.settings.personalities_page import PersonalitiesPageView
from errand.window.views.settings.personality_editor import ColorComboBox, TemperatureComboBox
from tests.support.engine_server import EngineServer
from tests.support.window import until
from tests.window.views.settings.conftest import Settings

PIRATE = Personality(id="pirate", name="Pirate", system_prompt="Talk like one.", tools=("code",))


async def stored(engine: EngineServer, name: str) -> Personality | None:
    return next(
        (personality for personality in await engine.database.personalities.all() if personality.name == name), None
    )


async def open_page(settings: Settings) -> PersonalitiesPageView:
    settings.dialog.open_page("personalities")
    await settings.see("Assistant")
    (page,) = settings.dialog.findChildren(PersonalitiesPageView)
    return page


def prompt(settings: Settings) -> QPlainTextEdit:
    (field,) = (box for box in settings.dialog.findChildren(QPlainTextEdit) if box.isVisible())
    return field


async def test_a_personality_is_created_saved_and_deleted_after_a_confirmation(
    settings: Settings, engine: EngineServer
) -> None:
    await open_page(settings)
    settings.buttons()["New personality"].click()
    settings.type("Name", "Pirate")
    prompt(settings).setPlainText("Talk like one.")
    await until(lambda: "Tool: shell" in settings.buttons())
    settings.buttons()["Tool: shell"].click()
    settings.buttons()["Save"].click()
    await until(lambda: "Edit Pirate" in settings.buttons())
    personality = await stored(engine, "Pirate")
    assert personality is not None and (personality.system_prompt, "shell" in personality.tools) == (
        "Talk like one.",
        False,
    )
    settings.buttons()["Edit Pirate"].click()
    settings.buttons()["Delete…"].click()
    settings.buttons()["Cancel"].click()
    settings.buttons()["Delete…"].click()
    settings.buttons()["Delete"].click()
    await until(lambda: "Edit Assistant" in settings.buttons() and "Edit Pirate" not in settings.buttons())
    assert await stored(engine, "Pirate") is None


async def test_the_model_of_a_personality_is_picked_or_the_default(settings: Settings, engine: EngineServer) -> None:
    await open_page(settings)
    settings.buttons()["Edit Assistant"].click()
    await settings.press("Model: ")
    settings.type_in_picker("lab/small")
    await until(lambda: "Model: small" in settings.buttons())
    settings.buttons()["Save"].click()
    await until(lambda: "Edit Assistant" in settings.buttons())
    personality = await stored(engine, "Assistant")
    assert personality is not None and personality.model == "lab/small"
    settings.buttons()["Edit Assistant"].click()
    settings.buttons()["Use the default model"].click()
    assert "Use the default model" not in settings.buttons()
    settings.buttons()["Save"].click()
    await until(lambda: "Edit Assistant" in settings.buttons())
    personality = await stored(engine, "Assistant")
    assert personality is not None and personality.model == ""


async def test_unsaved_changes_are_discarded_only_after_a_confirmation(
    settings: Settings, engine: EngineServer
) -> None:
    await open_page(settings)
    settings.buttons()["Edit Assistant"].click()
    prompt(settings).setPlainText("Be brief.")
    settings.dialog.open_page("about")
    settings.dialog.open_page("personalities")
    assert prompt(settings).toPlainText() == "Be brief."
    settings.buttons()["Back"].click()
    await settings.see("Discard unsaved changes?")
    settings.buttons()["Keep editing"].click()
    assert prompt(settings).toPlainText() == "Be brief."
    settings.buttons()["Save"].click()
    await settings.see("built-in · edited")
    settings.buttons()["Edit Assistant"].click()
    assert "Delete…" not in settings.buttons()
    settings.buttons()["Restore original"].click()
    settings.buttons()["Save"].click()
    await until(lambda: "Edit Assistant" in settings.buttons())
    assistant = await engine.database.personalities.get("assistant")
    assert assistant is not None and assistant.system_prompt == ""


async def test_a_personality_refused_by_the_engine_stays_in_the_form_with_the_reason(settings: Settings) -> None:
    await open_page(settings)
    settings.buttons()["Duplicate Assistant"].click()
    assert settings.fields()["Name"].text() == "Assistant copy"
    settings.type("Name", "Assistant")
    settings.buttons()["Save"].click()
    await settings.see("There is a personality named 'Assistant' already.")
    assert settings.fields()["Name"].text() == "Assistant"


async def test_a_personality_saved_in_another_window_is_shown_at_once(settings: Settings, engine: EngineServer) -> None:
    await open_page(settings)
    engine.log.publish(PersonalityUpdate(personality=PIRATE))
    await until(lambda: "Edit Pirate" in settings.buttons())


async def test_an_imported_personality_is_stored_only_on_save(
    settings: Settings, engine: EngineServer, tmp_path: Path
) -> None:
    file = tmp_path / "pirate.json"
    personality_file.write(file, msgspec.structs.replace(PIRATE, tools=("code", "telepathy")), overwrite=False)
    page = await open_page(settings)
    page.import_file(str(file))
    assert settings.fields()["Name"].text() == "Pirate"
    assert await stored(engine, "Pirate") is None
    settings.buttons()["Save"].click()
    await until(lambda: "Edit Pirate" in settings.buttons())
    personality = await stored(engine, "Pirate")
    assert personality is not None and (personality.id != "pirate", personality.tools) == (True, ("code",))
    page.import_file(str(tmp_path / "none.json"))
    await settings.see("No such file or directory.")


async def test_an_imported_personality_with_only_unknown_tools_cannot_be_saved(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "seer.json"
    personality_file.write(file, msgspec.structs.replace(PIRATE, tools=("telepathy",)), overwrite=False)
    page = await open_page(settings)
    page.import_file(str(file))
    await settings.see("Unknown tools: telepathy.")
    assert "Save" not in settings.buttons()


def test_a_file_without_a_personality_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"id": 1}')
    with pytest.raises(NotAPersonality, match="isn't a personality"):
        personality_file.read(tmp_path / "bad.json")


async def test_colour_and_temperature_are_saved(settings: Settings, engine: EngineServer) -> None:
    page = await open_page(settings)
    settings.buttons()["Edit Assistant"].click()
    (color,) = page.findChildren(ColorComboBox)
    (warmth,) = page.findChildren(TemperatureComboBox)
    assert (color.currentText(), warmth.currentText()) == ("Blue", "Model default")
    color.choose("pink")
    warmth.choose(0.25)
    settings.buttons()["Save"].click()
    await settings.see("built-in · edited")
    assistant = await engine.database.personalities.get("assistant")
    assert assistant is not None and (assistant.color, assistant.temperature) == ("pink", 0.25)
    settings.buttons()["Edit Assistant"].click()
    assert (color.currentText(), warmth.currentText()) == ("Pink", "0.25")
    settings.buttons()["Restore original"].click()
    assert (color.currentText(), warmth.temperature) == ("Blue", None)


async def test_a_tool_is_given_whole_or_to_read_only(settings: Settings, engine: EngineServer) -> None:
    await open_page(settings)
    settings.buttons()["Edit Assistant"].click()
    await until(lambda: "Tool: code" in settings.buttons() and settings.buttons()["Tool: code"].isChecked())
    settings.buttons()["Tool: code (reads only)"].click()
    assert not settings.buttons()["Tool: code"].isChecked()
    settings.buttons()["Save"].click()
    await settings.see("built-in · edited")
    assistant = await engine.database.personalities.get("assistant")
    assert assistant is not None and {"code:read", "shell"} <= {*assistant.tools} and "code" not in assistant.tools
    settings.buttons()["Edit Assistant"].click()
    await until(lambda: "Tool: code" in settings.buttons())
    settings.buttons()["Tool: code"].click()
    assert not settings.buttons()["Tool: code (reads only)"].isChecked()
    settings.buttons()["Save"].click()
    await until(lambda: "Edit Assistant" in settings.buttons() and "built-in · edited" not in settings.texts())
    assistant = await engine.database.personalities.get("assistant")
    assert assistant is not None and assistant.tools == ()

"""The settings dialog on a real engine server."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QComboBox,
    QLineEdit,
    QListWidget,
    QPushButton,
    QRadioButton,
    QWidget,
)

from errand.protocol.asks import Grant, GrantedCall
from errand.protocol.events import GrantUpdate
from errand.window.theme.theme import Theme
from errand.window.views.settings.licences_dialog import LicencesDialog
from tests.support.engine_server import EngineServer
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import own_server
from tests.support.window import until
from tests.window.views.settings.conftest import Settings

GRANT = Grant(
    id="grant_1",
    tool="shell",
    exact="python -m pytest -q",
    scope="workspace",
    scope_id="/home/anna/project",
    created_at=datetime(2026, 11, 20, 9, 30, tzinfo=UTC),
    created_by="window",
    ask_id="ask_1",
)


async def test_an_api_key_is_stored_and_never_shown(settings: Settings, engine: EngineServer) -> None:
    async with own_server() as server:
        engine.services.keys.add_environment({"OPENAI_BASE_URL": server.url})
        settings.dialog.open_page("providers")
        await settings.see("No provider set up yet.")
        settings.buttons()["Add provider…"].click()
        settings.choose("Provider type", "OpenAI")
        settings.type("API key", "sk-a-secret")
        await until(lambda: "Remove OpenAI" in settings.buttons())
    assert "Saved." in settings.texts() and "sk-a-secret" not in settings.texts()
    assert "API key" not in settings.fields()
    settings.buttons()["Edit OpenAI"].click()
    assert set(settings.fields()) == {"API key"}, "there is one such provider: nothing else can change"
    settings.buttons()["Cancel"].click()
    settings.buttons()["Remove OpenAI"].click()
    await settings.see("Remove the API key of OpenAI?")
    settings.buttons()["Remove"].click()
    await settings.see("No provider set up yet.")


async def test_the_models_of_the_tour_are_no_provider_and_cannot_be_added(settings: Settings) -> None:
    settings.dialog.add_provider()
    boxes = settings.dialog.findChildren(QComboBox)
    await until(lambda: any(box.isVisible() and box.count() > 2 for box in boxes))
    kinds = [box.itemText(number) for box in boxes for number in range(box.count())]
    assert "OpenAI-compatible" in kinds and not [kind for kind in kinds if "scripted" in kind.lower()]
    assert "scripted" not in settings.texts().lower()


async def test_a_provider_is_tested_with_a_real_call_and_can_be_tested_again(
    settings: Settings, engine: EngineServer
) -> None:
    gate = asyncio.Event()
    replies = [Reply(status=401, error="no"), Reply(text="OK", gate=gate)]
    async with ModelServer(replies) as server:
        engine.services.keys.add_environment({"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url})
        settings.dialog.open_page("providers")
        await until(lambda: "Test OpenAI" in settings.buttons())
        assert "Test Mistral" not in settings.buttons()
        settings.buttons()["Test OpenAI"].click()
        await settings.see("OpenAI refused the key (401). It is the one in the variable OPENAI_API_KEY")
        settings.buttons()["Test OpenAI"].click()
        await settings.see("Testing one of its models…")
        settings.buttons()["Test OpenAI"].click()
        assert settings.buttons()["Test OpenAI"].text() == "Testing…"
        settings.dialog.close()
        settings.dialog.open_page("providers")
        gate.set()
        await settings.see("gpt-5.4 answered in")
        assert settings.buttons()["Test OpenAI"].text() == "Test"
        assert len(server.requests) == 2


async def test_the_model_list_of_a_provider_is_fetched_and_a_failure_is_shown_in_its_row(
    settings: Settings, engine: EngineServer
) -> None:
    async with ModelServer(models=("first-model", "second-model")) as server:
        engine.services.keys.add_environment({"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url})
        settings.dialog.open_page("providers")
        await until(lambda: "Refresh models" in settings.buttons())
        settings.buttons()["Refresh models"].click()
        await settings.see("2 models, listed on")
    await until(lambda: settings.buttons()["Refresh models"].isEnabled())
    settings.buttons()["Refresh models"].click()
    await settings.see("OpenAI could not be reached; the list from before is kept.")


async def test_a_grant_is_shown_in_full_and_can_be_revoked(settings: Settings, engine: EngineServer) -> None:
    engine.log.publish(GrantUpdate(grant=GRANT))
    await engine.log.flush()
    settings.dialog.open_page("permissions")
    await settings.see("python -m pytest -q")
    assert "In /home/anna/project · shell · given 20 Nov 2026" in settings.texts()
    assert "not used yet" in settings.texts()
    settings.buttons()["Revoke python -m pytest -q"].click()
    used = msgspec.structs.replace(GRANT, last_used_at=GRANT.created_at)
    engine.log.publish(GrantUpdate(grant=used))
    await settings.see("last used 20 Nov 2026")
    settings.buttons()["Confirm: revoke python -m pytest -q"].click()
    await settings.see("No saved permissions")


async def test_a_rule_that_denies_is_written_in_the_form_and_stored(settings: Settings, engine: EngineServer) -> None:
    settings.dialog.open_page("permissions")
    settings.buttons()["Add rule…"].click()
    assert not settings.buttons()["Add rule"].isEnabled()
    settings.type("Start of the command", "git push ...")
    await settings.see("Everywhere")
    (grant,) = engine.services.grants.all()
    assert (grant.decision, grant.call) == ("deny", GrantedCall(prefix=("git", "push")))
    assert (grant.scope, grant.scope_id) == ("user", "")
    assert "Add rule" not in settings.buttons()


async def test_a_rule_that_the_engine_refuses_says_why_and_keeps_what_was_typed(settings: Settings) -> None:
    settings.dialog.open_page("permissions")
    settings.buttons()["Add rule…"].click()
    settings.choose("Rule type", "Always run commands starting with")
    settings.type("Start of the command", "bash -c")
    await settings.see("so none was added")
    assert settings.fields()["Start of the command"].text() == "bash -c"
    settings.type("Start of the command", "git 'push")
    await settings.see("“git 'push” is not one command: a quotation mark is missing")
    settings.type("Start of the command", "make;rm x")
    await settings.see("not the beginning of one command")


async def test_a_rule_about_a_folder_is_written_in_the_form(
    settings: Settings, engine: EngineServer, tmp_path: Path
) -> None:
    settings.dialog.open_page("permissions")
    settings.buttons()["Add rule…"].click()
    settings.choose("Rule type", "Never read or change files in")
    settings.type("Folder", str(tmp_path))
    await until(lambda: bool(engine.services.grants.all()))
    (grant,) = engine.services.grants.all()
    assert (grant.decision, grant.call) == ("deny", GrantedCall(operation="read", folder=str(tmp_path)))


@pytest.mark.parametrize(
    ("kind", "field", "typed", "call"),
    [
        ("Always open pages of", "Host", "*.example.org", GrantedCall(host="*.example.org")),
        (
            "Never call the server tool",
            "Server tool",
            "github/*",
            GrantedCall(service="github/*"),
        ),
    ],
)
async def test_a_rule_about_a_host_or_a_tool_is_written_in_the_form_and_listed(
    settings: Settings, engine: EngineServer, kind: str, field: str, typed: str, call: GrantedCall
) -> None:
    settings.dialog.open_page("permissions")
    settings.buttons()["Add rule…"].click()
    settings.choose("Rule type", kind)
    settings.type(field, "*")
    await settings.see("so none was added")
    settings.type(field, typed)
    await settings.see("Everywhere · every tool")
    (grant,) = engine.services.grants.all()
    assert grant.call == call


async def test_code_is_denied_in_the_form_without_typing(settings: Settings, engine: EngineServer) -> None:
    settings.dialog.open_page("permissions")
    settings.buttons()["Add rule…"].click()
    settings.choose("Rule type", "Never run code")
    settings.buttons()["Add rule"].click()
    await settings.see("any code")
    assert [grant.call for grant in engine.services.grants.all()] == [GrantedCall(operation="code")]


async def test_a_rule_is_checked_against_recorded_calls_before_and_after_it_is_added(settings: Settings) -> None:
    settings.dialog.open_page("permissions")
    settings.buttons()["Add rule…"].click()
    QTest.keyClicks(settings.fields()["Start of the command"], "git push")
    settings.buttons()["Check the last 100 calls"].click()
    await settings.see("Would have decided 0 of the last 0 calls.")
    settings.buttons()["Add rule"].click()
    await until(lambda: any(name.startswith("Check recent calls:") for name in settings.buttons()))
    check = next(name for name in settings.buttons() if name.startswith("Check recent calls:"))
    settings.buttons()[check].click()
    await settings.see("Would have decided 0 of the last 0 calls.")


async def test_a_skill_is_shown_whole_before_it_is_installed_then_listed_switched_off_and_removed(
    settings: Settings, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "scripts").mkdir(parents=True)
    (source / "SKILL.md").write_text("---\nname: report\ndescription: Makes reports.\n---\nThe whole text.\n")
    (source / "scripts/make.py").write_text("print('made')\n")
    settings.dialog.open_page("skills")
    await settings.see("No skills")
    settings.buttons()["Install skill…"].click()
    settings.type("Folder or address", str(tmp_path / "nothing"))
    await settings.see("There is no folder")
    assert not any(name.startswith("Install report") for name in settings.buttons())
    settings.type("Folder or address", str(source))
    for text in ("The whole text.", "scripts/make.py  (script)", "print('made')", "Its scripts only run if"):
        await settings.see(text)
    settings.buttons()["Install report"].click()
    await settings.see(f"installed from {source}")
    file = tmp_path / "home/home/.config/errand/skills/report/SKILL.md"
    assert file.exists() and str(file) in settings.texts()

    settings.buttons()["Show report"].click()
    await settings.see("The whole text.")
    settings.buttons()["Use report"].click()
    await settings.see(" · off")
    settings.buttons()["Remove report"].click()
    settings.buttons()["Cancel: keep report"].click()
    settings.buttons()["Remove report"].click()
    settings.buttons()["Confirm: remove report"].click()
    await settings.see("No skills")
    assert not file.exists()


async def test_one_of_several_skills_is_chosen_and_a_taken_name_is_not_installed(
    settings: Settings, engine: EngineServer, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        folder = tmp_path / "source" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n---\n")
    settings.dialog.open_page("skills")
    settings.buttons()["Install skill…"].click()
    for _ in range(2):
        settings.type("Folder or address", str(tmp_path / "source"))
        boxes = settings.dialog.findChildren(QComboBox)
        choices = next(box for box in boxes if box.accessibleName() == "Skills")
        await until(choices.isVisible)
        choices.setCurrentIndex(2)
        choices.textActivated.emit("two")
        await settings.see("About two.")
        if "Install two" not in settings.buttons():
            break
        settings.buttons()["Install two"].click()
        await settings.see("Installed two.")
        settings.buttons()["Install skill…"].click()
    await settings.see("There is a skill two already")
    assert [skill.name for skill in (await engine.services.tools.skills.listing(None)).skills] == ["two"]


async def test_about_shows_the_data_folder(settings: Settings, tmp_path: Path) -> None:
    settings.dialog.open_page("about")
    await settings.see(str(tmp_path / "home"))


async def test_about_shows_the_licences_of_libraries(settings: Settings, theme: Theme) -> None:
    settings.dialog.open_page("about")
    settings.buttons()["Licences…"].click()
    dialog = settings.dialog.findChild(LicencesDialog)
    assert dialog is not None
    await until(lambda: dialog.list.count() > 50)
    dialog.search.setText("lgpl")
    dialog.search.searched.emit("lgpl")
    visible_items = [item for row in range(dialog.list.count()) if not (item := dialog.list.item(row)).isHidden()]
    assert [item.text().split()[0] for item in visible_items] == ["PySide6_Essentials", "shiboken6"]
    dialog.list.setCurrentItem(visible_items[0])
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in dialog.text.toPlainText()


async def test_the_appearance_changes_at_once(settings: Settings, theme: Theme) -> None:
    settings.dialog.open_page("appearance")
    dark = next(button for button in settings.dialog.findChildren(QRadioButton) if button.text() == "Dark")
    dark.click()
    assert theme.tokens.dark


async def test_every_control_of_every_page_has_a_name_and_is_reached_by_tab(settings: Settings) -> None:
    names = settings.dialog.findChildren(QListWidget)[0]
    await until(lambda: "Max turns" in settings.fields())
    for page in range(names.count()):
        names.setCurrentRow(page)
        await until(lambda: len(settings.texts()) > 0)
        controls: list[QWidget] = [*settings.fields().values(), *settings.buttons().values()]
        assert [control for control in controls if not control.accessibleName()] == []
        own = [control for control in controls if not isinstance(control.parent(), QLineEdit)]  # Esc clears a search
        unreached = [control for control in own if not control.focusPolicy() & Qt.FocusPolicy.TabFocus]
        assert unreached == []


async def test_the_pages_are_reached_by_keyboard_alone(settings: Settings) -> None:
    names = settings.dialog.findChildren(QListWidget)[0]
    QTest.keyClick(names, Qt.Key.Key_Down)
    await settings.see("Models and keys")
    await until(lambda: any(isinstance(button, QPushButton) for button in settings.buttons().values()))

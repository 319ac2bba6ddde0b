"""The page with skills, on a real engine server: removing one and putting it back."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel
from pytestqt.qtbot import QtBot

from errand.client.connection import Connection
from errand.protocol.agents import AGENT_CREATE, AgentCreateParams
from errand.protocol.base import Method, Wire
from errand.protocol.skills import SKILL_LIST, SkillInstallParams, SkillPreviewParams
from errand.window.stores.session import EngineSession
from errand.window.stores.stores import make_stores
from errand.window.theme.theme import Theme
from errand.window.views.settings.skills_page import SkillsPageView
from tests.support.engine_server import EngineServer, engine_server
from tests.support.window import until

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        yield running


@pytest.fixture
async def page(engine: EngineServer, theme: Theme, qtbot: QtBot) -> AsyncGenerator[SkillsPageView]:
    async def connect() -> Connection:
        connection = Connection(engine.endpoint, "window")
        await connection.open()
        return connection

    stores = make_stores(connect)
    await stores.session.start()
    view = SkillsPageView(theme, stores.session)
    qtbot.addWidget(view)
    view.resize(700, 700)
    view.show()
    yield view
    await stores.session.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: report\ndescription: Makes reports.\n---\nWrite it.\n")
    return folder


def visible(page: SkillsPageView) -> dict[str, QAbstractButton]:
    buttons = [button for button in page.findChildren(QAbstractButton) if button.isVisible()]
    return {button.accessibleName() or button.text(): button for button in buttons}


async def press(page: SkillsPageView, name: str) -> None:
    await until(lambda: name in visible(page))
    visible(page)[name].click()


def has(page: SkillsPageView, text: str) -> bool:
    return any(text in label.text() for label in page.findChildren(QLabel) if label.isVisible())


async def test_removed_skill_is_put_back_by_undo(page: SkillsPageView, engine: EngineServer, source: Path) -> None:
    skills = engine.services.tools.skills
    preview = (await skills.preview(SkillPreviewParams(source=str(source)))).preview
    assert preview is not None
    file = (await skills.install(SkillInstallParams(source=preview.source, fingerprint=preview.fingerprint))).file
    page.load()
    await press(page, "Remove report")
    await press(page, "Confirm: remove report")
    await until(lambda: has(page, "Removed report.") and "Remove report" not in visible(page))
    assert (await skills.listing(None)).skills == ()
    await press(page, "Undo")
    await until(lambda: has(page, "Restored report.") and "Remove report" in visible(page))
    assert [skill.file for skill in (await skills.listing(None)).skills] == [file] and "Undo" not in visible(page)


async def test_skills_of_a_folder_are_trusted_and_not_trusted_as_a_whole(
    page: SkillsPageView, engine: EngineServer, source: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "shop"
    shutil.copytree(source, workspace / ".agents/skills/report")
    client = Connection(engine.endpoint, "test")
    await client.open()
    await client.call(AGENT_CREATE, AgentCreateParams(workspace=str(workspace)))
    await client.close()
    page.load()
    choice = next(box for box in page.findChildren(QComboBox) if "folder" in box.accessibleName())
    await until(lambda: choice.count() == 2)
    assert "Trust these skills…" not in visible(page)
    QTest.keyClick(choice, Qt.Key.Key_Down)
    await until(lambda: has(page, "nobody has trusted the skills"))
    await press(page, "Trust these skills…")
    await press(page, "Confirm trust in the skills of this folder")
    await until(lambda: has(page, "report") and not has(page, "nobody has trusted the skills"))
    await press(page, "Don't trust these skills")
    await until(lambda: has(page, "nobody has trusted the skills"))
    assert (await engine.services.tools.skills.listing(str(workspace))).trust == "declined"


class HeldCalls:
    """Calls of a session, of which the answer to the first list of skills comes when `gate` is set."""

    def __init__(self, session: EngineSession) -> None:
        self.spawn = session.spawn
        self.gate, self.held = asyncio.Event(), asyncio.Event()
        self.answered = asyncio.Event()
        self._session = session

    async def call(self, method: Method[P, R], params: P) -> R:
        result = await self._session.call(method, params)
        if method.name == SKILL_LIST.name and not self.held.is_set():
            self.held.set()
            await self.gate.wait()
            self.answered.set()
        return result


async def test_a_list_that_is_answered_late_does_not_replace_a_newer_one(
    engine: EngineServer, theme: Theme, qtbot: QtBot, source: Path
) -> None:
    async def connect() -> Connection:
        connection = Connection(engine.endpoint, "window")
        await connection.open()
        return connection

    stores = make_stores(connect)
    await stores.session.start()
    calls = HeldCalls(stores.session)
    page = SkillsPageView(theme, calls)
    qtbot.addWidget(page)
    page.show()
    page.load()
    await calls.held.wait()
    skills = engine.services.tools.skills
    preview = (await skills.preview(SkillPreviewParams(source=str(source)))).preview
    assert preview is not None
    await skills.install(SkillInstallParams(source=preview.source, fingerprint=preview.fingerprint))
    page.load()
    await until(lambda: "Remove report" in visible(page))
    calls.gate.set()
    await calls.answered.wait()
    await asyncio.sleep(0)  # the page has the answer
    assert "Remove report" in visible(page)
    await stores.session.close()

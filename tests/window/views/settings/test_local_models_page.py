"""The page of models on this machine: download, progress, cancel, failure and removal, with a real engine and hub."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QProgressBar

from errand.engine.local_models import local_models as engine_models
from tests.support.engine_server import EngineServer, engine_server
from tests.support.local_models import Hub, catalogue_model, gguf, hub, stand_in_program
from tests.support.window import until
from tests.window.views.settings.conftest import Settings

DATA = gguf(padding=b"x" * 12_000_000)


@pytest.fixture
async def server() -> AsyncGenerator[Hub]:
    async with hub({"tiny.gguf": DATA}) as running:
        yield running


@pytest.fixture
async def engine(tmp_path: Path, server: Hub, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[EngineServer]:
    """An engine whose catalogue has one small model."""
    monkeypatch.setattr(engine_models, "CATALOGUE", (catalogue_model("tiny", DATA),))
    async with engine_server(tmp_path / "home") as running:
        running.services.settings.set("model_hub", server.url)
        running.services.settings.set("llama_server", str(stand_in_program(tmp_path / "bin")))
        yield running


async def test_a_model_is_downloaded_and_offered_and_removed(settings: Settings, server: Hub) -> None:
    settings.dialog.open_page("local_models")
    await settings.see("Recommended for this machine")
    assert "12 MB · MIT · needs" in settings.texts()
    await until(lambda: getattr(QApplication.focusWidget(), "accessibleName", str)() == "Download TINY")
    server.gate = asyncio.Event()
    await settings.press("Download TINY")
    await settings.see(" of 12 MB")
    bars = [bar for bar in settings.dialog.findChildren(QProgressBar) if bar.isVisible()]
    assert [bar.accessibleName() for bar in bars] == ["Download of TINY"]
    server.gate.set()
    await settings.see("installed")
    await settings.press("Remove TINY")
    await settings.see("Remove TINY? That frees 12 MB.")
    settings.buttons()["Remove"].click()
    await until(lambda: "Download TINY" in settings.buttons())
    assert "installed" not in settings.texts()


async def test_a_cancelled_download_can_be_continued(settings: Settings, server: Hub) -> None:
    settings.dialog.open_page("local_models")
    server.gate = asyncio.Event()
    await settings.press("Download TINY")
    await until(lambda: any(bar.value() for bar in settings.dialog.findChildren(QProgressBar)))
    await settings.press("Cancel the download of TINY")
    await settings.see("are there")
    assert settings.buttons()["Download TINY"].text() == "Continue"


async def test_a_failure_says_what_to_do(settings: Settings, server: Hub) -> None:
    settings.dialog.open_page("local_models")
    server.refuses = 404
    await settings.press("Download TINY")
    await settings.see("does not have tiny.gguf")
    assert "model_hub" in settings.texts()
    assert settings.buttons()["Download TINY"].text() == "Try again"


async def test_the_page_of_providers_leads_there(settings: Settings) -> None:
    settings.dialog.open_page("providers")
    await settings.press("Run a model on this machine")
    await settings.see("Nothing that you write leaves this computer")

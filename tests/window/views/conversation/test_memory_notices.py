"""The notice that offers the embedding model and shows its download, on a real engine and a hub on this machine."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from aiohttp import web
from PySide6.QtWidgets import QAbstractButton, QApplication

from errand.engine.memory.model_download import FILES, hub_source
from errand.protocol.events import EmbeddingModelUpdate
from errand.protocol.memory import EmbeddingModel
from errand.window.theme.theme import Theme
from tests.support.model_server import Reply
from tests.support.web_site import web_site
from tests.support.window import ViewFixture, press, until, view_fixture

_OFFER = "Search by meaning needs a 91 MB download from "


@pytest.fixture
def answers() -> asyncio.Event:
    """Set when the hub answers, that it does not have the model."""
    return asyncio.Event()


@pytest.fixture
async def fixture(
    qapp: QApplication, theme: Theme, tmp_path: Path, answers: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[ViewFixture]:
    async def refuse(request: web.Request) -> web.StreamResponse:
        await answers.wait()
        return web.Response(status=404)

    package = tmp_path / "packages" / "fastembed"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # nothing comes from elsewhere
    async with (
        web_site({f"{hub_source('').url}/config.json": refuse}) as site,
        view_fixture(qapp, theme, tmp_path, [Reply(text="Done.")]) as fixture,
    ):
        fixture.engine.parts.services.settings.set("model_hub", site.url(""))
        await until(lambda: fixture.view.store.is_loaded)
        yield fixture


async def offered(fixture: ViewFixture) -> None:
    """The task ends, and another's recall had to do without the model."""
    fixture.engine.parts.services.memory.download.miss()
    fixture.gate.set()
    await until(lambda: fixture.view.notices.shown == "memory")


async def test_it_is_offered_when_the_task_has_ended_and_not_over_its_status(fixture: ViewFixture) -> None:
    fixture.engine.parts.services.memory.download.miss()
    await until(lambda: fixture.engine.stores.embedding_model.model is not None)
    assert fixture.view.notices.shown is None
    fixture.gate.set()
    await until(lambda: fixture.view.notices.shown == "memory")
    assert fixture.view.notices.text.startswith(_OFFER)


async def test_not_now_is_remembered(fixture: ViewFixture) -> None:
    await offered(fixture)
    press(fixture.view.notices, "Not now")
    await until(lambda: fixture.view.notices.shown is None)
    services = fixture.engine.parts.services
    assert not services.settings.values.offer_embedding_model
    services.memory.download.miss()
    await services.log.flush()
    assert fixture.view.notices.shown is None


async def test_with_the_simple_model_the_offer_and_the_end_speak_of_a_better_one(fixture: ViewFixture) -> None:
    fixture.gate.set()
    models, notices = fixture.engine.stores.embedding_model, fixture.view.notices
    offer = EmbeddingModel(
        status="missing", total=91_000_000, hosts=("huggingface.co",), is_offered=True, has_simple=True
    )
    models.apply(EmbeddingModelUpdate(model=offer))
    await until(lambda: notices.shown == "memory")
    better = "A better one is a 91 MB download from huggingface.co."
    assert notices.text == f"Search by meaning uses a simple built-in model. {better}"
    models.is_followed = True
    models.apply(EmbeddingModelUpdate(model=EmbeddingModel(status="ready", has_simple=True)))
    assert notices.text == "Memory is searched with the better model now."


async def test_a_download_shows_its_progress_is_cancelled_resumed_and_says_why_it_failed(
    fixture: ViewFixture, answers: asyncio.Event
) -> None:
    await offered(fixture)
    notices = fixture.view.notices
    press(notices, "Download")
    await until(lambda: notices.text == "Downloading the embedding model: 0 bytes of 91 MB")
    press(notices, "Cancel")
    await until(lambda: notices.text.startswith(_OFFER))
    press(notices, "Download")
    await until(lambda: notices.text.startswith("Downloading"))
    answers.set()
    await until(lambda: "does not have config.json" in notices.text)
    press(notices, "Try again")
    await until(lambda: notices.text.startswith("Downloading") or "does not have" in notices.text)
    await until(lambda: "does not have config.json" in notices.text)
    press(notices, "Dismiss")
    assert notices.shown is None


async def test_progress_keeps_the_focus_and_the_end_is_said_until_a_message_is_sent(fixture: ViewFixture) -> None:
    await offered(fixture)
    notices, models = fixture.view.notices, fixture.engine.stores.embedding_model
    models.is_followed = True
    total = sum(file.size for file in FILES)
    models.apply(EmbeddingModelUpdate(model=EmbeddingModel(status="downloading", done=0, total=total)))
    cancel = next(button for button in notices.findChildren(QAbstractButton) if button.text() == "Cancel")
    models.apply(EmbeddingModelUpdate(model=EmbeddingModel(status="downloading", done=50_000_000, total=total)))
    assert notices.text == "Downloading the embedding model: 50 MB of 91 MB"
    assert cancel in notices.findChildren(QAbstractButton) and not cancel.isHidden()
    models.apply(EmbeddingModelUpdate(model=EmbeddingModel(status="ready")))
    assert notices.text == "Memory is searched by meaning now."
    fixture.view.input_panel.sent.emit()
    assert notices.shown is None

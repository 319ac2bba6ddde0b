"""The page of the state on a real engine: numbers, the model, clean-up, folders left out, and the audit."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QPushButton, QSpinBox, QWidget

from errand.protocol.memory import EmbeddingModel
from errand.protocol.settings import SETTINGS_GET, SETTINGS_SET, SettingsGetParams, SettingsSetParams
from errand.window.theme.theme import Theme
from errand.window.views.memory.clean_up import CleanUpView
from errand.window.views.memory.dialog import MemoryDialog
from errand.window.views.memory.state_page import ModelView
from errand.window.widgets.forms.combo_box import ComboBox
from tests.support.engine_parts import remembered
from tests.support.model_server import ModelServer, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until
from tests.window.views.memory.conftest import has, press, visible


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[StoreEngine]:
    async with store_engine(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as running:
        task = await running.parts.start("The kettle leaks", mode="chat")
        await running.parts.watcher.end(task.id)
        await remembered(running.parts)
        yield running


@pytest.fixture
async def dialog(engine: StoreEngine, theme: Theme) -> AsyncGenerator[MemoryDialog]:
    view = MemoryDialog(engine.stores, theme)
    view.open_for("", "", "state")
    await until(lambda: view.state.numbers.isVisible())
    yield view
    view.close()
    view.deleteLater()


async def setting(engine: StoreEngine, name: str) -> object:
    listing = await engine.stores.session.call(SETTINGS_GET, SettingsGetParams())
    return next(entry.value for entry in listing.settings if entry.name == name)


async def test_numbers_and_the_model_are_those_of_the_engine(dialog: MemoryDialog, engine: StoreEngine) -> None:
    texts = dialog.state.numbers.texts
    assert (texts["Entries"], texts["With vectors"], texts["Pruned"]) == ("2", "0", "0")
    assert texts["Search index"].endswith("KB")
    reason = engine.parts.services.memory.download.model().reason
    assert has(dialog.state.model, reason or "Entries are only found by their words")


async def test_a_rebuild_is_asked_about_first_and_then_done(dialog: MemoryDialog, engine: StoreEngine) -> None:
    await press(dialog, "Rebuild index")
    assert has(dialog, "Rebuild the index of 2 entries from your conversations?")
    focused = dialog.focusWidget()
    assert isinstance(focused, QPushButton) and focused.text() == "Cancel"
    QTest.keyClick(focused, Qt.Key.Key_Escape)
    assert dialog.isVisible() and not has(dialog, "Rebuild the index of")
    assert dialog.focusWidget() is visible(dialog)["Rebuild index"]
    await press(dialog, "Rebuild index")
    await press(dialog, "Rebuild")
    await until(lambda: has(dialog, "Rebuilding the index in the background."))
    await until(lambda: has(dialog.state.log, "rebuilt by"))
    await remembered(engine.parts)
    await until(lambda: dialog.state.numbers.texts["Entries"] == "2")


async def test_pruning_by_count_says_how_many_go_and_that_entries_stay(dialog: MemoryDialog) -> None:
    clean_up = dialog.state.findChildren(CleanUpView)[0]
    rule = next(
        candidate for candidate in clean_up.findChildren(ComboBox) if candidate.accessibleName() == "Vectors to remove"
    )
    rule.setCurrentText("All but the newest")
    clean_up.findChildren(QSpinBox)[0].setValue(0)
    await press(dialog, "Remove old vectors")
    assert has(dialog, "Remove 0 vectors and keep the 0 newest? The entries stay")
    await press(dialog, "Remove")
    await until(lambda: has(dialog, "removed.") or has(dialog, "No vectors to remove."))
    assert "Remove" not in visible(dialog)


async def test_memory_is_exported_into_a_file_that_a_person_chose(
    dialog: MemoryDialog, engine: StoreEngine, tmp_path: Path
) -> None:
    await until(lambda: dialog.state.numbers.texts["Entries"] != "")
    await press(dialog, "Export memory…")
    chooser = next(chooser for chooser in dialog.findChildren(QFileDialog) if chooser.isVisible())
    chooser.close()
    path = tmp_path / "memory.md"
    chooser.fileSelected.emit(str(path))
    await until(lambda: has(dialog, f"written to {path}."))
    assert "# Memory" in path.read_text(encoding="utf-8")


async def test_a_folder_is_left_out_and_taken_back(
    dialog: MemoryDialog, engine: StoreEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = engine.stores.session
    await session.call(SETTINGS_SET, SettingsSetParams(name="not_remembered_folders", value="/srv/a"))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", _chosen)
    await press(dialog, "Exclude folder…")
    await until(lambda: has(dialog, "/srv/b: left out of memory, doesn't use memory"))
    await until(lambda: has(dialog, "/srv/a: left out of memory"))
    assert await setting(engine, "not_remembered_folders") == "/srv/a; /srv/b"
    assert await setting(engine, "not_recalled_folders") == "/srv/b"
    await press(dialog, "Include in memory: /srv/b")
    await until(lambda: has(dialog, "/srv/a: left out of memory") and not has(dialog, "/srv/b"))
    assert await setting(engine, "not_recalled_folders") == ""
    await press(dialog, "Include in memory: /srv/a")
    await until(lambda: has(dialog, "No excluded folders"))


@pytest.fixture
def model(theme: Theme) -> ModelView:
    view = ModelView(theme)
    view.show()
    return view


def test_a_download_shows_its_progress_and_can_be_cancelled_once(model: ModelView) -> None:
    asked: list[bool] = []
    model.download_wanted.connect(asked.append)
    model.show_model(EmbeddingModel(status="downloading", done=34_000_000, total=91_000_000))
    assert has(model, "Downloading the embedding model: 34 MB of 91 MB")
    cancel = visible(model)["Cancel download"]
    cancel.click()
    cancel.click()
    assert asked == [False]
    model.show_model(EmbeddingModel(status="missing", done=34_000_000, total=91_000_000))
    assert visible(model)["Download the embedding model"].text() == "Continue"


def test_a_failed_model_says_why_and_can_be_tried_again(model: ModelView) -> None:
    model.show_model(EmbeddingModel(status="failed", reason="The disk is full."))
    assert has(model, "The model can't be used. Entries are only found by their words. The disk is full.")
    assert visible(model)["Download the embedding model"].text() == "Try again"


def test_the_simple_model_is_named_beside_what_is_better(model: ModelView) -> None:
    simple = EmbeddingModel(status="missing", total=91_000_000, hosts=("huggingface.co",), has_simple=True)
    model.show_model(simple)
    better = "A better one is a 91 MB download from huggingface.co."
    assert has(model, f"Search by meaning uses a simple built-in model. {better}")
    assert visible(model)["Download the embedding model"].text() == "Download"
    model.show_model(EmbeddingModel(status="failed", reason="The disk is full.", has_simple=True))
    assert has(model, "Entries are also found by their meaning, with a simple built-in model. The disk is full.")
    model.show_model(EmbeddingModel(status="ready", has_simple=True))
    assert has(model, "Ready. Entries are also found by their meaning.")


def test_a_ready_model_offers_no_download(model: ModelView) -> None:
    model.show_model(EmbeddingModel(status="ready", folder="/srv/model"))
    assert has(model, "Ready.") and has(model, "/srv/model") and visible(model) == {}


def _chosen(parent: QWidget, caption: str) -> str:
    return "/srv/b"


async def test_what_was_decided_about_other_folders_is_listed_and_turned(
    dialog: MemoryDialog, engine: StoreEngine
) -> None:
    await until(lambda: has(dialog, "Nothing was decided about two folders yet."))
    memory = engine.parts.services.memory
    memory.sharing.decide("/srv/a", "/srv/b", "apart")
    memory.set_given("node_1", again=False)
    await press(dialog, "Share all folders")
    await until(lambda: has(dialog, "/srv/a and /srv/b: kept apart"))
    assert await setting(engine, "other_folders") == "share"
    assert has(dialog, "1 entry is never given again unasked.")
    await press(dialog, "Share: /srv/a and /srv/b: kept apart")
    await until(lambda: has(dialog, "/srv/a and /srv/b: shared"))
    assert [pair.shares for pair in engine.parts.services.settings.values.folder_pairs] == [True]
    await press(dialog, "Give them again")
    await until(lambda: not has(dialog, "is never given again"))
    assert engine.parts.services.settings.values.not_given_again == ()

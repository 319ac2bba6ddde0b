"""An import that names a workspace: nothing runs there before a person has confirmed it."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication

from errand.engine.core.errors import UnconfirmedWorkspace
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.conversations import CONVERSATION_GET, Conversation, ConversationGetParams
from errand.protocol.tasks.methods import TaskRetryParams, TaskSetModeParams
from errand.protocol.tasks.task import replace_fields
from errand.window.stores.catalog import ModelStore
from errand.window.stores.welcome import WelcomeStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.drop_payload import PastedFiles
from errand.window.views.conversation.conversation_view import ConversationView
from errand.window.views.conversation.dialogs import WorkspaceDialog
from errand.window.views.conversation.services import ViewServices
from tests.support.command_line import Errand, connected
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.hostile_file import HostileFile
from tests.support.model_server import ModelServer, Reply
from tests.support.store_engine import store_engine
from tests.support.window import until
from tests.window.conftest import theme

__all__ = ["theme"]

Door = Callable[[EngineParts, HostileFile], Awaitable[object]]

DOORS: dict[str, Door] = {
    "a message": lambda engine, file: engine.start("go", conversation_id=file.conversation.id),
    "a retry": lambda engine, file: engine.services.runner.retry(TaskRetryParams(node_id=file.nodes[1].id)),
    "a chat as a task": lambda engine, file: engine.services.runner.set_mode(
        TaskSetModeParams(task_id=file.task.id, mode="task")
    ),
    "a summary": lambda engine, file: engine.services.runner.summarise(
        ConversationSummariseParams(conversation_id=file.conversation.id)
    ),
}


def model() -> ModelServer:
    return ModelServer(answer=lambda _: Reply(text="Done."))


async def stored(engine: EngineParts, file: HostileFile) -> Conversation:
    conversation = await engine.services.database.conversations.get(file.conversation.id)
    assert conversation is not None
    return conversation


@pytest.mark.parametrize("door", DOORS)
async def test_nothing_begins_in_a_folder_that_a_file_names(tmp_path: Path, door: str) -> None:
    async with engine_parts(tmp_path, model()) as engine:
        file = HostileFile("ls", engine.workspace)
        file.task = replace_fields(
            file.task, status="completed", stop_reason="completed", decided="chat", ended_at=file.task.started_at
        )
        if door == "a summary":
            file.say("and", "then", "what")
        await file.take(engine, tmp_path)
        with pytest.raises(UnconfirmedWorkspace, match="--workspace DIR") as refused:
            await DOORS[door](engine, file)
        assert str(engine.workspace) in str(refused.value)
        conversation = await stored(engine, file)
        own = str(engine.services.paths.workspaces / conversation.id)
        assert (conversation.workspace, conversation.proposed_workspace) == (own, str(engine.workspace))
        task = await engine.services.database.tasks.get(file.task.id)
        assert task is not None and task.request.workspace == own
        assert engine.model.requests == []


@pytest.mark.parametrize("named", ["", ".", "../..", "work", "/tmp/\0", "/" + "x" * 5000])
async def test_what_is_no_absolute_path_is_not_even_proposed(tmp_path: Path, named: str) -> None:
    async with engine_parts(tmp_path, model()) as engine:
        file = HostileFile("ls", engine.workspace)
        file.conversation = msgspec.structs.replace(
            file.conversation, workspace=named, proposed_workspace=named, imported_folder=named
        )
        await file.take(engine, tmp_path)
        conversation = await stored(engine, file)
        own = engine.services.paths.workspaces / conversation.id
        assert (conversation.workspace, conversation.proposed_workspace, own.is_dir()) == (str(own), "", True)
        assert conversation.imported_folder == ""


@pytest.mark.parametrize(
    ("choice", "works_in"), [("Use this folder", "there"), ("Use a new folder", "own"), ("Cancel", "nowhere")]
)
async def test_the_window_shows_the_path_and_asks(
    qapp: QApplication, theme: Theme, tmp_path: Path, choice: str, works_in: str
) -> None:
    async with store_engine(tmp_path, model()) as engine:
        engine.parts.services.settings.set("default_model", "openai_compatible/test-model")
        engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
        file = HostileFile("ls", engine.parts.workspace)
        await file.take(engine.parts, tmp_path)
        store, _ = await engine.open(file.conversation.id)
        pasted = PastedFiles(tmp_path / "pasted")
        state = WindowStateStore(tmp_path / "window.json")
        models, welcome = ModelStore(engine.stores.session, state), WelcomeStore(engine.stores.session, state)
        view = ConversationView(store, ViewServices(engine.stores, models, welcome, theme, qapp.clipboard(), pasted))
        failures: list[str] = []
        store.failed.connect(failures.append)
        store.commands.send("Go on")
        await until(lambda: bool(view.findChildren(WorkspaceDialog)))
        (dialog,) = view.findChildren(WorkspaceDialog)
        assert str(engine.parts.workspace) in dialog.text()
        (button,) = (
            candidate
            for candidate in dialog.findChildren(QAbstractButton)
            if candidate.text().replace("&", "") == choice
        )
        button.click()
        folders = {"there": str(engine.parts.workspace), "own": (await stored(engine.parts, file)).workspace}
        if works_in == "nowhere":
            await until(lambda: bool(failures))
            assert failures == ["Not started: no working folder was confirmed."]
            assert (await stored(engine.parts, file)).proposed_workspace and not engine.parts.model.requests
        else:
            await until(lambda: store.task is not None and store.task.id != file.task.id)
            assert store.task is not None and store.task.request.workspace == folders[works_in]
            await engine.parts.watcher.end(store.task.id)
            assert (await stored(engine.parts, file)).proposed_workspace == ""
        engine.stores.close(store)
        view.deleteLater()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of POSIX")
async def test_the_terminal_asks_and_without_a_person_it_is_refused_in_words(errand: Errand, workspace: Path) -> None:
    from tests.support.screens import PseudoTerminal

    folder = workspace / "named by the file"
    folder.mkdir()
    file = HostileFile("ls", folder, "terminal")
    assert (await errand.run("import", str(file.write(workspace)))).code == 0
    async with ModelServer(answer=lambda _: Reply(text="Done.")) as server:
        go_on = ("run", "--model", "openai_compatible/m", "--api-base", server.url, "--conversation", "conv_terminal")
        refused = await errand.run(*go_on, "go on")
        assert refused.code == 2 and str(folder) in refused.err and "--workspace DIR" in refused.err
        for reply, expected_text in (("\r", "Nothing was started."), ("y\r", "Done.")):
            async with PseudoTerminal((*go_on, "go on"), errand.folder, errand.environment) as screen:
                await screen.shows("named by the file")
                await screen.shows("Work there?")
                assert not server.requests
                screen.type(reply)
                await screen.shows(expected_text)
                await screen.ended()
        async with connected(errand) as client:
            response = await client.call(CONVERSATION_GET, ConversationGetParams(conversation_id="conv_terminal"))
        assert (response.conversation.workspace, response.conversation.proposed_workspace) == (str(folder), "")

"""An approved call runs exactly as shown: changes between the card and the execution are detected."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from app.engine.tools.base import ToolError
from app.protocol.asks import Ask, AskAnswerParams, Remember
from tests.attacks.campaign import Campaign
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.loop_parts import make_tool_context, run, tool_of
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, Reply


def code(action: str, **arguments: str) -> Reply:
    return Reply(text="Working.", calls=(Call("code", {"action": action, **arguments}),))


async def allow(engine: EngineParts, ask: Ask, remember: Remember = "once") -> None:
    await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True, remember=remember), "me")


def swap_folder(workspace: Path, outside: Path) -> None:
    """Replace a parent folder by a link to another one."""
    (workspace / "sub").rename(workspace / "gone")
    (workspace / "sub").symlink_to(outside)


def swap_file(workspace: Path, outside: Path) -> None:
    """Replace the file itself by a link."""
    (workspace / "sub" / "notes.txt").unlink()
    (workspace / "sub" / "notes.txt").symlink_to(outside / "notes.txt")


@pytest.mark.parametrize("swap", [swap_folder, swap_file])
async def test_a_path_swapped_for_a_link_while_it_is_asked_about_is_asked_about_anew(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes.txt").write_text("precious\n")
    turns = [code("write", path="sub/notes.txt", content="new\n"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        (engine.workspace / "sub").mkdir()
        (engine.workspace / "sub" / "notes.txt").write_text("old\n")
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        assert first.approval is not None and "-old" in first.approval.preview
        swap(engine.workspace, outside)
        await allow(engine, first)
        second = await engine.watcher.ask(started.id)
        assert second.id != first.id and second.approval is not None
        assert second.approval.writes == (str(outside / "notes.txt"),)
        assert "-precious" in second.approval.preview and second.approval.risk == "high"
        await engine.services.asks.answer(AskAnswerParams(ask_id=second.id, allow=False), "me")
        await engine.watcher.end(started.id)
    assert (outside / "notes.txt").read_text() == "precious\n"


async def test_a_patch_of_a_file_that_changed_since_its_preview_is_asked_about_anew(tmp_path: Path) -> None:
    turns = [code("patch", path="a.sh", old="echo safe\n", new="echo done\n"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        file = engine.workspace / "a.sh"
        file.write_text("echo safe\n")
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        file.write_text("sudo true\necho safe\n")
        await allow(engine, first)
        second = await engine.watcher.ask(started.id)
        assert second.id != first.id and second.approval is not None
        assert "sudo true" in second.approval.preview
        assert "changed" in second.approval.rule, "it says why it asks again"
        assert file.read_text() == "sudo true\necho safe\n"
        await allow(engine, second)
        await engine.watcher.end(started.id)
        assert file.read_text() == "sudo true\necho done\n"


async def test_a_file_made_where_the_card_showed_none_is_not_replaced(tmp_path: Path) -> None:
    turns = [code("write", path="new.txt", content="mine\n"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        (engine.workspace / "new.txt").write_text("theirs\n")
        await allow(engine, first)
        second = await engine.watcher.ask(started.id)
        assert second.approval is not None and "-theirs" in second.approval.preview
        await engine.services.asks.answer(AskAnswerParams(ask_id=second.id, allow=False), "me")
        await engine.watcher.end(started.id)
        assert (engine.workspace / "new.txt").read_text() == "theirs\n"


async def test_another_folder_moved_to_the_place_of_the_one_that_was_shown_is_asked_about_anew(tmp_path: Path) -> None:
    turns = [Reply(calls=(Call("shell", {"command": "touch made", "working_dir": "sub"}),)), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        (engine.workspace / "sub").mkdir()
        (engine.workspace / "other").mkdir()
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        (engine.workspace / "sub").rename(engine.workspace / "gone")
        (engine.workspace / "other").rename(engine.workspace / "sub")
        await allow(engine, first)
        second = await engine.watcher.ask(started.id)
        assert second.id != first.id
        assert not (engine.workspace / "sub" / "made").exists()
        await allow(engine, second)
        await engine.watcher.end(started.id)


async def asks_after(tmp_path: Path, remembered: Reply, tried: Reply) -> bool:
    """Whether a second call is asked about after the first one was allowed permanently."""
    async with engine_parts(tmp_path, ModelServer(turns=[remembered, tried, DONE])) as engine:
        (engine.workspace / "sub").mkdir()
        (engine.workspace / "x").write_text("old\n")
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        await allow(engine, first, "workspace" if first.approval and first.approval.grantable else "once")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 1)
        task = await engine.watcher.task(
            started.id, lambda task: task.ended_at is not None or task.status == "waiting_user"
        )
        return task.ended_at is None


@pytest.mark.parametrize("command", ["true # (in {0}/sub)", "true\n(in {0}/sub)", "in {0}/sub: true"])
async def test_a_command_that_spells_out_another_grant_is_asked_about(tmp_path: Path, command: str) -> None:
    elsewhere = Reply(calls=(Call("shell", {"command": "true #", "working_dir": "sub"}),))
    line = command.format(tmp_path / "workspace")
    assert await asks_after(tmp_path, elsewhere, shell(line))


async def test_the_same_command_in_another_folder_is_asked_about(tmp_path: Path) -> None:
    elsewhere = Reply(calls=(Call("shell", {"command": "true", "working_dir": "sub"}),))
    assert await asks_after(tmp_path, shell("true"), elsewhere)


async def test_a_folder_that_may_be_made_is_no_file_that_may_be_written(tmp_path: Path) -> None:
    made, written = code("create_dir", path="new"), code("write", path="new", content="x")
    assert await asks_after(tmp_path, made, written)


async def test_a_change_that_was_allowed_allows_no_other_content(tmp_path: Path) -> None:
    first, second = (code("write", path="x", content=text) for text in ("harmless\n", "harmful\n"))
    assert await asks_after(tmp_path, first, second)


async def test_the_very_command_that_was_remembered_is_not_asked_about(tmp_path: Path) -> None:
    assert not await asks_after(tmp_path, shell("true"), shell("true"))


async def test_a_folder_that_flips_to_a_link_while_files_are_written_leads_nothing_outside(
    tmp_path: Path, campaign: Campaign
) -> None:
    context = make_tool_context(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    sub = context.workspace / "sub"
    sub.mkdir()
    ends = threading.Event()

    def flip() -> None:
        number = 0
        while not ends.is_set():
            number += 1
            sub.rename(context.workspace / f"old{number}")
            with suppress(FileExistsError):  # recreated by the write
                sub.symlink_to(outside)
                sub.unlink()
                sub.mkdir()

    flipping = threading.Thread(target=flip)
    flipping.start()
    tool = tool_of(context, "code")
    refused = 0
    try:
        for number in range(campaign.rounds(300, 20_000)):
            arguments = tool.prepare_arguments({"action": "write", "path": f"sub/f{number}", "content": "x"})
            try:
                access = tool.access(arguments)
                if access.writes[0].is_relative_to(context.workspace):  # otherwise it is asked about as what it is
                    tool.allow("call_1", access)
                    await run(tool, arguments)
            except ToolError:
                refused += 1
    finally:
        ends.set()
        flipping.join()
    campaign.count("writes refused while a folder flipped", refused)
    assert [path.name for path in outside.iterdir()] == []

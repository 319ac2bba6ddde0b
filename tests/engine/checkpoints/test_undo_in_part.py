"""An undo that cannot take everything back, and what it keeps of the files that it changes."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from errand.engine.core.errors import NotFound
from tests.engine.checkpoints.parts import Work, work_in


@pytest.fixture
async def work(tmp_path: Path) -> AsyncGenerator[Work]:
    async with work_in(tmp_path) as opened_work:
        yield opened_work


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "gone folder"])
async def test_what_cannot_be_undone_does_not_keep_the_rest_from_it(work: Work, kind: str) -> None:
    work.put("a", "old\n")
    await work.write(1, "a", "new\n")
    await work.write(1, "d/odd", "odd\n")
    await work.write(1, "z", "z\n")
    odd = work.folder / "d/odd"
    odd.unlink()
    match kind:
        case "link":
            odd.symlink_to("a")
        case "folder":
            (odd / "inside").mkdir(parents=True)
        case "pipe":
            os.mkfifo(odd)
        case _:
            odd.parent.rmdir()
            odd.parent.symlink_to("nowhere")
    result = await work.undo()
    assert [conflict.name for conflict in result.conflicts] == ["d/odd"]
    assert work.read("a") == "old\n" and not (work.folder / "z").exists()
    with pytest.raises(NotFound):
        await work.undo("a")
    assert [conflict.name for conflict in (await work.undo()).conflicts] == ["d/odd"]


async def test_undo_keeps_hard_links_and_permissions(work: Work) -> None:
    other = work.put("a", "old\n", 0o640).parent / "b"
    os.link(work.folder / "a", other)
    await work.write(1, "a", "new\n")
    assert other.read_text() == "new\n"
    await work.undo()
    assert (work.read("a"), other.read_text()) == ("old\n", "old\n")
    assert other.stat().st_nlink == 2 and other.stat().st_mode & 0o777 == 0o640

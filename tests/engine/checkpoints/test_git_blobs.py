"""What git has of a workspace is not copied, and restored from git."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.engine.checkpoints.parts import Work, work_in
from tests.engine.checkpoints.test_baseline import fill, git, script


@pytest.fixture
async def work(tmp_path: Path) -> AsyncGenerator[Work]:
    async with work_in(tmp_path) as opened_work:
        yield opened_work


async def test_nothing_of_a_clean_repository_is_copied(work: Work) -> None:
    fill(work)
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "First")
    work.put("a.txt", "not committed\n")
    work.put(".gitignore", ".env\n")
    work.put(".env", "KEY=1\n")
    await work.shell(1, "true; python3 -c pass")
    contents = work.services.checkpoints.contents
    stored = contents.use(lambda connection: connection.execute("SELECT count(*) FROM contents").fetchone()[0])
    assert stored == 3
    await work.shell(2, script(work, "for name in ('a.txt', 'c.txt', '.env'): Path(name).write_text('lost')"))
    await work.undo()
    assert [work.read(name) for name in ("a.txt", "c.txt", ".env")] == ["not committed\n", "one and three\n", "KEY=1\n"]


async def test_what_git_has_in_a_pack_is_restored(work: Work) -> None:
    fill(work)
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "First")
    git(work, "gc", "-q", "--prune=now")
    await work.shell(1, script(work, "Path('a.txt').write_text('lost')"))
    await work.undo()
    assert work.read("a.txt") == "one\n"


async def test_what_git_has_lost_meanwhile_is_said(work: Work) -> None:
    fill(work)
    git(work, "init", "-q")
    git(work, "add", "-A")
    await work.shell(1, script(work, "import shutil; shutil.rmtree('.git'); Path('a.txt').unlink()"))
    (file,) = (await work.changes()).files
    assert (file.name, file.state, file.can_undo) == ("a.txt", "not_kept", False)


async def test_an_object_of_git_that_has_become_another_is_not_restored(work: Work) -> None:
    fill(work)
    git(work, "init", "-q")
    git(work, "add", "-A")
    code = (
        "import zlib\nfor path in Path('.git/objects').glob('??/*'): path.chmod(0o600); "
        "path.write_bytes(zlib.compress(b'blob 30000000\\0' + bytes(30_000_000)))\n"
        "Path('a.txt').unlink(); Path('c.txt').unlink()"
    )
    await work.shell(1, script(work, code))
    assert {name: file.state for name, file in (await work.files()).items()} == dict.fromkeys(
        ("a.txt", "c.txt"), "not_kept"
    )


async def test_a_file_whose_bytes_are_not_those_of_git_is_copied(work: Work) -> None:
    work.put(".gitattributes", "*.txt text eol=crlf\n")
    work.put("a.txt", "one\r\ntwo\r\n")
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "First")
    await work.shell(1, script(work, "Path('a.txt').write_text('lost')"))
    await work.undo()
    assert work.read("a.txt") == "one\r\ntwo\r\n"

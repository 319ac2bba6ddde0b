"""Workers that take files from one queue: every test runs once, and what fails or crashes is told once."""

import asyncio
from pathlib import Path

import pytest

from tests.pool.order import load_seconds, slowest_first, store_seconds
from tests.pool.pool import Pool
from tests.support.processes import file_appears

_SIGNAL_ONCE = (
    "import os\nfrom pathlib import Path\n\n\ndef test_it() -> None:\n    mark = Path(__file__).with_suffix('.mark')\n"
    "    if not mark.exists():\n        mark.touch()\n        os.kill(os.getpid(), 9)\n"
)
_CRASH = "import os\n\n\ndef test_it() -> None:\n    os._exit(3)\n"
_SESSION_FIXTURE = """
import os
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def resource() -> Generator[int]:
    with Path(__file__).with_name("made").open("a") as made:
        made.write(f"{os.getpid()}\\n")
    yield 1
    Path(__file__).with_name("ended").touch()
"""


@pytest.fixture(autouse=True)
def _few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Workers start faster without the plugins that are installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def _write(root: Path, conftest: str = "", **texts: str) -> list[str]:
    """Write test files and return their names."""
    folder = root / "tests"
    folder.mkdir()
    (root / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(conftest)
    for name, text in texts.items():
        (folder / f"test_{name}.py").write_text(text)
    return [f"tests/test_{name}.py" for name in texts]


def _test(body: str) -> str:
    return f"def test_it(tmp_path) -> None:\n    {body}\n"


async def _run(root: Path, files: list[str], workers: int = 2) -> Pool:
    pool = Pool(files, str(root / "tests"))
    await pool.run(workers)
    return pool


async def test_each_file_runs_once_and_a_failure_is_told_with_its_text(tmp_path: Path) -> None:
    files = _write(
        tmp_path,
        a=_test("print('so far'); assert 1 + 1 == 3"),
        b="\n\n".join(_test("pass").replace("test_it", f"test_{number}") for number in range(3)),
        c="import not_there\n",
        d="import pytest\n\n" + _test("pytest.skip('no')"),
    )
    pool = await _run(tmp_path, files)
    assert sorted(done.file for done in pool.done) == files
    failures = {failure.test: failure.text for failure in pool.failures}
    assert sorted(failures) == ["tests/test_a.py::test_it", "tests/test_c.py"]
    assert (
        "assert (1 + 1) == 3" in failures["tests/test_a.py::test_it"]
        and "so far" in failures["tests/test_a.py::test_it"]
    )
    assert "not_there" in failures["tests/test_c.py"]
    assert pool.summary().endswith("2 failed, 3 passed, 1 skipped in 4 of 4 files")


async def test_a_worker_that_crashes_is_replaced_and_its_file_has_failed(tmp_path: Path) -> None:
    files = _write(tmp_path, a=_CRASH, b=_test("pass"), c=_test("pass"))
    pool = await _run(tmp_path, files, workers=1)
    assert [failure.test for failure in pool.failures] == ["tests/test_a.py: pytest ended with 3"]
    assert sorted(done.file for done in pool.done) == ["tests/test_b.py", "tests/test_c.py"]


async def test_workers_that_cannot_start_end_the_run(tmp_path: Path) -> None:
    files = _write(tmp_path, a=_test("pass"))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    pool = await _run(tmp_path, files)
    assert "no-such-option" in pool.failures[0].text and pool.done == []


async def test_fixtures_of_a_session_are_made_once_for_all_files_of_a_worker(tmp_path: Path) -> None:
    files = _write(
        tmp_path, _SESSION_FIXTURE, **dict.fromkeys("abc", "def test_it(resource: int) -> None:\n    assert resource\n")
    )
    pool = await _run(tmp_path, files, workers=1)
    assert pool.failures == [] and len((tmp_path / "tests" / "made").read_text().split()) == 1
    assert (tmp_path / "tests" / "ended").exists()


async def test_workers_end_their_fixtures_when_the_run_is_cancelled(tmp_path: Path) -> None:
    began = tmp_path / "began"
    waits = (
        f"import pathlib, time\n\n\ndef test_it(resource):\n    pathlib.Path({str(began)!r}).touch(); time.sleep(600)\n"
    )
    running = asyncio.create_task(_run(tmp_path, _write(tmp_path, _SESSION_FIXTURE, a=waits)))
    await file_appears(began)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled() and (tmp_path / "tests" / "ended").exists()


def test_files_that_took_long_come_first_and_new_ones_by_their_size(tmp_path: Path) -> None:
    small, large, timed = (tmp_path / f"test_{name}.py" for name in ("small", "large", "timed"))
    for file, size in ((small, 10), (large, 60_000), (timed, 10)):
        file.write_bytes(b"#" * size)
    store_seconds(tmp_path / "seconds.json", {str(timed): 12.5})
    seconds = load_seconds(tmp_path / "seconds.json")
    assert slowest_first([small, large, timed], seconds) == [str(large), str(timed), str(small)]
    assert load_seconds(tmp_path / "missing.json") == {}


async def test_a_file_whose_worker_was_ended_by_a_signal_runs_once_more_and_is_named(tmp_path: Path) -> None:
    files = _write(tmp_path, a=_SIGNAL_ONCE, b=_SIGNAL_ONCE.replace(".mark", ".other"))
    pool = await _run(tmp_path, files, workers=1)
    assert [crash.test for crash in pool.crashed] == ["tests/test_a.py", "tests/test_b.py"]
    assert (pool.failures, len(pool.done)) == ([], 2)
    assert "CRASHED tests/test_a.py" in pool.summary()

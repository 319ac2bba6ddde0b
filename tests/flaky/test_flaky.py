"""Runs of test files under load: what fails once is listed, and an interrupted run goes on."""

import os
from pathlib import Path

import pytest

from tests.flaky.__main__ import files_below, run
from tests.flaky.load import busy_cores
from tests.flaky.progress import FILES_PER_SESSION, Failure, Progress, resumed, store
from tests.support.processes import is_alive

_PASSES = "def test_it() -> None:\n    pass\n"
_FAILS_ONCE = """
from pathlib import Path


def test_it() -> None:
    marker = Path(__file__).with_suffix(".ran")
    ran = marker.exists()
    marker.touch()
    assert ran
"""


def test_a_test_that_fails_in_one_round_is_listed_with_its_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_passes.py").write_text(_PASSES)
    (tmp_path / "test_fails_once.py").write_text(_FAILS_ONCE)
    progress = Progress(files_below([str(tmp_path)]), rounds=2, seed=1)
    assert run(progress, tmp_path / "state", busy=0) == 1
    assert [failure.test.split(".")[-1] for failure in progress.failures] == ["test_fails_once::test_it"]
    log = Path(progress.failures[0].log)
    assert "assert ran" in log.read_text() and [*log.parent.glob("*.log")] == [log]
    assert "1 failures in 2 sessions" in capfd.readouterr().out


def test_an_interrupted_run_goes_on_and_a_complete_one_begins_anew(tmp_path: Path) -> None:
    state, files = tmp_path / "state.json", [f"test_{number}.py" for number in range(FILES_PER_SESSION + 1)]
    interrupted = Progress(files, rounds=2, seed=7, done=1, failures=[Failure("test_1", "1.log")])
    store(interrupted, state)
    assert resumed(state, files, 2, None) == interrupted
    assert resumed(state, files, 3, None).done == 0
    assert resumed(state, files, 2, seed=8) == Progress(files, 2, 8)
    store(Progress(files, rounds=2, seed=7, done=4), state)
    assert resumed(state, files, 2, seed=7) == Progress(files, 2, 7)


def test_each_round_has_all_files_in_an_order_of_its_own() -> None:
    files = [f"test_{number}.py" for number in range(20)]
    sessions = Progress(files, rounds=2, seed=3).sessions
    rounds = [[file for session in part for file in session] for part in (sessions[:3], sessions[3:])]
    assert [sorted(order) for order in rounds] == [sorted(files)] * 2
    assert rounds[0] != rounds[1]


def test_the_processes_of_the_load_end_with_it() -> None:
    with busy_cores(2) as busy:
        assert all(map(is_alive, busy)) and os.getpid() not in busy
    assert not any(map(is_alive, busy))

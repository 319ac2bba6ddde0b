"""Runs test files N times, in random order, beside processes that keep each core busy, and lists what failed once.

A run that was interrupted goes on when it is started again with the same files.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.flaky.load import busy_cores
from tests.flaky.progress import Failure, Progress, resumed, store

_FOLDER = Path("build/flaky")
_NOTHING_SELECTED = 5  # pytest's exit code


def main() -> int:
    parser = argparse.ArgumentParser(prog="make flaky")
    parser.add_argument("rounds", type=int, help="how often each file runs")
    parser.add_argument("files", nargs="*", default=["tests"], help="files or folders of tests; all by default")
    parser.add_argument("--seed", type=int, help="repeat the orders of a run")
    options = parser.parse_args()
    files = files_below(options.files)
    if not files:
        parser.error(f"no test files in {' '.join(options.files)}")
    progress = resumed(_FOLDER / "state.json", files, options.rounds, options.seed)
    with busy_cores() as busy:
        return run(progress, _FOLDER, len(busy))


def files_below(paths: Sequence[str]) -> list[str]:
    """The test files at and below these paths, sorted."""
    files = (file for path in map(Path, paths) for file in ([path] if path.is_file() else path.rglob("test_*.py")))
    return sorted({str(file) for file in files})


def run(progress: Progress, folder: Path, busy: int) -> int:
    """Run what is left and print what failed. Returns 1 if something did."""
    sessions = progress.sessions
    _say(f"seed {progress.seed}: {len(progress.files)} files, {progress.rounds} rounds, {busy} busy processes")
    if progress.done:
        _say(f"goes on after {progress.done} of {len(sessions)} sessions")
    for number, files in enumerate(sessions[progress.done :], progress.done + 1):
        failures = _failures_of(files, folder / f"{progress.seed}-{number}.log")
        progress.failures += failures
        progress.done = number
        store(progress, folder / "state.json")
        _say(f"{number}/{len(sessions)}  {', '.join(failure.test for failure in failures) or 'passed'}")
    for failure in progress.failures:
        _say(f"failed: {failure.test}  ({failure.log})")
    _say(f"{len(progress.failures)} failures in {len(sessions)} sessions")
    return 1 if progress.failures else 0


def _failures_of(files: Sequence[str], log: Path) -> list[Failure]:
    """The tests of one session of pytest that failed; its log stays if there are any."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="flaky-") as temporary:
        report = Path(temporary, "report.xml")
        command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *files)
        with log.open("wb") as output:
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
        failed = _failed_tests(report) if code not in (0, _NOTHING_SELECTED) else []
        if code not in (0, _NOTHING_SELECTED) and not failed:
            failed = [f"the session ended with {code}: {' '.join(files)}"]
    if not failed:
        log.unlink()
    return [Failure(test, str(log)) for test in failed]


def _failed_tests(report: Path) -> list[str]:
    try:
        cases = ElementTree.parse(report).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return []  # the session was ended before it wrote its report
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

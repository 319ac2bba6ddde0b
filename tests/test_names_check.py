"""The check of names and docstrings that `make lint` runs, in a repository of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import CHECKOUT

_PROGRAM = CHECKOUT / "packaging" / "names.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(("git", "init", "-q", tmp_path), check=True)
    return tmp_path


def _check(repository: Path, name: str, text: str) -> tuple[int, list[str]]:
    """Return the exit code and the faults, without their advice, for a file with this text."""
    file = repository / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    done = subprocess.run((sys.executable, _PROGRAM), cwd=repository, capture_output=True, text=True, check=False)
    return done.returncode, [line.partition("  ")[0] for line in done.stdout.splitlines()]


def test_vague_names_of_the_app_are_refused(repository: Path) -> None:
    text = "found = [one for one in range(3)]\nmatches = found\n"

    code, faults = _check(repository, "app/errand/new.py", text)

    assert (code, faults) == (1, ["app/errand/new.py:1 found", "app/errand/new.py:1 one"])


def test_docstrings_that_are_fragments_are_refused(repository: Path) -> None:
    text = (
        'def rows():\n    """Of all tables."""\n\n'
        'def tables():\n    """Return the tables.\n\n    Of all databases.\n    """\n\n'
        'class Rows:\n    """What is visible."""\n'
    )

    code, faults = _check(repository, "app/errand/new.py", text)

    assert code == 1
    assert faults == ["app/errand/new.py:1 “Of all tables.”", "app/errand/new.py:10 “What is visible.”"]


@pytest.mark.parametrize("name", ["app/errand/new.py", "tests/test_new.py", "packaging/new.py"])
def test_constants_that_are_superlatives_are_refused_everywhere(repository: Path, name: str) -> None:
    text = "_MOST_FILES = 3\n_LONGEST = 2\nMAX_FILES = 3\nALMOST_ALL = 0.9\n"

    code, faults = _check(repository, name, text)

    assert (code, faults) == (1, [f"{name}:1 _MOST_FILES", f"{name}:2 _LONGEST"])


def test_names_and_docstrings_of_tests_are_checked_too(repository: Path) -> None:
    code, faults = _check(repository, "tests/test_new.py", 'found = 1\ndef f():\n    """Of all."""\n')

    assert (code, faults) == (1, ["tests/test_new.py:1 found", "tests/test_new.py:2 “Of all.”"])


def test_what_reads_well_passes(repository: Path) -> None:
    text = '"""Which files there are."""\n\ndef matches():\n    """Return the matches."""\n    visible_rows = 3\n'

    assert _check(repository, "app/errand/new.py", text) == (0, [])

"""The files that a command line names and may change."""

import os
import time
from pathlib import Path

import pytest

from errand.engine.permissions.shell.named_files import named_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py", "c.txt", "d/x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    return tmp_path


def existing(line: str, folder: Path) -> set[str]:
    """Return the named files that exist, relative to the folder; `/*` follows a folder that may change as a whole."""
    return {
        os.path.relpath(named_file.path, folder)
        + ("/*" if named_file.with_content and os.path.isdir(named_file.path) else "")
        for named_file in named_files(line, str(folder), str(folder / "home"))
        if os.path.lexists(named_file.path)
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sed -i 's/a/b/' a.py", {"a.py"}),
        ("sed -i 's/a/b/' *.py", {"a.py", "b.py"}),
        ("sort -oc.txt a.py", {"a.py", "c.txt"}),
        ("prog --output=c.txt", {"c.txt"}),
        ("dd of=c.txt if=a.py", {"a.py", "c.txt"}),
        ("cat a.py > b.py", {"b.py"}),
        ("cat a.py b.py", set[str]()),
        ("cat < a.py", set[str]()),
        ("python3 a.py c.txt", {"c.txt"}),
        ("python3 -m black a.py", {"a.py"}),
        ("python3 -m pytest a.py", set[str]()),
        ("black a.py d/x.py", {"a.py", "d/x.py"}),
        ("bash a.py", set[str]()),
        ("sh -c 'rm a.py'", {"a.py"}),
        ("sudo rm a.py", {"a.py"}),
        ("X=a.py; rm $X", {"a.py"}),
        ("cd d && rm x.py", {"d/x.py"}),
        ("rm -r d", {"d/*"}),
        ("ls d", set[str]()),
        ("tar xf c.txt d", {"c.txt", "d"}),
        ("git commit -m c.txt a.py", set[str]()),
        ("git checkout -- a.py d", {"a.py", "d/*"}),
        ("git apply c.txt", {"c.txt"}),
        ("ls *.py | xargs rm", {"a.py", "b.py"}),
        ("patch -p1 <<'END'\n--- a/a.py\n+++ b/d/x.py\nEND", {"a.py", "d/x.py"}),
        ("echo $(rm a.py)", {"a.py"}),
        ("broken 'quote a.py > c.txt", set[str]()),
        ("rm 'a.py", {"a.py"}),
    ],
)
def test_names_of_a_line(line: str, expected: set[str], folder: Path) -> None:
    assert existing(line, folder) == expected


def test_what_a_program_moves_into_a_folder_is_named_there(folder: Path) -> None:
    named = {named_file.path for named_file in named_files("mv a.py c.txt d/", str(folder), "")}
    assert {str(folder / "d/a.py"), str(folder / "d/c.txt")} <= named


@pytest.mark.parametrize(
    "line",
    [
        "rm " + " ".join(f"f{number}" for number in range(50_000)),
        "rm " + "x" * 1_000_000,
        "rm 'a\0b' $'\\xff' \ud800",
        "rm " + "{a,b}" * 40,
        "$(" * 5_000,
        "sed -i x " + "*" * 2_000,
        "rm " + "/".join(["*"] * 500),
        "patch " + " ".join(["/dev/zero"] * 50),
    ],
    ids=range(8),
)
def test_a_hostile_line_is_read_in_bounded_time(line: str, folder: Path) -> None:
    began = time.process_time()
    assert len(named_files(line, str(folder), "")) <= 400
    assert time.process_time() - began < 2

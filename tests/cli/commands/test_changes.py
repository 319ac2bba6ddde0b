"""The list of what a task changed in files."""

from datetime import UTC, datetime

import msgspec

from errand.cli.commands.changes import format_changes
from errand.cli.terminal.style import PLAIN
from errand.cli.terminal.text import columns, wrapped
from errand.client.texts.changes import CHANGES_NOT_SEEN
from errand.protocol.changes import ChangedFile, ChangedStep, TaskChanges

NOTE = wrapped(CHANGES_NOT_SEEN, 80).splitlines()
AT = datetime(2026, 11, 23, tzinfo=UTC)


def file(name: str, *steps: int, note: str = "") -> ChangedFile:
    return ChangedFile(path=f"/work/{name}", name=name, state="changed", added=2, removed=1, steps=steps, note=note)


def step(number: int, *, can_undo: bool = True) -> ChangedStep:
    return ChangedStep(step=number, at=AT, files=1, added=2, removed=1, can_undo=can_undo, can_redo=not can_undo)


FOUND = TaskChanges(
    task_id="t",
    conversation_id="c",
    files=(file("a.py", 1, 2), file("b.py", 2, note="Somebody else changed it.")),
    steps=(step(1, can_undo=False), step(2)),
)


def test_files_and_steps_are_listed_with_their_sums() -> None:
    assert format_changes(FOUND, None, PLAIN, 80) == [
        "2 files · +4 −2",
        "  +2 −1  a.py",
        "  +2 −1  b.py",
        "      Somebody else changed it.",
        "  step 1: 1 file, undone",
        "  step 2: 1 file",
        *NOTE,
    ]


def test_a_step_is_listed_with_its_own_files_and_sums() -> None:
    lines = ["1 file · +2 −1", "  +2 −1  a.py", "  step 1: 1 file, undone", *NOTE]
    assert format_changes(FOUND, 1, PLAIN, 80) == lines


def test_a_long_name_stays_within_the_terminal() -> None:
    changes = TaskChanges(task_id="t", conversation_id="c", files=(file("folder/" * 40 + "x", 1),), steps=())
    assert all(columns(line) <= 80 for line in format_changes(changes, None, PLAIN, 80))


def test_a_new_folder_has_no_counts_of_lines() -> None:
    folder = msgspec.structs.replace(file("assets", 1), added=0, removed=0, is_new=True, is_folder=True)
    changes = TaskChanges(task_id="t", conversation_id="c", files=(folder,), steps=())
    assert format_changes(changes, None, PLAIN, 80)[1] == "  assets · new folder"

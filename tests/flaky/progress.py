"""The state of a run in a file, so that a run that was interrupted goes on where it was."""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

# Files that one session of pytest runs: enough that they can disturb each other.
FILES_PER_SESSION = 8


class Failure(msgspec.Struct, frozen=True):
    """A test that failed once; `log` is the file with what pytest printed."""

    test: str
    log: str


class Progress(msgspec.Struct):
    """A run of `files`, `rounds` times in orders that `seed` gives. `done` counts finished sessions of pytest."""

    files: list[str]
    rounds: int
    seed: int
    done: int = 0
    failures: list[Failure] = msgspec.field(default_factory=list[Failure])

    @property
    def sessions(self) -> list[list[str]]:
        """The files of each session of pytest, in the order in which they run."""
        sessions: list[list[str]] = []
        for number in range(self.rounds):
            order = random.Random(self.seed + number).sample(self.files, len(self.files))
            sessions += [order[at : at + FILES_PER_SESSION] for at in range(0, len(order), FILES_PER_SESSION)]
        return sessions

    @property
    def is_complete(self) -> bool:
        return self.done >= len(self.sessions)


def resumed(state_file: Path, files: Sequence[str], rounds: int, seed: int | None) -> Progress:
    """Return the unfinished run of the same files in the state file, or a new one."""
    try:
        stored = msgspec.json.decode(state_file.read_bytes(), type=Progress)
    except (OSError, msgspec.DecodeError):
        stored = None
    is_same = stored is not None and (stored.files, stored.rounds) == ([*files], rounds) and seed in (None, stored.seed)
    if stored is not None and is_same and not stored.is_complete:
        return stored
    return Progress([*files], rounds, random.randrange(1_000_000) if seed is None else seed)


def store(progress: Progress, state_file: Path) -> None:
    """Write the state so that a crash leaves the old or the new one."""
    state_file.parent.mkdir(parents=True, exist_ok=True)
    temporary = state_file.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(progress))
    temporary.replace(state_file)

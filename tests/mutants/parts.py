"""The parts of the program to mutate, and the tests that must detect the mutants."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Part:
    """`code` and `tests` are files and folders of the checkout; the tests run in their order."""

    name: str
    code: tuple[str, ...]
    tests: tuple[str, ...]

    def modules(self, checkout: Path) -> Iterator[Path]:
        """Paths below the checkout. Migrations are left out: their tests start from databases of old versions."""
        for name in self.code:
            path = checkout / name
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                if "migrations" not in file.parts and file.name != "__init__.py":
                    yield file.relative_to(checkout)


def _of(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.py" for name in names)


PARTS = (
    Part(
        "permissions",
        ("app/errand/engine/permissions",),
        (
            "tests/engine/permissions",
            *_of("tests/engine/agent/run", "test_asks", "test_pause"),
            "tests/attacks/test_shown_is_done.py",
        ),
    ),
    Part(
        "storage",
        ("app/errand/engine/storage",),
        (
            "tests/engine/storage",
            *_of("tests/engine/agent/run", "test_disk_full", "test_durable_intents", "test_refused_changes"),
            *_of("tests/engine/server", "test_reads", "test_tree_reads", "test_usage"),
        ),
    ),
    Part(
        "processes",
        ("app/errand/engine/tools/processes",),
        (
            *_of("tests/engine/tools", "test_process_trees", "test_shell", "test_shell_output"),
            "tests/engine/agent/run/test_stop.py",
            "tests/attacks/test_runaway_processes.py",
            "tests/end_to_end/stopping/test_crash_recovery.py",
        ),
    ),
    Part(
        "task",
        (
            "app/errand/engine/agent/run",
            "app/errand/engine/agent/history/branch.py",
            "app/errand/engine/agent/tasks/restart.py",
        ),
        ("tests/engine/agent",),
    ),
    Part("server", ("app/errand/engine/server",), ("tests/engine/server", "tests/attacks/test_strangers.py")),
    Part(
        "data",
        ("app/errand/engine/data",),
        (
            "tests/engine/data",
            "tests/engine/server/test_data.py",
            *_of("tests/attacks/imports", "test_import_files", "test_imported_tasks", "test_hostile_records"),
        ),
    ),
)

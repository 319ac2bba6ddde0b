"""Copies of a database, taken before a migration: whole and consistent, the newest five kept."""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from app.engine.errors import StorageError

_KEPT = 5


def copy_database(source: Path, folder: Path, label: str) -> Path:
    """Copy through SQLite's backup API, which sees what is still in the WAL too; StorageError if it cannot."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    copy = folder / f"{source.stem}-{label}-{stamp}.db"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(copy)) as new:
            old.backup(new)
        copy.chmod(0o600)
    except (sqlite3.Error, OSError) as error:
        with suppress(OSError):
            copy.unlink()
        raise StorageError(
            f"No copy of {source} could be made in {folder} ({error}), so it was not migrated and nothing was "
            "changed. Make room or mend the rights of the folder, then start again."
        ) from error
    for old_copy in sorted(folder.glob(f"{source.stem}-*.db"), key=lambda path: path.stat().st_mtime_ns)[:-_KEPT]:
        old_copy.unlink()
    return copy

"""Opens a SQLite database file: creates a missing one, refuses an unusable one, migrates an old one.

Synchronous: run it in a thread. On any failure the file stays unchanged.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.exc import SQLAlchemyError

from errand.engine.core.errors import StorageError
from errand.engine.storage.sql import schema
from errand.engine.storage.sql.errors import error_text
from errand.engine.storage.sqlite.backups import back_up_before_migration
from errand.engine.storage.sqlite.schema import CREATE
from errand.system.database_file import find_loss, find_truncation, finish_replacement, open_untouched
from errand.system.regular_file import flush_folder, make_folder

_REPAIR_ADVICE = {
    "file": "Put it back if you have it. If not: errand doctor --repair goes back to a copy or begins anew.",
    "changes": "Put back what was there if you have it. If not: errand doctor --repair goes on with what there is.",
}


def prepare_file(path: Path, copies: Path) -> None:
    """Ensure a database of the newest schema at `path`. Raises `StorageError`."""
    with suppress(OSError):  # a file that cannot be moved cannot be opened either, which is reported below
        finish_replacement(path)
    if (loss := find_loss(path, copies)) is not None:
        raise StorageError(f"{loss.text} Nothing was made or changed. {_REPAIR_ADVICE[loss.what]}")
    if not os.path.exists(path):  # unlike Path.exists, no error for an unreadable folder: creating the file then fails
        _create(path)
        return
    if (cut := find_truncation(path)) is not None:
        raise StorageError(
            f"{path} is cut: {cut.actual:,} of its {cut.expected:,} bytes are there. Nothing was changed. To mend what "
            "is there: errand doctor --repair. Or go back to a copy from the copies folder: errand restore FILE"
        )
    revision = _revision(path)
    if revision not in schema.REVISIONS:
        raise StorageError(
            f"{path} was written by a newer Errand (schema {revision}; this one knows up to {schema.HEAD}). "
            "Nothing was changed. Install the newer version again, or set ERRAND_HOME to another folder."
        )
    if revision != schema.HEAD:
        copy = back_up_before_migration(path, copies, revision)
        try:
            _in_transaction(path, schema.migrate)
        except SQLAlchemyError as error:
            raise StorageError(
                f"{path} could not be brought from schema {revision} to {schema.HEAD} ({error_text(error)}). "
                f"Nothing was changed; a copy is at {copy}."
            ) from error


def _create(path: Path) -> None:
    # Created under another name: a crash must not leave an empty database that looks like a real one.
    unfinished = path.with_name(path.name + ".new")
    try:
        make_folder(path.parent)
        unfinished.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600))
        _in_transaction(unfinished, lambda connection: schema.create(connection, CREATE))
        unfinished.replace(path)
        flush_folder(path.parent)
    except (OSError, SQLAlchemyError) as error:
        why = error_text(error) if isinstance(error, SQLAlchemyError) else error
        raise StorageError(f"No database can be made at {path} ({why}). Check the folder and its rights.") from error


def _revision(path: Path) -> str:
    try:
        # Even a refused database stays unchanged, including its journal.
        with closing(open_untouched(path)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
                raise StorageError(
                    f"{path} is empty or not a database of Errand. Nothing was changed. Move it away to start anew, "
                    "or put a copy from the copies folder in its place."
                )
            (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            return str(revision)
    except (sqlite3.Error, TypeError) as error:
        raise StorageError(
            f"{path} cannot be read ({error}): it is damaged, or its rights forbid it. Nothing was changed. "
            "To mend it: errand doctor --repair. Or put a copy from the copies folder in its place: errand restore FILE"
        ) from error


def _in_transaction(path: Path, work: Callable[[Connection], None]) -> None:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"isolation_level": None})
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        work(connection)
        connection.commit()

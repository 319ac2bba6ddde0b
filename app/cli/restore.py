"""`errand restore FILE`: go back to a copy. The present database is kept aside, and an engine that runs is ended."""

import asyncio
import os
import sqlite3
import tarfile
import time
from datetime import UTC, datetime
from pathlib import Path

from app.cli.backup_file import open_backup, unpack_database, unpack_rest
from app.cli.former_home import settle
from app.cli.options import Options
from app.cli.outcome import EXIT_ERROR
from app.cli.run import UsageError
from app.cli.terminal import Terminal
from app.client.errors import ConnectionLost, NoEngine
from app.client.figures import count
from app.client.launch import connect
from app.database_file import (
    copy_database,
    fault,
    finish_move,
    move_database,
    new_epoch,
    revision,
    successor,
)
from app.file_lock import FileLock
from app.paths import Paths
from app.protocol.engine import EmptyParams, EngineShutdownParams
from app.protocol.wire import ENGINE_SHUTDOWN, ENGINE_STATUS
from app.regular_file import NotRegularFile, flush_folder

_ENDS_WITHIN_S = 10.0


async def restore(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Looks at the copy first; refuses while tasks run, unless `force` says that they may be interrupted."""
    paths.prepare()
    given = _absolute(options.file)
    unpacked = paths.home / ".errand.db.unpacked"
    is_backup = _is_backup(given)
    new = paths.database.with_name("errand.db.restoring")
    try:
        file = _checked(_database_of(given, unpacked) if is_backup else given, given, paths)
        await asyncio.to_thread(_prepare, file, new, paths)
    except (OSError, sqlite3.Error, tarfile.TarError) as error:
        new.unlink(missing_ok=True)
        terminal.note(f"errand: {given} cannot be put in place: {error}. Nothing was changed.")
        return EXIT_ERROR
    finally:
        unpacked.unlink(missing_ok=True)
    try:
        lock = await sole_user(paths, force=options.force)
    except BaseException:
        new.unlink()
        raise
    try:
        kept = put_in_place(new, paths)
        rest = _rest(given, paths) if is_backup else ""
    finally:
        lock.release()
    terminal.line(f"Restored from {given}.{rest}" + (f" What was there before is kept: {kept}" if kept else ""))
    return 0


def _absolute(given: str) -> Path:
    return Path(os.path.expanduser(given)).absolute()


def _is_backup(file: Path) -> bool:
    """With what belongs to the database; a copy of the database alone is the other form."""
    try:
        with open_backup(file):
            return True
    except NotRegularFile as error:
        raise UsageError(f"{file} cannot be restored: {error.strerror}.") from error
    except (OSError, tarfile.TarError):
        return False


def _database_of(backup: Path, unpacked: Path) -> Path:
    if not unpack_database(backup, unpacked):
        raise UsageError(f"{backup} is not a backup of Errand. Nothing was changed.")
    return unpacked


def _rest(backup: Path, paths: Paths) -> str:
    """The database is in place: what goes wrong with pictures and settings is said, and undoes nothing."""
    kept = paths.copies / f"settings-replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.json"
    try:
        contents = unpack_rest(backup, paths, kept)
    except (OSError, tarfile.TarError) as error:
        return f" Not all of its pictures and settings could be put back: {error}."
    pictures = f" {count(contents.pictures, 'picture')} that had gone came back." if contents.pictures else ""
    before = f" (those before: {kept})" if kept.exists() else ""
    settings = f" The settings came back{before}." if contents.has_settings else ""
    if contents.left_out:
        names = ", ".join(contents.left_out)
        settings += f" The backup names other addresses than are set here; these were left as they are: {names}."
    return pictures + settings


async def sole_user(paths: Paths, *, force: bool) -> FileLock:
    """End the engine that runs and keep others from starting; UsageError while tasks run, without `force`."""
    try:
        connection = await connect(paths, "errand", start=False)
    except NoEngine:
        return await _engine_lock(paths)
    try:
        running = (await connection.call(ENGINE_STATUS, EmptyParams())).running_tasks
        if running and not force:
            raise UsageError(
                f"{running} {'task runs' if running == 1 else 'tasks run'}. Stop them first (errand tasks --active), "
                "or give --force: they are interrupted then."
            )
        await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
    except ConnectionLost:
        pass  # it ended before it could say so
    finally:
        await connection.close()
    return await _engine_lock(paths)


def put_in_place(new: Path, paths: Paths) -> Path | None:
    """Give the database's place to `new`; where the present one is kept. The engine's lock is held by the caller."""
    kept = paths.copies / f"errand-replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.db"
    had_one = paths.database.exists()
    move_database(new, successor(paths.database))
    move_database(paths.database, kept)
    finish_move(paths.database)
    flush_folder(paths.copies)
    flush_folder(paths.home)
    return kept if had_one else None


async def _engine_lock(paths: Paths) -> FileLock:
    """Taken the moment the engine is gone: an open window would start the next one."""
    give_up_at = time.monotonic() + _ENDS_WITHIN_S
    while (lock := FileLock.take(paths.lock)) is None:
        if time.monotonic() > give_up_at:
            raise UsageError("The engine does not end, or is started again. Close Errand's windows and try again.")
        await asyncio.sleep(0.005)  # a lock of another process sets no event
    return lock


def _checked(file: Path, given: Path, paths: Paths) -> Path:
    """UsageError for a file that must not take the database's place; `given` is what it is called."""
    if not file.is_file():
        raise UsageError(f"There is no file {given}. The copies that there are: {paths.copies}")
    if paths.database.exists() and file.samefile(paths.database):
        raise UsageError(f"{given} is the database itself.")
    try:
        schema = revision(file)
        wrong = fault(file) if schema is not None else ""
        present = revision(paths.database) if paths.database.exists() else None
    except sqlite3.Error as error:
        if "malformed" not in str(error) and "not a database" not in str(error):
            raise UsageError(f"{given} cannot be read: {error}. Nothing was changed.") from error
        schema, wrong, present = "", str(error), None
    if schema is None:
        raise UsageError(f"{given} is not a database of Errand. Nothing was changed.")
    if wrong:
        raise UsageError(f"{given} is damaged: {wrong}. Nothing was changed. Try another copy from {paths.copies}")
    if present is not None and schema > present:
        raise UsageError(
            f"{given} was written by a newer Errand (schema {schema}; the present database has {present}). "
            "Nothing was changed. Install the newer version first."
        )
    return file


def _prepare(file: Path, new: Path, paths: Paths) -> None:
    new.unlink(missing_ok=True)
    copy_database(file, new)
    new_epoch(new)
    settle(new, paths)

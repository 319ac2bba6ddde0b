"""`errand backup`: all conversations, pictures and settings in one file, made while the engine works or without it."""

import asyncio
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from app.cli.backup_file import Contents, write_backup
from app.cli.options import Options
from app.cli.outcome import EXIT_ERROR
from app.cli.run import UsageError
from app.cli.terminal import Terminal
from app.client.figures import count, file_size
from app.database_file import copy_database, fault, open_to_read
from app.paths import Paths
from app.regular_file import check_replaceable


async def backup(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Never over a file that is there."""
    if not paths.database.exists():
        raise UsageError(f"There is nothing to back up: {paths.database} does not exist yet.")
    target = _target(options.to or None, paths)
    copy = target.with_name(f".{target.name}.db")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(copy_database, paths.database, copy)
        wrong, conversations = await asyncio.to_thread(_look, copy)
        contents = await asyncio.to_thread(write_backup, copy, paths, target)
    except (OSError, sqlite3.Error) as error:
        terminal.note(f"errand: No backup was made: {error}. Nothing was changed.")
        return EXIT_ERROR
    finally:
        copy.unlink(missing_ok=True)
    if wrong:
        terminal.note(f"errand: {target} was made, but the database is damaged: {wrong}. Run: errand doctor --repair")
        return EXIT_ERROR
    terminal.line(f"{target}: {_words(conversations, contents)}, {file_size(target.stat().st_size)}, whole.")
    terminal.line(f"Keys, long output and workspaces are not in it; they are in {paths.home}.")
    terminal.line(f"Back to it: errand restore {target}")
    return 0


def _words(conversations: int, contents: Contents) -> str:
    settings = " and your settings" if contents.has_settings else ""
    return f"{count(conversations, 'conversation')}, {count(contents.pictures, 'picture')}{settings}"


def _target(given: str | None, paths: Paths) -> Path:
    name = f"errand-backup-{datetime.now(UTC):%Y%m%dT%H%M%S}.tar"
    if given is None:
        return paths.copies / name
    target = Path(os.path.expanduser(given)).absolute()
    if target.is_dir():
        target = target / name
    try:
        check_replaceable(target, overwrite=False)
    except FileExistsError as error:
        raise UsageError(f"{target} exists already; give another name.") from error
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}. Give another name.") from error
    return target


def _look(file: Path) -> tuple[str, int]:
    wrong = fault(file)
    with closing(open_to_read(file)) as connection:
        (conversations,) = connection.execute("SELECT count(*) FROM conversations").fetchone()
        return wrong, int(conversations)

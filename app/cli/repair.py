"""`errand doctor --repair`: mends a damaged database, keeps the broken one, and says in words what is missing."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from app.cli.database_check import faults
from app.cli.options import Options
from app.cli.outcome import EXIT_ERROR
from app.cli.plain import plain
from app.cli.restore import put_in_place, sole_user
from app.cli.salvage import Piece, salvage
from app.cli.terminal import Terminal
from app.database_file import fault, new_epoch, open_to_read, revision
from app.paths import Paths

_MOST_NAMED = 20
_WORDS = {"conversations": "conversations", "nodes": "messages", "tasks": "tasks"}


async def repair(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Refuses while tasks run, unless `force`. Nothing is changed until the mended database is found to be whole."""
    if not paths.database.exists():
        terminal.line("There is no database yet, so there is nothing to repair.")
        return 0
    lock = await sole_user(paths, force=options.force)
    try:
        found = await asyncio.to_thread(faults, paths.database)
        if not found:
            terminal.line(f"{paths.database} is whole: there is nothing to repair.")
            return 0
        terminal.line(f"{paths.database} is damaged: {'; '.join(found)}")
        return await asyncio.to_thread(_repair, paths, terminal)
    finally:
        lock.release()


def _repair(paths: Paths, terminal: Terminal) -> int:
    copy = _newest_copy(paths)
    new = paths.database.with_name("errand.db.repaired")
    known = _known_nodes(paths.database)
    try:
        pieces = salvage(paths.database, copy, new)
        new_epoch(new)
        left = faults(new)
    except (OSError, sqlite3.Error) as error:
        pieces, left = (), (str(error),)
    if left:
        with suppress(OSError):
            new.unlink()
        terminal.line(f"It cannot be mended: {'; '.join(left)}. Nothing was changed.")
        terminal.line(_way_out(copy, paths))
        return EXIT_ERROR
    for line in (*_saved(pieces, copy), *_missing(new, known)):
        terminal.line(line)
    terminal.line(f"Mended. The broken file is kept: {put_in_place(new, paths)}")
    return 0


def _newest_copy(paths: Paths) -> Path | None:
    """The newest copy that is whole and of the same schema, made for whatever reason."""
    copies = sorted(paths.copies.glob("errand-*.db"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    schema = _schema(paths.database)
    for copy in copies:
        of_copy = _schema(copy)
        if of_copy is not None and schema in (None, of_copy) and "-replaced-" not in copy.name and not fault(copy):
            return copy
    return None


def _schema(file: Path) -> str | None:
    try:
        return revision(file)
    except sqlite3.DatabaseError:
        return None


def _way_out(copy: Path | None, paths: Paths) -> str:
    if copy is None:
        return f"There is no copy of it either. Move {paths.database} away to start anew; keep it."
    return f"Go back to the copy of {_date(copy)}: errand restore {copy}"


def _date(file: Path) -> str:
    return f"{datetime.fromtimestamp(file.stat().st_mtime, UTC).astimezone():%Y-%m-%d %H:%M}"


def _saved(pieces: tuple[Piece, ...], copy: Path | None) -> list[str]:
    told = [piece for piece in pieces if piece.table in _WORDS]
    lines = [f"Read from it: {', '.join(f'{piece.read:,} {_WORDS[piece.table]}' for piece in told)}."]
    filled = [f"{piece.from_copy:,} {_WORDS[piece.table]}" for piece in told if piece.from_copy]
    if copy is not None and filled:
        lines.append(f"Taken from the copy of {_date(copy)}: {', '.join(filled)}.")
    return lines


def _known_nodes(broken: Path) -> dict[str, set[int]] | None:
    """The messages of each conversation, from an index that may have outlived them; None where it has not."""
    query = "SELECT conversation_id, number FROM nodes INDEXED BY nodes_by_conversation"
    known: dict[str, set[int]] = {}
    try:
        with closing(open_to_read(broken)) as connection:
            for conversation_id, number in connection.execute(query):
                known.setdefault(str(conversation_id), set()).add(int(number))
    except sqlite3.DatabaseError:
        return None
    return known


def _missing(new: Path, known: dict[str, set[int]] | None) -> list[str]:
    """A line for each conversation that lost something."""
    with closing(open_to_read(new)) as connection:
        titles = {str(key): str(title) for key, title in connection.execute("SELECT id, title FROM conversations")}
        there = {int(row[0]) for row in connection.execute("SELECT number FROM nodes")}
    if known is None:
        gaps = max(there, default=0) - len(there)
        return [f"About {gaps:,} messages are missing; which ones cannot be told."] if gaps else []
    lost = {key: len(numbers - there) for key, numbers in known.items() if numbers - there}
    lines = [f"Missing: {_words(count)} of {_named(key, titles)}." for key, count in lost.items()]
    nameless = [key for key, title in titles.items() if title == "Recovered"]
    lines += [f"Recovered without its title: {key}." for key in nameless]
    if len(lines) > _MOST_NAMED:
        lines[_MOST_NAMED:] = [f"And {len(lines) - _MOST_NAMED:,} more like these."]
    return lines or ["Nothing is missing."]


def _named(conversation_id: str, titles: dict[str, str]) -> str:
    title = titles.get(conversation_id)
    return f"“{plain(title)}”" if title is not None else f"the conversation {conversation_id}, which is lost as a whole"


def _words(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"

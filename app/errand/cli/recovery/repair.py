"""`errand doctor --repair`: repairs a damaged database, keeps the broken one, and reports missing data."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

from errand.cli.exit_codes import EXIT_STOPPED, CommandError
from errand.cli.options import CommandOptions, Flag
from errand.cli.output import CommandOutput
from errand.cli.recovery.database_check import find_faults
from errand.cli.recovery.database_server import refuse_server
from errand.cli.recovery.restore import engine_lock, replace_database, restore_copy
from errand.cli.recovery.salvage import SalvagedTable, fill_search, salvage
from errand.cli.terminal.text import plain
from errand.system.database_file import (
    Loss,
    accept_missing_database,
    copy_database,
    date_text,
    find_fault,
    find_loss,
    list_copies,
    new_epoch,
    newest_event,
    open_to_read,
    revision,
)
from errand.system.paths import Paths
from errand.text.translation import tr

_MAX_LISTED_LINES = 20
_NAMES = {"conversations": "conversations", "nodes": "messages", "tasks": "tasks"}


class RepairOptions(CommandOptions, frozen=True, kw_only=True):
    yes: Annotated[bool, Flag("--yes", "with --repair: answer yes to all questions")] = False
    force: Annotated[bool, Flag("--force", "repair even if tasks are running; they are interrupted")] = False


async def repair(options: RepairOptions, paths: Paths, output: CommandOutput) -> int:
    """Refuses while tasks run, unless `force`. Changes nothing until the repaired database passes its checks."""
    refuse_server(paths, "pg_amcheck, or going back to a dump; the database is")
    if (loss := find_loss(paths.database, paths.copies)) is not None:
        output.line(loss.text)
        lines = [await _replace_lost(loss, options, paths, output)]
    elif not paths.database.exists():
        lines = [tr("There is no database yet, so there is nothing to repair.")]
    else:
        lines = await _mend(options, paths, output)
    output.result({"lines": lines}, *lines)
    return 0


async def _mend(options: RepairOptions, paths: Paths, output: CommandOutput) -> list[str]:
    lock = await engine_lock(paths, force=options.force)
    try:
        faults = await asyncio.to_thread(find_faults, paths.database)
        if not faults:
            return [tr("{database} is intact: there is nothing to repair.").format(database=paths.database)]
        output.line(tr("{database} is damaged: {names}").format(database=paths.database, names="; ".join(faults)))
        return await asyncio.to_thread(_repair, paths)
    finally:
        lock.release()


async def _replace_lost(loss: Loss, options: RepairOptions, paths: Paths, output: CommandOutput) -> str:
    """Ask how to replace a database that is missing or lacks its newest changes, and do it."""
    copy = await asyncio.to_thread(_newest_copy, paths)
    if copy is not None and _is_newer(copy, paths.database):
        question = tr("Restore the copy of {copy}?").format(copy=date_text(copy))
        if await _is_confirmed(output, question, f"errand restore {copy}", options):
            return (await restore_copy(str(copy), paths, force=options.force)).text
    question = tr("Continue with what there is?") if loss.what == "changes" else tr("Start with an empty database?")
    if not await _is_confirmed(output, question, "errand doctor --repair --yes", options):
        raise CommandError(tr("Nothing was changed."), EXIT_STOPPED)
    lock = await engine_lock(paths, force=options.force)
    try:
        if loss.what == "changes":
            new_epoch(paths.database)
            return tr("Errand continues with what there is.")
        accept_missing_database(paths.database)
        return tr("The next start creates a new one.")
    finally:
        lock.release()


def _is_newer(copy: Path, database: Path) -> bool:
    """Return whether the copy has events that the database lacks."""
    newest, copied = newest_event(database), newest_event(copy)
    return newest is None or (copied is not None and copied[0] == newest[0] and copied[1] > newest[1])


async def _is_confirmed(output: CommandOutput, question: str, command: str, options: RepairOptions) -> bool:
    """Ask for confirmation; raises `CommandError` that names the command if nobody can be asked."""
    if options.yes:
        return True
    if not output.interactive:
        raise CommandError(tr("{question} Then: {command}").format(question=question, command=command))
    return await output.is_confirmed(question)


def _repair(paths: Paths) -> list[str]:
    """Return what was repaired and what is missing, a line each; raises `CommandError`."""
    new = paths.database.with_name("errand.db.repaired")
    if _with_new_indexes(paths.database, new):
        return [tr("Only its indexes were damaged; they were rebuilt. Nothing is missing."), _replace(new, paths)]
    copy = _newest_copy(paths)
    nodes = _indexed_nodes(paths.database)
    try:
        tables = salvage(paths.database, copy, new)
        new_epoch(new)
        faults = find_faults(new)
    except (OSError, sqlite3.Error) as error:
        tables, faults = (), (str(error),)
    if faults:
        with suppress(OSError):
            new.unlink()
        text = tr("It cannot be repaired: {names}. Nothing was changed.").format(names="; ".join(faults))
        raise CommandError(f"{text}\n{_recovery_advice(copy, paths)}")
    return [*_saved_lines(tables, copy), *_missing_lines(new, nodes), _replace(new, paths)]


def _replace(new: Path, paths: Paths) -> str:
    return tr("Repaired. The damaged file is kept: {new}").format(new=replace_database(new, paths))


def _with_new_indexes(database: Path, new: Path) -> bool:
    """Rebuild the indexes in a copy, `new`; on failure `new` is deleted."""
    try:
        new.unlink(missing_ok=True)
        copy_database(database, new)
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("REINDEX")
            if find_faults(new):
                connection.execute("INSERT INTO node_search (node_search) VALUES ('delete-all')")
                connection.execute("DELETE FROM title_search")
                fill_search(connection)
        if not find_faults(new):
            return True
    except (OSError, sqlite3.Error):
        pass
    with suppress(OSError):
        new.unlink(missing_ok=True)
    return False


def _newest_copy(paths: Paths) -> Path | None:
    """Return the newest intact copy of any kind with the same schema."""
    schema = _schema(paths.database)
    for copy in list_copies(paths.database, paths.copies):
        of_copy = _schema(copy)
        if of_copy is not None and schema in (None, of_copy) and "-replaced-" not in copy.name and not find_fault(copy):
            return copy
    return None


def _schema(file: Path) -> str | None:
    try:
        return revision(file)
    except sqlite3.DatabaseError:
        return None


def _recovery_advice(copy: Path | None, paths: Paths) -> str:
    if copy is None:
        return tr("There is no copy either. To start with an empty database, move {database} away and keep it.").format(
            database=paths.database
        )
    return tr("Restore the copy of {copy}: errand restore {copy2}").format(copy=date_text(copy), copy2=copy)


def _saved_lines(tables: tuple[SalvagedTable, ...], copy: Path | None) -> list[str]:
    listed = [table for table in tables if table.table in _NAMES]
    lines = [
        tr("Recovered: {names}.").format(names=", ".join(f"{table.read:,} {_NAMES[table.table]}" for table in listed))
    ]
    filled = [f"{table.from_copy:,} {_NAMES[table.table]}" for table in listed if table.from_copy]
    if copy is not None and filled:
        lines.append(tr("From the copy of {copy}: {names}.").format(copy=date_text(copy), names=", ".join(filled)))
    return lines


def _indexed_nodes(broken: Path) -> dict[str, set[int]] | None:
    """Return the messages of each conversation, from an index that may be intact; None if it is not."""
    query = "SELECT conversation_id, number FROM nodes INDEXED BY nodes_by_conversation"
    nodes: dict[str, set[int]] = {}
    try:
        with closing(open_to_read(broken)) as connection:
            for conversation_id, number in connection.execute(query):
                nodes.setdefault(str(conversation_id), set()).add(int(number))
    except sqlite3.DatabaseError:
        return None
    return nodes


def _missing_lines(new: Path, nodes: dict[str, set[int]] | None) -> list[str]:
    """Return a line per conversation with missing data."""
    with closing(open_to_read(new)) as connection:
        titles = {str(key): str(title) for key, title in connection.execute("SELECT id, title FROM conversations")}
        present = {int(row[0]) for row in connection.execute("SELECT number FROM nodes")}
    if nodes is None:
        gaps = max(present, default=0) - len(present)
        return [tr("About {gaps:,} messages are missing; it is unknown which ones.").format(gaps=gaps)] if gaps else []
    lost = {key: len(numbers - present) for key, numbers in nodes.items() if numbers - present}
    lines = [
        tr("Missing: {count} of {key}.").format(count=_messages_text(count), key=_quoted_title(key, titles))
        for key, count in lost.items()
    ]
    nameless = [key for key, title in titles.items() if title == "Recovered"]
    lines += [tr("Recovered without its title: {key}.").format(key=key) for key in nameless]
    if len(lines) > _MAX_LISTED_LINES:
        lines[_MAX_LISTED_LINES:] = [tr("And {lines:,} more like these.").format(lines=len(lines) - _MAX_LISTED_LINES)]
    return lines or [tr("Nothing is missing.")]


def _quoted_title(conversation_id: str, titles: dict[str, str]) -> str:
    title = titles.get(conversation_id)
    return (
        f"“{plain(title)}”"
        if title is not None
        else tr("the conversation {conversation_id}, which is lost completely").format(conversation_id=conversation_id)
    )


def _messages_text(count: int) -> str:
    return tr("1 message") if count == 1 else tr("{count:,} messages").format(count=count)

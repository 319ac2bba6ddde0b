"""`errand restore`: replaces the database by a backup and keeps the previous one.

Adapts its paths to this machine.
"""

import asyncio
import os
import sqlite3
import tarfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.exit_codes import CommandError
from errand.cli.options import Argument, CommandOptions, Flag
from errand.cli.output import CommandOutput
from errand.cli.recovery.backup import open_backup, unpack_database, unpack_rest
from errand.cli.recovery.database_server import refuse_server
from errand.client.errors import ConnectionLost, NoEngine
from errand.client.launch import connect
from errand.protocol.base import EmptyParams, JsonObject, JsonValue
from errand.protocol.engine import ENGINE_SHUTDOWN, ENGINE_STATUS, EngineShutdownParams
from errand.system.database_file import (
    copy_database,
    find_fault,
    finish_replacement,
    move_database,
    new_epoch,
    replacement_path,
    revision,
)
from errand.system.file_lock import FileLock
from errand.system.paths import Paths
from errand.system.regular_file import NotRegularFile, flush_folder
from errand.text.translation import marked, tr, trn

# SQL filters for rows that may contain such paths; all tasks.
_ROWS = {"nodes": """body LIKE '%"type":"image"%'""", "conversations": "body LIKE '%/workspaces/%'", "tasks": "true"}

_INACTIVE_FIELDS: JsonObject = {"resumes": False, "retryAt": None}
# Our virtual tables, which our triggers write, other tables that they write, and our only view.
_INDEXES = frozenset(("node_search", "title_search"))
_OF_INDEXES = frozenset(("node_days", "node_unindexed"))
_VIEW = "node_texts"
# Open according to the column, which the engine queries, or to the task's own status.
_ASKS_OF_OPEN_TASKS = """SELECT asks.rowid FROM asks JOIN tasks ON tasks.id = asks.task_id
WHERE tasks.ended_at IS NULL
OR coalesce(json_extract(tasks.body, '$.activity.status'), json_extract(tasks.body, '$.status'), '')
NOT IN ('completed', 'cancelled', 'error')"""
_REQUESTS = """SELECT task_requests.rowid, tasks.conversation_id
FROM task_requests LEFT JOIN tasks ON tasks.id = task_requests.task_id"""
_WRITES = frozenset((sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE))

_ENDS_WITHIN_S = 10.0


def adapt_database(database: Path, paths: Paths) -> None:
    """Adapt the paths and tasks of a database that no other process uses. Existing folders keep their paths.

    Raises sqlite3.Error, also for a database with foreign triggers or views.
    """
    settled = {"nodes": _with_pictures, "conversations": _with_workspace, "tasks": _inactive_task}
    with closing(sqlite3.connect(database)) as connection, connection:
        _check_no_foreign_triggers(connection)
        for table, rows in _ROWS.items():
            numbers = connection.execute(f"SELECT rowid FROM {table} WHERE {rows}").fetchall()
            for (number,) in numbers:
                _rewrite_row(connection, table, number, lambda body, of=table: settled[of](body, paths))
        for number, conversation_id in _requests(connection):
            _rewrite_row(
                connection,
                "task_requests",
                number,
                lambda body, of=conversation_id: _with_local_workspace(_asking(body), of, paths),
            )
        for (number,) in connection.execute(_ASKS_OF_OPEN_TASKS).fetchall():
            _rewrite_row(connection, "asks", number, _without_answer)
            connection.execute("UPDATE asks SET status = json_extract(body, '$.status') WHERE rowid = ?", (number,))


def _requests(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the rows of the requests of tasks, each with its conversation; before revision 0017 tasks had them."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'task_requests'").fetchone():
        return []
    return connection.execute(_REQUESTS).fetchall()


def _check_no_foreign_triggers(connection: sqlite3.Connection) -> None:
    """Triggers in a foreign database would run on later writes: only those that maintain our indexes are allowed.

    SQLite's authorizer reports what a change of a table would trigger.
    """
    foreign: list[str] = []

    def look(action: int, table: str | None, _: str | None, __: str | None, trigger: str | None) -> int:
        if trigger is not None and action in _WRITES and table not in (*_INDEXES, *_OF_INDEXES):
            foreign.append(trigger)
        return sqlite3.SQLITE_OK

    declarations = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')"
    ).fetchall()
    for kind, name, sql in declarations:
        is_plain = kind == "table" and not sql.upper().startswith("CREATE VIRTUAL")
        if not (is_plain or name in _INDEXES or (kind, name) == ("view", _VIEW)):
            foreign.append(name)
    connection.set_authorizer(look)
    for table in [_quoted(name) for kind, name, _ in declarations if kind == "table"]:
        columns = [_quoted(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        connection.execute(f"EXPLAIN INSERT INTO {table} DEFAULT VALUES")
        connection.execute(f"EXPLAIN UPDATE {table} SET {', '.join(f'{column} = NULL' for column in columns)}")
        connection.execute(f"EXPLAIN DELETE FROM {table}")
    connection.set_authorizer(None)
    if foreign:
        raise sqlite3.DatabaseError(f"it is made to change its records by itself ({foreign[0]!r})")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rewrite_row(
    connection: sqlite3.Connection, table: str, number: int, rewrite: Callable[[JsonObject], JsonObject]
) -> None:
    (text,) = connection.execute(f"SELECT body FROM {table} WHERE rowid = ?", (number,)).fetchone()
    new = msgspec.json.encode(rewrite(msgspec.json.decode(text, type=JsonObject))).decode()
    if new != text:  # also for a duplicate name: SQLite reads the first, the engine the last
        connection.execute(f"UPDATE {table} SET body = ? WHERE rowid = ?", (new, number))


def _with_pictures(node: JsonObject, paths: Paths) -> JsonObject:
    blocks = node.get("blocks")
    return {**node, "blocks": [_picture(block, paths) for block in blocks]} if isinstance(blocks, list) else node


def _picture(block: JsonValue, paths: Paths) -> JsonValue:
    """Return a block with adapted picture paths, including those in tool results."""
    if not isinstance(block, dict):
        return block
    images = block.get("images")
    if isinstance(images, list):
        return {**block, "images": [_picture(image, paths) for image in images]}
    return {**block, "path": _copy(block["path"], paths)} if block.get("type") == "image" and "path" in block else block


def _copy(path: JsonValue, paths: Paths) -> JsonValue:
    """Copies of pictures are in a folder named by their content, which is the same in each data folder."""
    if not isinstance(path, str) or Path(path).parent.parent.name != paths.attachments.name:
        return path
    return str(paths.attachments / Path(path).parent.name / Path(path).name)


def _with_workspace(conversation: JsonObject, paths: Paths) -> JsonObject:
    return _with_local_workspace(_asking(conversation), conversation.get("id"), paths)


def _asking(record: JsonObject) -> JsonObject:
    """Return a task or conversation that is allowed nothing without a person."""
    changed: JsonObject = {"approve": "ask"} if record.get("approve") in ("all", "edits", "auto") else {}
    return {**record, **changed, **({"network": "asked"} if record.get("network") == "on" else {})}


def _inactive_task(task: JsonObject, paths: Paths) -> JsonObject:
    """Return the task in a waiting state, with approval by a person, which a task that repeats it inherits."""
    conversation_id, queue = task.get("conversationId"), task.get("queue")
    task = _in_group(task, "activity", _not_resuming)
    task = _in_group(task, "options", _asking)
    task = _in_group(task, "request", lambda request: _with_local_workspace(_asking(request), conversation_id, paths))
    return (
        {**task, "queue": [_with_local_attachments(entry, paths) for entry in queue]}
        if isinstance(queue, list)
        else task
    )


def _in_group(task: JsonObject, name: str, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Return the task with a group changed; before revision 0016 a task had the fields of its groups itself.

    Which of the two it is must be decided as the migration does: by `activity` alone.
    """
    if not isinstance(task.get("activity"), dict):
        return change(task)
    group = task.get(name)
    return {**task, name: change(group)} if isinstance(group, dict) else task


def _not_resuming(activity: JsonObject) -> JsonObject:
    return activity | {name: rest for name, rest in _INACTIVE_FIELDS.items() if activity.get(name)}


def _without_answer(ask: JsonObject) -> JsonObject:
    return {**ask, "status": "cancelled"} if ask.get("status") == "answered" else ask


def _with_local_attachments(entry: JsonValue, paths: Paths) -> JsonValue:
    attached = entry.get("attachments") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(attached, list):
        return entry
    return {**entry, "attachments": [_copy(path, paths) for path in attached]}


def _with_local_workspace(body: JsonObject, conversation_id: JsonValue, paths: Paths) -> JsonObject:
    """Map a default workspace to this data folder; creates an empty one if it was not restored."""
    workspace = body.get("workspace")
    if not isinstance(workspace, str) or not isinstance(conversation_id, str) or Path(workspace).is_dir():
        return body
    if Path(workspace).parts[-2:] != (paths.workspaces.name, conversation_id):
        return body
    own = paths.workspaces / conversation_id
    own.mkdir(mode=0o700, exist_ok=True)
    return {**body, "workspace": str(own)}


class RestoreOptions(CommandOptions, frozen=True, kw_only=True):
    file: Annotated[str, Argument("FILE", "a backup file, or a daily copy from the folder `copies`")]
    force: Annotated[bool, Flag("--force", "restore even if tasks are running; they are interrupted")] = False


@dataclass(frozen=True, slots=True)
class Restored:
    """The copy that replaced the database, the file with the previous one, and a text about both."""

    file: str
    previous: str | None
    text: str


async def restore(options: RestoreOptions, paths: Paths, output: CommandOutput) -> int:
    restored = await restore_copy(options.file, paths, force=options.force)
    output.result(restored, restored.text)
    return 0


async def restore_copy(file: str, paths: Paths, *, force: bool) -> Restored:
    """Replace the database by a copy, which is checked first; refuses while tasks run, unless `force` interrupts them.

    Raises `CommandError`.
    """
    refuse_server(paths, "with an empty database, pg_restore --no-owner errand.dump --dbname")
    paths.prepare()
    source = _absolute(file)
    unpacked = paths.home / ".errand.db.unpacked"
    is_backup = _is_backup(source)
    new = paths.database.with_name("errand.db.restoring")
    try:
        database = _checked(_database_of(source, unpacked) if is_backup else source, source, paths)
        await asyncio.to_thread(_prepare, database, new, paths)
    except (OSError, sqlite3.Error, tarfile.TarError) as error:
        new.unlink(missing_ok=True)
        text = tr("{file} cannot be restored: {error}. Nothing was changed.")
        raise CommandError(text.format(file=source, error=error)) from error
    finally:
        unpacked.unlink(missing_ok=True)
    try:
        lock = await engine_lock(paths, force=force)
    except BaseException:
        new.unlink()
        raise
    try:
        previous = replace_database(new, paths)
        files_text = _restore_files(source, paths) if is_backup else ""
    finally:
        lock.release()
    text = tr("Restored from {file}.{files}").format(file=source, files=files_text)
    if previous is not None:
        text += tr(" The previous database is kept: {kept}").format(kept=previous)
    return Restored(str(source), str(previous) if previous is not None else None, text)


RESTORE = Command(RestoreOptions, restore, json_help=marked("print what was restored as one JSON object"))


def _absolute(path: str) -> Path:
    return Path(os.path.expanduser(path)).absolute()


def _is_backup(file: Path) -> bool:
    """Return whether the file is a backup with all files; the other format is a copy of the database alone."""
    try:
        with open_backup(file):
            return True
    except NotRegularFile as error:
        raise UsageError(
            tr("{file} cannot be restored: {strerror}.").format(file=file, strerror=error.strerror)
        ) from error
    except (OSError, tarfile.TarError):
        return False


def _database_of(backup: Path, unpacked: Path) -> Path:
    if not unpack_database(backup, unpacked):
        raise UsageError(tr("{backup} is not an Errand backup. Nothing was changed.").format(backup=backup))
    return unpacked


def _restore_files(backup: Path, paths: Paths) -> str:
    """Restore pictures and settings after the database; errors are reported and do not undo it."""
    previous = paths.copies / f"settings-replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.json"
    try:
        contents = unpack_rest(backup, paths, previous)
    except (OSError, tarfile.TarError) as error:
        return tr(" Some pictures or settings could not be restored: {error}.").format(error=error)
    pictures = (
        tr(" Restored {pictures}.").format(pictures=trn("{n} picture", "{n} pictures", contents.pictures))
        if contents.pictures
        else ""
    )
    before = tr(" (previous ones: {kept})").format(kept=previous) if previous.exists() else ""
    settings = tr(" The settings were restored{before}.").format(before=before) if contents.has_settings else ""
    if contents.left_out:
        names = ", ".join(contents.left_out)
        settings += tr(" The backup has other addresses than are set here; these were not changed: {names}.").format(
            names=names
        )
    return pictures + settings


async def engine_lock(paths: Paths, *, force: bool) -> FileLock:
    """Shut down the running engine and prevent another start; UsageError while tasks run, without `force`."""
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
        pass  # it ended before it could answer
    finally:
        await connection.close()
    return await _engine_lock(paths)


def replace_database(new: Path, paths: Paths) -> Path | None:
    """Replace the database by `new` and return the path of the previous one. The caller holds the engine's lock."""
    previous = paths.copies / f"errand-replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.db"
    had_one = paths.database.exists()
    move_database(new, replacement_path(paths.database))
    move_database(paths.database, previous)
    finish_replacement(paths.database)
    flush_folder(paths.copies)
    flush_folder(paths.home)
    return previous if had_one else None


async def _engine_lock(paths: Paths) -> FileLock:
    """Taken as soon as the engine has ended: an open window would start the next one."""
    give_up_at = time.monotonic() + _ENDS_WITHIN_S
    while (lock := FileLock.acquire(paths.lock)) is None:
        if time.monotonic() > give_up_at:
            raise UsageError(
                tr("The engine does not end, or was started again. Close all Errand windows and try again.")
            )
        await asyncio.sleep(0.005)  # a lock of another process sets no event
    return lock


def _checked(file: Path, given: Path, paths: Paths) -> Path:
    """UsageError for a file that must not replace the database; `given` is its name in messages."""
    if not file.is_file():
        raise UsageError(tr("There is no file {given}. Copies: {copies}").format(given=given, copies=paths.copies))
    if paths.database.exists() and file.samefile(paths.database):
        raise UsageError(tr("{given} is the database itself.").format(given=given))
    try:
        schema = revision(file)
        wrong = find_fault(file) if schema is not None else ""
        present = revision(paths.database) if paths.database.exists() else None
    except sqlite3.Error as error:
        if "malformed" not in str(error) and tr("not a database") not in str(error):
            raise UsageError(
                tr("{given} cannot be read: {error}. Nothing was changed.").format(given=given, error=error)
            ) from error
        schema, wrong, present = "", str(error), None
    if schema is None:
        raise UsageError(tr("{given} is not an Errand database. Nothing was changed.").format(given=given))
    if wrong:
        raise UsageError(
            tr("{given} is damaged: {wrong}. Nothing was changed. Try another copy from {copies}").format(
                given=given, wrong=wrong, copies=paths.copies
            )
        )
    if present is not None and schema > present:
        raise UsageError(
            tr(
                "{given} was written by a newer version of Errand (schema {schema}; the current "
                "database has {present}). Nothing was changed. Install the newer version first."
            ).format(given=given, schema=schema, present=present)
        )
    return file


def _prepare(file: Path, new: Path, paths: Paths) -> None:
    new.unlink(missing_ok=True)
    copy_database(file, new)
    new_epoch(new)
    adapt_database(new, paths)

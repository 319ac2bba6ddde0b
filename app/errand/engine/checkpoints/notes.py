"""Notes of changes about to be made, which the events of the changes follow a moment later.

After a crash, the changes whose events were not committed any more are published from their notes.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.disk import OTHER, read_version, remove_unfinished
from errand.engine.core.errors import EngineError
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.protocol.changes import FOLDER, NOTHING, UNKEPT, Change
from errand.protocol.events import ChangeUpdate

_log = logging.getLogger(__name__)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Change)

# Events are committed long before.
_KEPT = timedelta(hours=1)


def note_of(change: Change) -> bytes:
    return _ENCODER.encode(change)


def noted_changes(contents: ContentStore) -> list[Change]:
    """Return all noted changes. Raises OSError."""
    return _decoded(contents.notes())


def commands_under_way(contents: ContentStore) -> list[Change]:
    """Return the records by which commands are known that began and did not end. Raises OSError."""
    return _decoded(contents.running_commands())


def _decoded(notes: Mapping[str, bytes]) -> list[Change]:
    changes: list[Change] = []
    for name, body in notes.items():
        try:
            changes.append(_DECODER.decode(body))
        except msgspec.MsgspecError as error:
            _log.warning("the note %s cannot be read: %s", name, error)
    return changes


def contents_in(changes: Iterable[Change]) -> frozenset[str]:
    """Return the ids of contents that changes name."""
    return frozenset(content_id for change in changes for content_id in (change.before, change.after)) - {
        NOTHING,
        FOLDER,
        UNKEPT,
    }


def drop_old(contents: ContentStore) -> None:
    """Drop the notes whose events were committed long ago, but not those of commands that run. Raises OSError."""
    before = datetime.now(UTC) - _KEPT
    contents.drop_notes(
        [change.id for change in noted_changes(contents) if change.at < before and not _is_running(change)]
    )


def _is_running(change: Change) -> bool:
    """Return True for the note of a file that a command names, until that has ended."""
    return change.kind == "command" and change.after == change.before


async def publish_noted(log: EventLog, database: Database, contents: ContentStore, before: datetime) -> None:
    """Publish the changes of engines before this time that were only noted, then drop their notes."""
    try:
        noted = [change for change in await asyncio.to_thread(noted_changes, contents) if change.at < before]
        for change in noted:
            task = None if await database.changes.exists(change.id) else await database.tasks.get(change.task_id)
            completed = None if task is None else await _completed(change, Path(task.request.workspace), contents)
            if completed is not None:
                log.publish(ChangeUpdate(change=completed))
        await _remove_unfinished(noted, contents)
        if noted:
            await log.flush()
            await asyncio.to_thread(contents.drop_notes, [change.id for change in noted])
    except (EngineError, OSError) as error:
        _log.warning("changes of an earlier engine may be missing: %s", error)


async def _remove_unfinished(noted: Sequence[Change], contents: ContentStore) -> None:
    """Remove what killed engines left half written beside the files that they were changing."""
    in_folder: defaultdict[Path, list[Change]] = defaultdict(list)
    for change in noted:
        if change.after not in (NOTHING, FOLDER, UNKEPT):
            in_folder[Path(change.path).parent].append(change)
    for folder, changes in in_folder.items():
        try:
            removed = await in_workspace(folder, partial(remove_unfinished, folder, changes, contents))
        except (EngineError, OSError) as error:
            _log.info("unfinished files in %s were not looked for: %s", folder, error)
        else:
            if removed:
                _log.info("removed %d unfinished files of an earlier engine in %s", removed, folder)


async def _completed(change: Change, workspace: Path, contents: ContentStore) -> Change | None:
    """Return the change by a command that was running, with the file's content of now; None if that is the same."""
    if not _is_running(change):
        return change

    def compare() -> Change | None:
        now = read_version(Path(change.path))
        if now.content in (change.before, OTHER):
            return None
        if now.data is not None:
            contents.put(now.data)
        return msgspec.structs.replace(change, after=now.content, mode_after=now.mode)

    try:
        return await in_workspace(workspace, compare)
    except (EngineError, OSError) as error:
        _log.warning("what a command changed in %s is not known: %s", change.path, error)
        return None

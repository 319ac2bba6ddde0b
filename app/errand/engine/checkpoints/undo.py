"""Lists, compares, undoes and redoes what tasks changed in files."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.disk import OTHER, read_version, restore, restore_folder_mode
from errand.engine.checkpoints.history import CannotRestore, Direction, FileHistory, Version
from errand.engine.checkpoints.notes import (
    commands_under_way,
    contents_in,
    drop_old,
    note_of,
    noted_changes,
    publish_noted,
)
from errand.engine.checkpoints.summary import changes_of, diff_of, hunk_undone, line_counts, name_of, renamed_diff
from errand.engine.core.errors import EngineError, InvalidParams, NotFound
from errand.engine.core.ids import new_id
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.protocol.changes import (
    FOLDER,
    NOTHING,
    UNKEPT,
    Change,
    ChangeConflict,
    ChangeDiffParams,
    ChangeDiffResult,
    ChangeKind,
    ChangeListResult,
    ChangeUndoParams,
    ChangeUndoResult,
    TaskChanges,
)
from errand.protocol.events import ChangeUpdate
from errand.protocol.tasks.task import Task

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Comparing or restoring hundreds of files takes longer than a look at one.
_PATIENCE_S = 60.0
_PRUNE_EVERY_S = 86_400.0
# Of workspaces in which no command begins.
_BASELINES_KEPT_S = 86_400.0


@dataclass(frozen=True, slots=True)
class _Plan:
    """A file that is about to get another version."""

    change: Change
    version: Version


class Checkpoints:
    """Answers `change/…`. Undoing is allowed while a task works: its tools notice that a file is another one."""

    def __init__(self, log: EventLog, database: Database, baselines: Baselines) -> None:
        self._log = log
        self._database = database
        self.baselines = baselines
        self.contents = baselines.contents
        self._lock = asyncio.Lock()
        self._is_recovered = asyncio.Event()
        self._started_at = datetime.now(UTC)

    async def recover(self) -> None:
        """After a start, before anything is answered: publish what a killed engine could only note."""
        try:
            await self._recover_commands()
            await publish_noted(self._log, self._database, self.contents, self._started_at)
        finally:
            self._is_recovered.set()

    async def _recover_commands(self) -> None:
        """Note what commands have changed that ran when an engine was killed."""
        try:
            for command in await asyncio.to_thread(commands_under_way, self.contents):
                task = await self._database.tasks.get(command.task_id)
                await self.baselines.recover(command, keeps_changes=task is not None)
        except (EngineError, OSError) as error:
            _log.warning("what commands of an earlier engine changed may be missing: %s", error)

    async def changes(self, task_id: str | None, conversation_id: str | None) -> ChangeListResult:
        """Return the changes of a task or of a conversation. Raises `InvalidParams` unless one of them is named."""
        await self._end_of_undo()
        if (task_id is None) == (conversation_id is None):
            raise InvalidParams("Name a task or a conversation.")
        if task_id is not None:
            tasks: Sequence[Task] = (await self._task(task_id),)
        else:
            assert conversation_id is not None
            await self._is_recovered.wait()
            changed = await self._database.changes.task_ids(conversation_id)
            all_tasks = await self._database.tasks.of_conversation(conversation_id) if changed else ()
            tasks = [task for task in all_tasks if task.id in changed]
        changed_tasks = [await self._changes(task) for task in tasks]
        return ChangeListResult(tasks=tuple(task_changes for task_changes in changed_tasks if task_changes.files))

    async def diff(self, params: ChangeDiffParams) -> ChangeDiffResult:
        await self._end_of_undo()
        task = await self._task(params.task_id)

        def compare(histories: list[FileHistory]) -> ChangeDiffResult:
            chosen = [history for history in histories if params.path in (None, history.path)]
            _check_found(chosen, params.path)
            if params.renames and params.path is not None and params.step is None:
                renamed = renamed_diff(histories, params.path, task.request.workspace)
                if renamed is not None:
                    return ChangeDiffResult(files=(renamed,))
            return diff_of(chosen, task.request.workspace, params.step, previews=params.path is not None)

        return await self._with_histories(task, compare)

    async def undo(self, params: ChangeUndoParams, by: str) -> ChangeUndoResult:
        return await self._change(params, by, "undo")

    async def redo(self, params: ChangeUndoParams, by: str) -> ChangeUndoResult:
        return await self._change(params, by, "redo")

    async def run_pruning(self, days: Callable[[], int]) -> None:
        """Prune now and once a day."""
        while True:
            await self.prune(days())
            await asyncio.sleep(_PRUNE_EVERY_S)

    async def prune(self, days: int) -> None:
        """Delete contents that no change of the last days names."""
        await self._is_recovered.wait()
        used = await self._database.changes.contents(datetime.now(UTC) - timedelta(days=days))
        await asyncio.to_thread(self._prune, used)

    def _prune(self, used: frozenset[str]) -> None:
        try:
            drop_old(self.contents)
            self.baselines.forget(_BASELINES_KEPT_S)
            self.contents.prune(used | contents_in(noted_changes(self.contents)))
        except OSError as error:
            _log.warning("old contents were not deleted: %s", error)

    async def _end_of_undo(self) -> None:
        """An undo under way is announced before its files are written."""
        async with self._lock:
            pass

    async def _changes(self, task: Task) -> TaskChanges:
        return await self._with_histories(task, partial(changes_of, task))

    async def _task(self, task_id: str) -> Task:
        await self._is_recovered.wait()
        task = await self._database.tasks.get(task_id)
        if task is None:
            raise NotFound(f"There is no task {task_id!r}.")
        return task

    async def _with_histories(self, task: Task, work: Callable[[list[FileHistory]], T]) -> T:
        """Call `work` with the files that a task changed, as they are now, in a thread."""
        of_path: defaultdict[str, list[Change]] = defaultdict(list)
        for change in await self._database.changes.of_files(task.id):
            of_path[change.path].append(change)

        def run() -> T:
            histories = [
                FileHistory(task.id, records, _content_at(path), self.contents) for path, records in of_path.items()
            ]
            histories.sort(key=lambda history: history.units[0].at if history.units else datetime.now(UTC))
            return work([history for history in histories if history.units])

        return await in_workspace(Path(task.request.workspace), run, _PATIENCE_S)

    async def _change(self, params: ChangeUndoParams, by: str, direction: Direction) -> ChangeUndoResult:
        """Plan for all files, commit the plan, then write: after a crash the records tell what was meant.

        A file that cannot be changed is named, and does not keep the others from it.
        """
        task = await self._task(params.task_id)
        async with self._lock:
            plans, conflicts = await self._with_histories(
                task, partial(self._plan, task=task, params=params, by=by, direction=direction)
            )
            if not plans:
                return ChangeUndoResult(changes=(), conflicts=tuple(conflicts))
            workspace = Path(task.request.workspace)
            paths = [plan.change.path for plan in plans]
            await in_workspace(workspace, partial(self.baselines.before_write, paths), _PATIENCE_S)
            try:
                for plan in plans:
                    self._log.publish(ChangeUpdate(change=plan.change))
                await self._log.flush()
            except EngineError:
                self._written(plans, {plan.change for plan in plans})
                raise
            failures = await in_workspace(workspace, partial(self._write, plans), _PATIENCE_S)
            for change in failures:
                self._log.publish(ChangeUpdate(change=msgspec.structs.replace(change, failed=True)))
            await self._log.flush()
        return ChangeUndoResult(
            changes=tuple(plan.change for plan in plans if plan.change not in failures),
            conflicts=(
                *conflicts,
                *(
                    ChangeConflict(path=change.path, name=name_of(change.path, task.request.workspace), text=text)
                    for change, text in failures.items()
                ),
            ),
        )

    def _write(self, plans: list[_Plan]) -> dict[Change, str]:
        """Restore the files one after another; returns those that failed, with the reason."""
        # Their rows are committed; the notes tell the next engine where it may find a file half written.
        try:
            self.contents.put(notes={plan.change.id: note_of(plan.change) for plan in plans})
        except OSError:
            self._written(plans, {plan.change for plan in plans})
            raise
        failures = _restore_all(plans)
        self._written(plans, failures)
        return failures

    def _written(self, plans: list[_Plan], failed: Container[Change]) -> None:
        """Tell the baselines what was written, without the changes that failed."""
        for plan in plans:
            self.baselines.after_write(plan.change.path, None if plan.change in failed else plan.change.after)

    def _plan(
        self, histories: list[FileHistory], task: Task, params: ChangeUndoParams, by: str, direction: Direction
    ) -> tuple[list[_Plan], list[ChangeConflict]]:
        plans: list[_Plan] = []
        conflicts: list[ChangeConflict] = []
        chosen = [history for history in histories if params.path in (None, history.path)]
        _check_found(chosen, params.path)
        for history in chosen:
            try:
                plan = self._plan_file(history, task, params, by, direction)
            except (CannotRestore, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                text = f"{name_of(history.path, task.request.workspace)} was left as it is: {reason}."
                conflicts.append(
                    ChangeConflict(path=history.path, name=name_of(history.path, task.request.workspace), text=text)
                )
            except _ChangedSince as error:
                name = name_of(history.path, task.request.workspace)
                text = f"{name} was changed since by {error}."
                conflicts.append(ChangeConflict(path=history.path, name=name, text=text, can_overwrite=True))
            except _Gone as error:
                name = name_of(history.path, task.request.workspace)
                text = f"{name} is gone: {error} deleted or moved it."
                conflicts.append(
                    ChangeConflict(path=history.path, name=name, text=text, can_overwrite=True, is_gone=True)
                )
            else:
                plans += [plan] if plan is not None else []
        if not plans and not conflicts:
            raise NotFound(f"There is nothing to {direction}.")
        plans.sort(key=_order)
        return plans, conflicts

    def _plan_file(
        self, history: FileHistory, task: Task, params: ChangeUndoParams, by: str, direction: Direction
    ) -> _Plan | None:
        """Return what to do with a file; None if the request does not concern it."""
        units = _units(history, params, direction)
        if params.path is None and any(unit.before == UNKEPT for unit in units):
            return None  # the list says that it cannot be undone
        is_hunk = params.hunk is not None and direction == "undo"
        if not units and not is_hunk:
            return None
        if history.current == OTHER:
            raise CannotRestore(_reason_of_other(Path(history.path)))
        now = read_version(Path(history.path))
        if now.content != history.current:
            raise CannotRestore("it was changed at this moment; look at it again")
        is_gone = history.is_changed_since and now.content == NOTHING
        is_kept = history.is_changed_since and not params.overwrite
        who = "another task" if history.changed_by else "somebody else"
        if is_kept and params.hunk is None and not is_gone:
            raise _ChangedSince(who)
        mode = history.own[-1].mode_after if is_gone else now.mode
        start = Version(history.head, mode=mode)
        kind: ChangeKind = direction
        if is_hunk:
            assert params.hunk is not None
            if now.content == NOTHING and not history.own:  # nothing of the task is left
                raise CannotRestore("it is gone already")
            kind, version = "hunk", hunk_undone(history, params.hunk, mode)
        elif all(unit.kind == "hunk" for unit in units):
            kind, version = "undo", history.without(units, start)
        elif direction == "undo":
            version = history.without(units, start)
        else:
            version = history.with_again(units, start)
        if is_gone and version.content == NOTHING:
            raise CannotRestore("it is gone already")
        if is_gone and is_kept:
            raise _Gone(who)
        if is_kept:
            both = history.with_changes_since(version, now)
            if both is None:
                raise _ChangedSince(f"{who}, in the same lines")
            version = both
        self.contents.put(*(data for data in (now.data, version.data) if data is not None))
        added, removed = line_counts(now.data, version.data)
        change = Change(
            id=new_id("change"),
            task_id=task.id,
            conversation_id=task.conversation_id,
            step=params.step or (units[-1].step if units else history.units[-1].step),
            kind=kind,
            path=history.path,
            at=datetime.now(UTC),
            before=now.content,
            after=version.content,
            mode=now.mode,
            mode_after=version.mode,
            made_folders=version.made_folders,
            added=added,
            removed=removed,
            changes=tuple(unit.id for unit in units),
            by=by,
        )
        return _Plan(change, version)


def _reason_of_other(path: Path) -> str:
    if path.is_symlink():
        return "it is a symbolic link, and undo changes only files and folders; remove it by hand if it is not wanted"
    return "there is no file any more that could be changed, or it is too large"


def _order(plan: _Plan) -> int:
    """Return the key that orders changes: a folder is emptied before it is removed, and made before it is filled."""
    length = len(plan.change.path)
    return -length if plan.version.content == NOTHING else length


class _ChangedSince(Exception):
    """Somebody else changed the file; the text says who."""


class _Gone(Exception):
    """Somebody else deleted or moved the file; the text says who."""


def _units(history: FileHistory, params: ChangeUndoParams, direction: Direction) -> list[Change]:
    """Return the changes that a command concerns. To redo hunks is to take the changes back that undid them."""
    hunks = [unit for unit in history.active if unit.kind == "hunk"]
    if params.hunk is not None:
        return [unit for unit in hunks if unit.id == params.hunk and direction == "redo"]
    units = history.active if direction == "undo" else history.inactive
    if params.step is not None:
        return [unit for unit in units if unit.step == params.step and unit.kind != "hunk"]
    if direction == "undo" and history.base == history.head:
        return []
    return units if units or direction == "undo" else hunks


def _restore_all(plans: list[_Plan]) -> dict[Change, str]:
    failures: dict[Change, str] = {}
    for plan in plans:
        path = Path(plan.change.path)
        try:
            restore(path, plan.version, plan.change.before)
        except CannotRestore as error:
            failures[plan.change] = f"{path.name} was left as it is: {error}."
        except OSError as error:
            failures[plan.change] = f"{path.name} was left as it is: {error.strerror or error}."
    for plan in reversed(plans):
        path, mode = Path(plan.change.path), plan.version.mode
        if plan.version.content == FOLDER and mode is not None and plan.change not in failures:
            try:
                restore_folder_mode(path, mode)
            except OSError as error:
                _log.warning("the permissions of %s were not restored: %s", path, error)
    return failures


def _content_at(path: str) -> str:
    try:
        return read_version(Path(path)).content
    except OSError:
        return OTHER


def _check_found(histories: list[FileHistory], path: str | None) -> None:
    if not histories:
        raise NotFound(f"This task has not changed {path}." if path is not None else "This task has changed no files.")

"""Finds the tasks that came to nothing: what their agents and tools said ranks last."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

from errand.engine.memory.index import Transaction, WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.storage.database import Database
from errand.protocol.changes import Change
from errand.protocol.events import ChangeUpdate, Event, TaskUpdate
from errand.protocol.tasks.task import Task

_AT_ONCE = 50
# Ends that are `completed`, and no success.
_NO_SUCCESS = ("undeclared", "no_work", "refused", "cut", "no_answer")
_OF_TASKS = ("edit", "command")


class FutileTasks:
    """Follows how tasks end and what is undone of them, and keeps the index told. The index has no other source."""

    def __init__(self, database: Database, index: IndexThread) -> None:
        self._database = database
        self._index = index
        self._to_judge: dict[str, None] = {}

    @property
    def waiting(self) -> int:
        """The number of tasks that are to be judged."""
        return len(self._to_judge)

    def follow(self, event: Event) -> bool:
        """Take an event, once it is stored; return True if a task is to be judged."""
        if isinstance(event, TaskUpdate) and event.task.outcome.ended_at is not None:
            self.look_at((event.task.id,))
        elif isinstance(event, ChangeUpdate) and event.change.kind not in _OF_TASKS:
            self.look_at((event.change.task_id,))
        else:
            return False
        return True

    def look_at(self, task_ids: Iterable[str]) -> None:
        self._to_judge.update(dict.fromkeys(task_ids))

    async def settle(self) -> None:
        """Judge some of the tasks that wait for it. Raises `IndexUnavailable`; they wait on then."""
        task_ids = tuple(islice(self._to_judge, _AT_ONCE))
        if not task_ids:
            return
        futile = {task_id: await self._is_futile(task_id) for task_id in task_ids}
        await self._index.run(partial(_mark, futile))
        for task_id in task_ids:
            self._to_judge.pop(task_id, None)

    async def _is_futile(self, task_id: str) -> bool:
        task = await self._database.tasks.get(task_id)
        if task is None or task.outcome.ended_at is None:
            return False
        return failed(task) or all_undone(task_id, await self._database.changes.of_files(task_id))


def _mark(futile: Mapping[str, bool], index: WordIndex) -> None:
    changes = (
        (
            "INSERT OR IGNORE INTO futile_tasks VALUES (?)",
            [task_id for task_id, is_futile in futile.items() if is_futile],
        ),
        (
            "DELETE FROM futile_tasks WHERE task_id = ?",
            [task_id for task_id, is_futile in futile.items() if not is_futile],
        ),
    )
    with Transaction(index.connection):
        for statement, task_ids in changes:
            index.connection.executemany(statement, ((task_id,) for task_id in task_ids))


def failed(task: Task) -> bool:
    """Return True if a task ended with an error, or without the work that it was to do (decision 83)."""
    return task.outcome.stop_reason == "error" or task.outcome.completion in _NO_SUCCESS


def all_undone(task_id: str, changes: Sequence[Change]) -> bool:
    """Return True if a task changed files, and each of its changes is undone. `changes` are in their order."""
    undone: set[str] = set()
    for change in changes:
        if change.kind == "undo":
            undone.update(change.changes)
        elif change.kind == "redo":
            undone.difference_update(change.changes)
    own = {change.id for change in changes if change.task_id == task_id and change.kind in _OF_TASKS}
    return bool(own) and own <= undone

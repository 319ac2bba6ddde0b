"""Tasks, and the system prompt of each.

A task has two rows: its request, written once, and all else, written with each change. `TASK_BODY` reads both as one.
"""

from collections.abc import Collection

import msgspec
from sqlalchemy import bindparam, func, literal, select, tuple_

from errand.engine.storage.sql.reader import Reader, cursor_at, parse_cursor
from errand.engine.storage.sql.statements import Write, from_json, to_json, to_text, upsert
from errand.engine.storage.sql.tables import prompts, task_requests, tasks
from errand.protocol.agents import Agent
from errand.protocol.base import Wire
from errand.protocol.context import PromptPart
from errand.protocol.tasks.methods import TaskListResult
from errand.protocol.tasks.task import Task

_CHANGING = tuple(field for field in msgspec.structs.fields(Task) if field.name != "request")
_TaskRow = msgspec.defstruct(
    "_TaskRow", [(field.name, field.type) for field in _CHANGING], bases=(Wire,), frozen=True, kw_only=True
)

_request = select(task_requests.c.body).where(task_requests.c.task_id == tasks.c.id).scalar_subquery()
_before_request = literal(',"request":', literal_execute=True)
# The JSON of a whole task. A row that cannot be read, or whose request is lost, is what it is.
TASK_BODY = func.coalesce(
    func.substr(tasks.c.body, 1, func.length(tasks.c.body) - 1)
    .concat(_before_request)
    .concat(_request)
    .concat(literal("}", literal_execute=True)),
    tasks.c.body,
).label("body")

_SAVE_PROMPT = upsert(prompts, ["task_id"], ["parts"])
_OF_TASK = select(prompts.c.parts).where(prompts.c.task_id == bindparam("task_id"))

# A change of `ended_at` changes the index of active tasks, and ends what waits for the end of a task.
_SAVE = upsert(tasks, ["id"], ["status", "body"])
_SAVE_ENDED = upsert(tasks, ["id"], ["status", "ended_at", "body"])
# Unchanged except when the task is resumed.
_SAVE_REQUEST = upsert(task_requests, ["task_id"], ["body"], only_if="excluded.body <> task_requests.body")
_ONE = select(TASK_BODY).where(tasks.c.id == bindparam("id"))
_NEWEST = select(TASK_BODY, tasks.c.started_at, tasks.c.id).order_by(tasks.c.started_at.desc(), tasks.c.id.desc())
_ALL_OF = _NEWEST.where(tasks.c.conversation_id == bindparam("conversation_id"))
_ACTIVE = _NEWEST.where(tasks.c.ended_at.is_(None))
# SQLite uses the index of active tasks for this query. With the id in the order, or a condition on the conversation, it
# would read the ended tasks too.
_EVERY_ACTIVE = select(TASK_BODY).where(tasks.c.ended_at.is_(None)).order_by(tasks.c.started_at.desc())
# Sub-agents of one task can be more than any page.
_NOT_OF_SUB_AGENTS = tasks.c.body.not_like('%"parentId":"%')
# Number of newest tasks in a conversation that are searched for one agent's.
_RECENT = 50


class _Workspace(msgspec.Struct, frozen=True):
    """The part of a stored request that has the task's folder."""

    workspace: str


def save_prompt(task_id: str, parts: tuple[PromptPart, ...]) -> Write:
    return Write(_SAVE_PROMPT, {"task_id": task_id, "parts": to_json(parts)})


class PromptStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def of_task(self, task_id: str) -> tuple[PromptPart, ...]:
        """Empty if the task has not called a model, or ran before prompts were stored."""
        rows = await self._reader.rows(_OF_TASK, {"task_id": task_id})
        return from_json(rows[0].parts, tuple[PromptPart, ...]) if rows else ()


def add(task: Task) -> tuple[Write, Write]:
    """Put these as one group for a new task, and again if its request changes."""
    return save(task), save_request(task)


def save_request(task: Task) -> Write:
    return Write(_SAVE_REQUEST, {"task_id": task.id, "body": to_json(task.request)})


def save(task: Task) -> Write:
    """Return the write of all but the request of a task that was added."""
    return Write(
        _SAVE if task.outcome.ended_at is None else _SAVE_ENDED,
        {
            "id": task.id,
            "conversation_id": task.conversation_id,
            "status": task.activity.status,
            "started_at": to_text(task.started_at),
            "ended_at": to_text(task.outcome.ended_at) if task.outcome.ended_at else None,
            "body": to_json(_TaskRow(**{field.name: getattr(task, field.name) for field in _CHANGING})),
        },
    )


class TaskStore:
    """Lists are sorted by start, newest first."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, task_id: str) -> Task | None:
        return await self._reader.struct(_ONE, Task, {"id": task_id})

    async def page(
        self,
        limit: int = 50,
        conversation_id: str | None = None,
        *,
        active: bool = False,
        cursor: str | None = None,
        id_part: str = "",
    ) -> TaskListResult:
        """`active` leaves out ended tasks. Raises `InvalidParams` for an invalid cursor."""
        query = (_ACTIVE if active else _NEWEST).limit(limit + 1)
        if id_part:
            query = query.where(tasks.c.id.contains(id_part, autoescape=True))
        if conversation_id is not None:
            query = query.where(tasks.c.conversation_id == conversation_id)
        if cursor is not None:
            query = query.where(tuple_(tasks.c.started_at, tasks.c.id) < parse_cursor(cursor))
        rows = await self._reader.rows(query)
        page = rows[:limit]
        return TaskListResult(
            tasks=tuple(from_json(row.body, Task) for row in page),
            next_cursor=cursor_at(page[-1].started_at, page[-1].id) if len(rows) > limit else None,
        )

    async def newest(self, limit: int, conversation_id: str) -> tuple[Task, ...]:
        """Return the newest tasks of a conversation, without those of sub-agents."""
        query = _ALL_OF.where(_NOT_OF_SUB_AGENTS).limit(limit)
        return await self._reader.structs(query, Task, {"conversation_id": conversation_id})

    async def last_of(self, agent: Agent) -> Task | None:
        """Return the newest task of an agent; None also if others have had many since."""
        if agent.called_by is None:
            recent = await self.newest(_RECENT, agent.conversation_id)
        else:
            recent = (await self.page(_RECENT, agent.conversation_id)).tasks
        return next((task for task in recent if task.agent_id == agent.id), None)

    async def of_conversation(self, conversation_id: str) -> tuple[Task, ...]:
        """Return all tasks, ended or not."""
        return await self._reader.structs(_ALL_OF, Task, {"conversation_id": conversation_id})

    async def workspaces(self, task_ids: Collection[str]) -> dict[str, str]:
        """Return the folders in which tasks work, by their ids. A few hundred ids at most."""
        if not task_ids:
            return {}
        of_tasks = select(task_requests).where(task_requests.c.task_id.in_(sorted(task_ids)))
        return {row.task_id: from_json(row.body, _Workspace).workspace for row in await self._reader.rows(of_tasks)}

    async def children(self, parent: Task) -> tuple[Task, ...]:
        """Return the tasks of the sub-agents that a task has started itself."""
        every = await self.of_conversation(parent.conversation_id)
        return tuple(task for task in every if task.origin.parent_id == parent.id)

    async def active(self, conversation_id: str | None = None) -> tuple[Task, ...]:
        """Return all tasks that have not ended: running, waiting, paused or interrupted."""
        every = await self._reader.structs(_EVERY_ACTIVE, Task)
        return tuple(task for task in every if conversation_id in (None, task.conversation_id))

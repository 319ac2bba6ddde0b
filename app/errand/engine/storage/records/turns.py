"""Model calls: intent before, outcome after; and their rows for export."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec
from sqlalchemy import Row, and_, bindparam, case, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Value, Write, from_json, to_json, to_text, upsert
from errand.engine.storage.sql.tables import tasks, turns
from errand.protocol.context import ContextPart
from errand.protocol.tasks.task import AgentPlan
from errand.protocol.usage import Usage

# Turn numbers from here on are those of model calls beside the turns of a task: those of tools, summaries and titles.
# They count as use, but not as turns.
_FIRST_BESIDE_TURNS = 1_000_000_000
_RANDOM_BITS = 30  # with the first number it stays a signed 32-bit integer

TurnStatus = Literal["started", "complete", "failed", "cut"]

_START = upsert(turns, ["task_id", "turn"], ["status", "model", "started_at", "conversation_id", "minute", "context"])
_FINISH = (
    turns.update()
    .where(turns.c.task_id == bindparam("of_task"), turns.c.turn == bindparam("of_turn"))
    .values(
        {
            name: bindparam(name)
            for name in (
                "status",
                "finished_at",
                "input_tokens",
                "output_tokens",
                "cache_read_tokens",
                "cache_write_tokens",
                "cost_usd",
                "seconds",
                "estimated",
            )
        }
    )
)
_ANSWERED_BY = (
    turns.update()
    .where(turns.c.task_id == bindparam("of_task"), turns.c.turn == bindparam("of_turn"))
    .values({"model": bindparam("by_model")})
)
_PLAN = upsert(turns, ["task_id", "turn"], ["plan"])
_PLANS = (
    select(turns.c.plan)
    .where(turns.c.task_id == bindparam("task_id"), turns.c.plan.is_not(None))
    .order_by(turns.c.turn)
)
_SENT = select(turns.c.turn, turns.c.model, turns.c.input_tokens, turns.c.estimated, turns.c.context).where(
    turns.c.task_id == bindparam("task_id")
)
_SENT_TURNS = _SENT.where(turns.c.turn < _FIRST_BESIDE_TURNS)
_ONE_SENT = _SENT.where(turns.c.turn == bindparam("turn"))
_WAS_COUNTED = and_(turns.c.input_tokens > 0, turns.c.estimated == 0)
# A turn that failed or is running has no count: counted turns come first.
_NEWEST_SENT = _SENT_TURNS.order_by(case((_WAS_COUNTED, 0), else_=1), turns.c.turn.desc()).limit(1)
_COUNTED = (
    select(turns.c.input_tokens, turns.c.context)
    .join_from(tasks, turns, turns.c.task_id == tasks.c.id)
    .where(
        tasks.c.conversation_id == bindparam("conversation_id"),
        turns.c.model == bindparam("model"),
        _WAS_COUNTED,
        turns.c.context.is_not(None),
    )
    .order_by(tasks.c.started_at.desc(), turns.c.turn.desc())
    .limit(1)
)
_COUNTED_BEFORE = _COUNTED.where(tasks.c.started_at < bindparam("before"))
_USED = tuple(turns.c[name] for name in Usage.__struct_fields__)
_USAGES = select(*_USED).where(turns.c.task_id == bindparam("task_id"), turns.c.input_tokens.is_not(None))
_STARTED = (
    select(turns.c.turn, turns.c.model)
    .where(turns.c.task_id == bindparam("task_id"), turns.c.status == "started")
    .order_by(turns.c.turn)
)


class PartSize(msgspec.Struct, frozen=True):
    """The size of one kind of content in a turn's request.

    `findable_items` tools of `findable_characters` were not sent: the model finds them when it needs them.
    """

    part: ContextPart
    characters: int
    items: int
    findable_items: int = 0
    findable_characters: int = 0


@dataclass(frozen=True, slots=True)
class SentTurn:
    """A turn's request; `input_tokens` is None until the turn ends.

    If `estimated`, the provider did not count all of it, and it may cover several requests.
    """

    turn: int
    model: str
    input_tokens: int | None
    parts: tuple[PartSize, ...]
    estimated: bool


@dataclass(frozen=True, slots=True)
class UnfinishedTurn:
    """A started model call with an unknown outcome."""

    turn: int
    model: str


def number_beside_turns() -> int:
    """Return a number for a model call that is not a turn of its task."""
    return _FIRST_BESIDE_TURNS + random.getrandbits(_RANDOM_BITS)


def started(
    conversation_id: str, task_id: str, turn: int, model: str, at: datetime, context: Sequence[PartSize] = ()
) -> Write:
    """Return the intent: put and flushed before the model call. Put again if the turn is retried."""
    return Write(
        _START,
        {
            "task_id": task_id,
            "turn": turn,
            "status": "started",
            "model": model,
            "started_at": to_text(at),
            "conversation_id": conversation_id,
            "minute": int(at.timestamp()) // 60,
            "context": to_json(context),
        },
    )


def answered_by(task_id: str, turn: int, model: str) -> Write:
    """Return the write for a turn that a different model answered: its usage counts for that model."""
    return Write(_ANSWERED_BY, {"of_task": task_id, "of_turn": turn, "by_model": model})


def finished(task_id: str, turn: int, status: TurnStatus, usage: Usage, at: datetime) -> Write:
    return Write(
        _FINISH,
        {
            "of_task": task_id,
            "of_turn": turn,
            "status": status,
            "finished_at": to_text(at),
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "cost_usd": usage.cost_usd,
            "seconds": usage.seconds,
            "estimated": int(usage.estimated),
        },
    )


def save_plan(plan: AgentPlan) -> Write:
    """Adds the plan to the turn's row, which is created if missing."""
    return Write(
        _PLAN,
        {"task_id": plan.task_id, "turn": plan.turn, "status": "complete", "model": "", "plan": to_json(plan)},
    )


class TurnStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def plans(self, task_id: str) -> tuple[AgentPlan, ...]:
        """Oldest first."""
        return await self._reader.structs(_PLANS, AgentPlan, {"task_id": task_id})

    async def sent(self, task_id: str, turn: int | None = None) -> SentTurn | None:
        """Return the given turn; without one, the newest with counted input, else the newest."""
        if turn is None:
            rows = await self._reader.rows(_NEWEST_SENT, {"task_id": task_id})
        else:
            rows = await self._reader.rows(_ONE_SENT, {"task_id": task_id, "turn": turn})
        if not rows:
            return None
        row = rows[0]
        parts = from_json(row.context, tuple[PartSize, ...]) if row.context else ()
        return SentTurn(row.turn, row.model, row.input_tokens, parts, bool(row.estimated))

    async def newest_counted(self, conversation_id: str, model: str, before: datetime | None = None) -> tuple[int, int]:
        """Characters and tokens of the newest counted request of a conversation to a model; zeros if none.

        With `before`, only of tasks that started earlier.
        """
        parameters = {"conversation_id": conversation_id, "model": model}
        if before is None:
            rows = await self._reader.rows(_COUNTED, parameters)
        else:
            rows = await self._reader.rows(_COUNTED_BEFORE, parameters | {"before": to_text(before)})
        if not rows:
            return 0, 0
        parts = from_json(rows[0].context, tuple[PartSize, ...])
        return sum(part.characters for part in parts), rows[0].input_tokens

    async def usages(self, task_id: str) -> tuple[Usage, ...]:
        """Return the usage of each finished model call."""
        rows = await self._reader.rows(_USAGES, {"task_id": task_id})
        return tuple(msgspec.convert(row, Usage, from_attributes=True, strict=False) for row in rows)

    async def started(self, task_id: str) -> tuple[UnfinishedTurn, ...]:
        """Model calls without an outcome: after a crash these are repeated."""
        rows = await self._reader.rows(_STARTED, {"task_id": task_id})
        return tuple(UnfinishedTurn(row.turn, row.model) for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A turn's columns. Times are texts in database format."""

    task_id: str
    turn: int
    status: TurnStatus
    model: str
    started_at: str | None = None
    finished_at: str | None = None
    plan: AgentPlan | None = None
    conversation_id: str | None = None
    minute: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    estimated: int = 0
    context: tuple[PartSize, ...] | None = None


def turn_of(row: Row[Any]) -> TurnRow:
    return TurnRow(
        task_id=row.task_id,
        turn=row.turn,
        status=row.status,
        model=row.model,
        started_at=row.started_at,
        finished_at=row.finished_at,
        plan=from_json(row.plan, AgentPlan) if row.plan else None,
        conversation_id=row.conversation_id,
        minute=row.minute,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cache_read_tokens=row.cache_read_tokens,
        cache_write_tokens=row.cache_write_tokens,
        cost_usd=row.cost_usd,
        seconds=row.seconds,
        estimated=row.estimated,
        context=from_json(row.context, tuple[PartSize, ...]) if row.context else None,
    )


def columns_of(turn: TurnRow) -> dict[str, Value]:
    return {
        "task_id": turn.task_id,
        "turn": turn.turn,
        "status": turn.status,
        "model": turn.model,
        "started_at": turn.started_at,
        "finished_at": turn.finished_at,
        "plan": to_json(turn.plan) if turn.plan is not None else None,
        "conversation_id": turn.conversation_id,
        "minute": turn.minute,
        "input_tokens": turn.input_tokens,
        "output_tokens": turn.output_tokens,
        "cache_read_tokens": turn.cache_read_tokens,
        "cache_write_tokens": turn.cache_write_tokens,
        "cost_usd": turn.cost_usd,
        "seconds": turn.seconds,
        "estimated": turn.estimated,
        "context": to_json(turn.context) if turn.context is not None else None,
    }

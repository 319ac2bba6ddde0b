"""Turns: one row a model call. The intent is written before the call, what came of it after."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import bindparam, select

from app.engine.storage.encoding import to_json, to_text
from app.engine.storage.reader import Reader
from app.engine.storage.tables import turns
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.protocol.tasks import AgentPlan
from app.protocol.usage import Usage

TurnStatus = Literal["started", "complete", "failed", "cut"]

_START = Upsert(turns, ["task_id", "turn"], ["status", "model", "started_at"])
_FINISH = (
    turns.update()
    .where(turns.c.task_id == bindparam("of_task"), turns.c.turn == bindparam("of_turn"))
    .values(status=bindparam("status"), finished_at=bindparam("finished_at"), usage=bindparam("usage"))
)
_PLAN = Upsert(turns, ["task_id", "turn"], ["plan"])
_PLANS = (
    select(turns.c.plan)
    .where(turns.c.task_id == bindparam("task_id"), turns.c.plan.is_not(None))
    .order_by(turns.c.turn)
)
_STARTED = (
    select(turns.c.turn, turns.c.model)
    .where(turns.c.task_id == bindparam("task_id"), turns.c.status == "started")
    .order_by(turns.c.turn)
)


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A model call that was begun and whose outcome is not known."""

    turn: int
    model: str


def started(task_id: str, turn: int, model: str, at: datetime) -> Write:
    """The intent: put and flushed before the model is called. Again for a turn that is tried again."""
    return Write(
        _START, {"task_id": task_id, "turn": turn, "status": "started", "model": model, "started_at": to_text(at)}
    )


def finished(task_id: str, turn: int, status: TurnStatus, usage: Usage, at: datetime) -> Write:
    return Write(
        _FINISH,
        {
            "of_task": task_id,
            "of_turn": turn,
            "status": status,
            "finished_at": to_text(at),
            "usage": to_json(usage),
        },
    )


def save_plan(plan: AgentPlan) -> Write:
    """The plan beside the turn's row, which is made where there is none."""
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

    async def started(self, task_id: str) -> tuple[OpenTurn, ...]:
        """Model calls without an outcome: after a crash these are made again."""
        rows = await self._reader.rows(_STARTED, {"task_id": task_id})
        return tuple(OpenTurn(row.turn, row.model) for row in rows)

"""Rows of the table of turns, whole: as an export holds them. What they mean is `turns`' to say."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from app.engine.storage.encoding import from_json, to_json
from app.engine.storage.turns import PartSize, TurnStatus
from app.engine.storage.write import Value
from app.protocol.tasks import AgentPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A field for each column. Moments are texts as they stand in the database."""

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

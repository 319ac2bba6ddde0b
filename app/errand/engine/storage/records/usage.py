"""Usage by day, model and conversation, summed by the database from the index of turns."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, case, func, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.tables import conversations, turns
from errand.protocol.usage import Usage, UsageKey, UsageReportParams, UsageReportResult, UsageRow

_MAX_CONVERSATIONS = 200
_DAY = 24 * 60
_FIRST_DAY = date(1970, 1, 1)


def _sum(column: ColumnElement[int] | ColumnElement[float]) -> ColumnElement[float]:
    """0 if all summed rows are running calls, which have no usage yet."""
    return func.coalesce(func.sum(column), 0).label(column.key)


_USED = turns.c.input_tokens + turns.c.output_tokens
_SUMS = (
    _sum(turns.c.input_tokens),
    _sum(turns.c.output_tokens),
    _sum(turns.c.cache_read_tokens),
    _sum(turns.c.cache_write_tokens),
    func.sum(turns.c.cost_usd).label("cost_usd"),
    _sum(turns.c.seconds),
    _sum(turns.c.estimated),
    func.count(turns.c.input_tokens).label("turns"),
    func.sum(case((turns.c.turn == 1, 1), else_=0)).label("tasks"),
    func.sum(case((turns.c.cost_usd.is_(None) & (_USED > 0), 1), else_=0)).label("unpriced_turns"),
)
_IS_USED = func.count(turns.c.input_tokens) > 0


class UsageStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def between(self, at: datetime, until: datetime) -> tuple[int, float]:
        """Tokens (input and output), and US dollars where the price is known, of turns that started in this period."""
        query = select(_sum(_USED.label("tokens")), _sum(turns.c.cost_usd)).where(
            turns.c.minute >= int(at.timestamp()) // 60, turns.c.minute < int(until.timestamp()) // 60
        )
        (row,) = await self._reader.rows(query)
        return int(row.tokens), float(row.cost_usd)

    async def report(self, params: UsageReportParams) -> UsageReportResult:
        """Make the report in two concurrent passes over the index of turns."""
        period = tuple(_period(params))
        cells, of_conversations = await asyncio.gather(
            self._days_of_models(period, params.utc_offset_minutes), self._conversations(period)
        )
        days = _grouped(cells, lambda cell: (_FIRST_DAY + timedelta(days=cell.day)).isoformat())
        models = _grouped(cells, lambda cell: cell.model)
        return UsageReportResult(
            total=_summed("day", "", "", cells),
            days=tuple(_summed("day", day, day, of_day) for day, of_day in sorted(days.items())),
            models=_most_expensive_first(
                _summed("model", model, model, of_model) for model, of_model in models.items()
            ),
            conversations=of_conversations,
        )

    async def _days_of_models(self, period: Sequence[ColumnElement[bool]], offset: int) -> Sequence[Row[Any]]:
        day = ((turns.c.minute + offset) // _DAY).label("day")
        return await self._reader.rows(select(day, turns.c.model, *_SUMS).where(*period).group_by(day, turns.c.model))

    async def _conversations(self, period: Sequence[ColumnElement[bool]]) -> tuple[UsageRow, ...]:
        sums = (
            select(turns.c.conversation_id, *_SUMS)
            .where(*period)
            .group_by(turns.c.conversation_id)
            .having(_IS_USED)
            .order_by(func.coalesce(func.sum(turns.c.cost_usd), 0).desc(), func.sum(_USED).desc())
            .limit(_MAX_CONVERSATIONS)
            .subquery()
        )
        query = select(sums, conversations.c.title).join(conversations, conversations.c.id == sums.c.conversation_id)
        rows = await self._reader.rows(query)
        return _most_expensive_first(
            _summed("conversation", row.conversation_id, self._reader.redact(row.title), (row,)) for row in rows
        )


def _period(params: UsageReportParams) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions for a period of whole days in the user's time zone."""
    first, after = params.since, params.until and params.until + timedelta(days=1)
    yield turns.c.minute >= (_minute(first) - params.utc_offset_minutes if first else 0)
    if after:
        yield turns.c.minute < _minute(after) - params.utc_offset_minutes


def _minute(day: date) -> int:
    """Return the minute at which a day starts, in UTC."""
    return (day - _FIRST_DAY).days * _DAY


def _grouped(cells: Iterable[Row[Any]], key: Callable[[Row[Any]], str]) -> dict[str, list[Row[Any]]]:
    groups: dict[str, list[Row[Any]]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return {name: rows for name, rows in groups.items() if any(row.turns for row in rows)}


def _summed(by: UsageKey, key: str, title: str, rows: Sequence[Row[Any]]) -> UsageRow:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return UsageRow(
        by=by,
        key=key,
        title=title,
        usage=Usage(
            input_tokens=sum(row.input_tokens for row in rows),
            output_tokens=sum(row.output_tokens for row in rows),
            cache_read_tokens=sum(row.cache_read_tokens for row in rows),
            cache_write_tokens=sum(row.cache_write_tokens for row in rows),
            cost_usd=sum(costs) if costs else None,
            seconds=sum(row.seconds for row in rows),
            estimated=any(row.estimated for row in rows),
        ),
        turns=sum(row.turns for row in rows),
        tasks=sum(row.tasks for row in rows),
        unpriced_turns=sum(row.unpriced_turns for row in rows),
    )


def _most_expensive_first(rows: Iterable[UsageRow]) -> tuple[UsageRow, ...]:
    """Return the rows sorted by cost, then tokens."""

    def size(row: UsageRow) -> tuple[float, int, str]:
        return -(row.usage.cost_usd or 0.0), -(row.usage.input_tokens + row.usage.output_tokens), row.title

    return tuple(sorted(rows, key=size))

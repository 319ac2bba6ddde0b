"""What was used, and what a turn sent."""

from datetime import date

from app.engine.errors import InvalidParams, NotFound
from app.engine.models.windows import window_of
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.engine.storage.turns import PartSize
from app.protocol.context import ContextExplainParams, ContextExplainResult, ContextShare
from app.protocol.usage import UsageReportParams, UsageReportResult
from app.protocol.wire import CONTEXT_EXPLAIN, USAGE_REPORT

_FARTHEST_ZONE = 18 * 60
_FIRST, _LAST = date(1970, 1, 2), date(2999, 12, 31)


async def report(services: Services, session: Session, params: UsageReportParams) -> UsageReportResult:
    if abs(params.utc_offset_minutes) > _FARTHEST_ZONE:
        raise InvalidParams(f"utcOffsetMinutes: a number from -{_FARTHEST_ZONE} to {_FARTHEST_ZONE}.")
    for name, day in (("since", params.since), ("until", params.until)):
        if day is not None and not _FIRST <= day <= _LAST:
            raise InvalidParams(f"{name}: a day from {_FIRST} to {_LAST}.")
    if params.since and params.until and params.since > params.until:
        raise InvalidParams(f"since: {params.since} is after until, {params.until}.")
    return await services.database.usage.report(params)


async def explain(services: Services, session: Session, params: ContextExplainParams) -> ContextExplainResult:
    task = await services.database.tasks.get(params.task_id)
    if task is None:
        raise NotFound(f"There is no task {params.task_id!r}.")
    sent = await services.database.turns.sent(task.id, params.turn)
    if sent is None and params.turn is not None:
        raise NotFound(f"There is no turn {params.turn} of task {task.id!r}.")
    model = sent.model if sent else task.model
    used = (sent.input_tokens if sent else None) or 0
    return ContextExplainResult(
        task_id=task.id,
        turn=sent.turn if sent else 0,
        model=model,
        used_tokens=used,
        window_tokens=window_of(model, services.models, services.settings),
        shares=shares(sent.parts, used) if sent and used else (),
    )


def shares(parts: tuple[PartSize, ...], used: int) -> tuple[ContextShare, ...]:
    """The counted tokens divided as the characters are; together they are the whole."""
    whole = sum(part.characters for part in parts)
    divided: list[ContextShare] = []
    passed = given = 0
    for part in parts:
        passed += part.characters
        upto = round(used * passed / whole)
        divided.append(ContextShare(part=part.part, tokens=upto - given, items=part.items))
        given = upto
    return tuple(divided)


HANDLERS = (Route(USAGE_REPORT, report), Route(CONTEXT_EXPLAIN, explain))

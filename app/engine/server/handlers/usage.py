"""What was used."""

from datetime import date

from app.engine.errors import InvalidParams
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.usage import UsageReportParams, UsageReportResult
from app.protocol.wire import USAGE_REPORT

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


HANDLERS = (Route(USAGE_REPORT, report),)

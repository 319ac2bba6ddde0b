"""Handlers of usage."""

from datetime import date

from errand.engine.core.errors import InvalidParams
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.usage import USAGE_REPORT, UsageReportParams, UsageReportResult

# Minutes east or west of UTC.
_FARTHEST_ZONE = 18 * 60
_FIRST_DAY, _LAST_DAY = date(1970, 1, 2), date(2999, 12, 31)


async def report(services: Services, session: ClientSession, params: UsageReportParams) -> UsageReportResult:
    if abs(params.utc_offset_minutes) > _FARTHEST_ZONE:
        raise InvalidParams(f"utcOffsetMinutes: a number from -{_FARTHEST_ZONE} to {_FARTHEST_ZONE}.")
    for name, day in (("since", params.since), ("until", params.until)):
        if day is not None and not _FIRST_DAY <= day <= _LAST_DAY:
            raise InvalidParams(f"{name}: a day from {_FIRST_DAY} to {_LAST_DAY}.")
    if params.since and params.until and params.since > params.until:
        raise InvalidParams(f"since: {params.since} is after until, {params.until}.")
    return await services.database.usage.report(params)


HANDLERS = (Route(USAGE_REPORT, report),)

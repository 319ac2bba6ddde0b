"""Under which heading a moment stands in a list that goes back in time."""

from datetime import datetime, timedelta


def day_heading(moment: datetime, now: datetime) -> str:
    """Both are taken in the time zone of `now`."""
    day, today = moment.astimezone(now.tzinfo).date(), now.date()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=7):
        return f"{day:%A}"
    return f"{day:%B %Y}"


def short_time(moment: datetime, now: datetime) -> str:
    """The time for the last week, else the day."""
    local = moment.astimezone(now.tzinfo)
    return f"{local:%H:%M}" if local.date() > now.date() - timedelta(days=7) else f"{local.day} {local:%b}"

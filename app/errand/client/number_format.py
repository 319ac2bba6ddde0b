"""Durations, times, sizes, tokens and money as text."""

from datetime import UTC, date, datetime

from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage
from errand.text.translation import decimal, grouped, marked, tr, trn

_WEEKDAYS = (
    marked("Monday"),
    marked("Tuesday"),
    marked("Wednesday"),
    marked("Thursday"),
    marked("Friday"),
    marked("Saturday"),
    marked("Sunday"),
)
_SHORT_WEEKDAYS = (
    marked("Mon"),
    marked("Tue"),
    marked("Wed"),
    marked("Thu"),
    marked("Fri"),
    marked("Sat"),
    marked("Sun"),
)
_MONTHS = (
    marked("January"),
    marked("February"),
    marked("March"),
    marked("April"),
    marked("May"),
    marked("June"),
    marked("July"),
    marked("August"),
    marked("September"),
    marked("October"),
    marked("November"),
    marked("December"),
)
_SHORT_MONTHS = (
    marked("Jan"),
    marked("Feb"),
    marked("Mar"),
    marked("Apr"),
    marked("May"),
    marked("Jun"),
    marked("Jul"),
    marked("Aug"),
    marked("Sep"),
    marked("Oct"),
    marked("Nov"),
    marked("Dec"),
)


def duration(seconds: float) -> str:
    if seconds < 10:
        return tr("{seconds} s").format(seconds=decimal(f"{seconds:.1f}"))
    if seconds < 60:
        return tr("{seconds} s").format(seconds=f"{seconds:.0f}")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return tr("{minutes} min {seconds} s").format(minutes=minutes, seconds=rest)
    return tr("{hours} h {minutes} min").format(hours=minutes // 60, minutes=minutes % 60)


def running_time(seconds: float) -> str:
    """Return a duration that still grows: without fractions, which would only flicker."""
    return tr("{seconds} s").format(seconds=int(seconds)) if seconds < 10 else duration(seconds)


def month_name(moment: date) -> str:
    return tr(_MONTHS[moment.month - 1])


def short_month(moment: date) -> str:
    return tr(_SHORT_MONTHS[moment.month - 1])


def weekday_name(moment: date) -> str:
    return tr(_WEEKDAYS[moment.weekday()])


def short_weekday(moment: date) -> str:
    return tr(_SHORT_WEEKDAYS[moment.weekday()])


def clock_time(moment: datetime) -> str:
    """Return the local time of the day, such as 14:20."""
    return f"{moment.astimezone():%H:%M}"


def day_text(moment: date) -> str:
    """Return a day of any year, such as 3 Nov 2026."""
    return tr("{day} {month} {year}").format(day=moment.day, month=short_month(moment), year=moment.year)


def short_day(moment: date) -> str:
    """Return a day of this year, such as 3 Nov."""
    return tr("{day} {month}").format(day=moment.day, month=short_month(moment))


def moment_text(moment: datetime) -> str:
    """Return the local date and time, such as 3 Nov 2026, 14:20."""
    local = moment.astimezone()
    return tr("{day}, {time}").format(day=day_text(local), time=clock_time(local))


def file_size(count_of_bytes: int) -> str:
    """Return a size in decimal units, as in file managers."""
    if count_of_bytes < 1000:
        return trn("{n} byte", "{n} bytes", count_of_bytes)
    amount = count_of_bytes / 1000
    for unit in ("KB", "MB"):
        if amount < 1000:
            return decimal(f"{amount:.0f} {unit}" if amount >= 10 else f"{amount:.1f} {unit}")
        amount /= 1000
    return decimal(f"{amount:.1f} GB")


def dollars(amount: float, digits: int = 2) -> str:
    """Return an amount of US dollars, with the sign where the language puts it."""
    return tr("${amount}").format(amount=decimal(f"{amount:,.{digits}f}"))


def money(usage: Usage) -> str:
    """Empty if the price is unknown, since a wrong number is worse than none. `~` marks an estimate."""
    if usage.cost_usd is None:
        return ""
    if usage.cost_usd == 0:
        return dollars(0, 0)
    amount = dollars(usage.cost_usd, 2 if usage.cost_usd >= 1 else 4)
    return f"~{amount}" if usage.estimated else amount


def tokens(usage: Usage) -> str:
    total = usage.input_tokens + usage.output_tokens
    amount = trn("{n} token", "{n} tokens", total) if total else ""
    return f"~{amount}" if usage.estimated and amount else amount


def token_count(number: int, usage: Usage) -> str:
    """Return a part of a usage's tokens; `~` marks an estimate."""
    return f"~{grouped(number)}" if usage.estimated and number else grouped(number)


def elapsed(task: Task) -> float:
    """Seconds since its start; of an interrupted or ended task those of its work, without waiting for a person."""
    if task.activity.status == "interrupted" or (task.outcome.ended_at is not None and task.activity.worked_s > 0):
        return task.activity.worked_s
    return max(0.0, ((task.outcome.ended_at or datetime.now(UTC)) - task.started_at).total_seconds())


def time_left(task: Task) -> str:
    """Return the time until a provider's rate limit ends; empty if the task has none."""
    if task.activity.retry_at is None or task.outcome.ended_at is not None:
        return ""
    seconds = round((task.activity.retry_at - datetime.now(UTC)).total_seconds())
    if seconds < 60:
        return tr("resumes in {time}").format(time=running_time(seconds)) if seconds > 0 else tr("resumes now")
    return tr("resumes in {time}").format(time=duration(seconds))


def task_totals(task: Task) -> tuple[str, ...]:
    """Turns, tokens, money and time of a task; unknown values are omitted."""
    parts = (
        trn("{n} turn", "{n} turns", task.progress.step_count),
        tokens(task.total_usage),
        money(task.total_usage),
        duration(elapsed(task)),
    )
    return tuple(part for part in parts if part)

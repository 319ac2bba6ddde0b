"""Durations, times, sizes, tokens and money as text."""

from datetime import UTC, datetime

from errand.protocol.tasks import Task
from errand.protocol.usage import Usage


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def running_time(seconds: float) -> str:
    """A duration that still grows: without fractions, which would only flicker."""
    return f"{int(seconds)} s" if seconds < 10 else duration(seconds)


def moment_text(moment: datetime) -> str:
    """The local date and time, such as 3 Nov 2026, 14:20."""
    local = moment.astimezone()
    return f"{local.day} {local:%b %Y, %H:%M}"


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def file_size(count_of_bytes: int) -> str:
    """In decimal units, as in file managers."""
    if count_of_bytes < 1000:
        return count(count_of_bytes, "byte")
    amount = count_of_bytes / 1000
    for unit in ("KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def money(usage: Usage) -> str:
    """Empty if the price is unknown, since a wrong number is worse than none. `~` marks an estimate."""
    if usage.cost_usd is None:
        return ""
    if usage.cost_usd == 0:
        return "$0"
    amount = f"${usage.cost_usd:.2f}" if usage.cost_usd >= 1 else f"${usage.cost_usd:.4f}"
    return f"~{amount}" if usage.estimated else amount


def tokens(usage: Usage) -> str:
    total = usage.input_tokens + usage.output_tokens
    amount = count(total, "token") if total else ""
    return f"~{amount}" if usage.estimated and amount else amount


def token_count(number: int, usage: Usage) -> str:
    """A part of a usage's tokens; `~` marks an estimate."""
    return f"~{number:,}" if usage.estimated and number else f"{number:,}"


def elapsed(task: Task) -> float:
    """Seconds since its start; of an interrupted or ended task those of its work, without waiting for a person."""
    if task.status == "interrupted" or (task.ended_at is not None and task.worked_s > 0):
        return task.worked_s
    return max(0.0, ((task.ended_at or datetime.now(UTC)) - task.started_at).total_seconds())


def time_left(task: Task) -> str:
    """The time until a provider's rate limit ends; empty if the task has none."""
    if task.retry_at is None or task.ended_at is not None:
        return ""
    seconds = round((task.retry_at - datetime.now(UTC)).total_seconds())
    if seconds < 60:
        return f"goes on in {seconds} s" if seconds > 0 else "goes on now"
    return f"goes on in {duration(seconds)}"


def task_totals(task: Task) -> tuple[str, ...]:
    """Turns, tokens, money and time of a task; unknown values are omitted."""
    parts = (
        count(task.step_count, "turn"),
        tokens(task.total_usage),
        money(task.total_usage),
        duration(elapsed(task)),
    )
    return tuple(part for part in parts if part)

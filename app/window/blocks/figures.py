"""Numbers as people read them: time, counts, money."""

from app.protocol.tasks import Task


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def account(task: Task) -> str:
    """Turns, tokens, money and time of a task in one line; a price that is not known is left out."""
    usage = task.usage
    tokens = usage.input_tokens + usage.output_tokens
    parts = [count(task.step_count, "turn")]
    if tokens:
        parts.append(count(tokens, "token"))
    if usage.cost_usd:
        parts.append(f"${usage.cost_usd:.2f}" if usage.cost_usd >= 1 else f"${usage.cost_usd:.4f}")
    if task.ended_at is not None:
        parts.append(duration(max(0.0, (task.ended_at - task.started_at).total_seconds())))
    return " · ".join(parts)

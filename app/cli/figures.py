"""The account of a task in one line of the terminal, and the short form of an id."""

from app.cli.style import Style
from app.client import figures
from app.protocol.tasks import Task


def account(task: Task, style: Style) -> str:
    """Turns, tokens, money and time of a task in one line."""
    return style.join(*figures.account(task))


def ago(seconds: float) -> str:
    """How long ago, in the largest unit alone."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"


def short_id(identifier: str) -> str:
    """The end of an id: the beginnings of ids made at the same time look alike."""
    return identifier[-8:]

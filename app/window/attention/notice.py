"""What a person is told outside the window: the words and the buttons for what waits and for what has ended. Pure."""

from dataclasses import dataclass

from app.client.call_words import exactly
from app.client.characters import exact, exact_line, plain
from app.client.endings import is_unfinished
from app.client.figures import count
from app.protocol.asks import Approval, Ask
from app.protocol.tasks import Task
from app.redaction import redact
from app.window.views.activity import activity_of

OPEN = "open"
_MOST_CHOICES = 3
# What a banner of the common desktops shows without cutting; GNOME's is the smallest.
_LONGEST_BODY, _MOST_LINES = 240, 6
_LONGEST_CHOICE = 30
_LONGEST_TITLE = 60


@dataclass(frozen=True, slots=True)
class Button:
    key: str
    label: str


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to be told. `stays` until it is settled; `conversation_id` is what its click opens, or "".

    The buttons are for where the body is shown: who shows no body may offer `OPEN` alone.
    """

    key: str
    conversation_id: str
    title: str
    body: str
    buttons: tuple[Button, ...] = ()
    stays: bool = False


def of_ask(ask: Ask, title: str) -> Notice:
    """An answer can be given from outside the window only where all that is asked stands in the notice."""
    heading, body, buttons = _parts(ask)
    fits = _fits(body)
    last = Button(OPEN, "Reply" if ask.kind == "question" else "Open")
    return Notice(
        key=ask.id,
        conversation_id=ask.conversation_id,
        title=f"{heading}: {_short(title)}" if title else heading,
        body=body if fits else _cut(body),
        buttons=(*buttons, last) if fits else (last,),
        stays=True,
    )


def of_ended(task: Task, title: str) -> Notice:
    body = plain(task.summary or task.error or "")
    return Notice(
        key=task.id,
        conversation_id=task.conversation_id,
        title=f"{activity_of(task)}: {_short(title)}",
        body=body if _fits(body) else _cut(body),
        buttons=(Button(OPEN, "Open"),),
    )


def of_many(tasks: tuple[Task, ...]) -> Notice:
    """One for a burst of ends."""
    failed = sum(task.stop_reason == "error" for task in tasks)
    unfinished = sum(is_unfinished(task) for task in tasks)
    told = [
        f"{count(number, 'task')} of them {what}."
        for number, what in ((failed, "failed"), (unfinished, "ended without being done"))
        if number
    ]
    return Notice("ended", "", f"{count(len(tasks), 'task')} have ended", " ".join(told), (Button(OPEN, "Open"),))


def _parts(ask: Ask) -> tuple[str, str, tuple[Button, ...]]:
    match ask.kind:
        case "question":
            return "Question", plain(ask.text), _choices(ask.choices)
        case "limit":
            return "Limit reached", plain(ask.text), (Button("allow", "Go on"), Button("deny", "Stop here"))
        case "unknown":
            # Before choosing one has to look what has happened: no buttons.
            assert ask.unknown is not None
            return "Outcome unknown", f"{exactly(ask.unknown)}\n{plain(ask.text)}", ()
        case "approval":
            assert ask.approval is not None
            return "Approval needed", _what_would_run(ask.approval), _verdicts(ask.approval)


def _choices(choices: tuple[str, ...]) -> tuple[Button, ...]:
    """None at all unless all of them can be shown whole."""
    labels = [plain(choice) for choice in choices]
    if len(labels) > _MOST_CHOICES or any(len(label) > _LONGEST_CHOICE or "\n" in label for label in labels):
        return ()
    return tuple(Button(f"choice {place}", label) for place, label in enumerate(labels))


def _verdicts(approval: Approval) -> tuple[Button, ...]:
    """A change of files and a high risk want a look at the card."""
    if approval.preview or approval.risk == "high":
        return ()
    return (Button("allow", "Allow once"), Button("deny", "Deny"))


def _what_would_run(approval: Approval) -> str:
    """The card's own lines, all of them but the rule, in the card's order."""
    reads = tuple(path for path in approval.reads if path != approval.working_dir)
    lines = [exact(approval.text if approval.command is None else approval.command)]
    for name, text in (
        ("In", approval.working_dir or ""),
        ("Reads", ", ".join(reads)),
        ("Writes", ", ".join(approval.writes)),
    ):
        if text:
            lines.append(f"{name}: {exact_line(text)}")
    return "\n".join(lines)


def _fits(body: str) -> bool:
    """A text with a key in it is not shown whole either: a screen may be locked or shared."""
    return len(body) <= _LONGEST_BODY and body.count("\n") < _MOST_LINES and redact(body) == body


def _cut(body: str) -> str:
    """The beginning, and that there is more."""
    lines = redact(body).split("\n")
    shown = "\n".join(lines[: _MOST_LINES - 1] if len(lines) > _MOST_LINES else lines)
    if len(shown) > _LONGEST_BODY:
        return f"{shown[:_LONGEST_BODY]}…"
    more = len(lines) - _MOST_LINES + 1
    return f"{shown}\n… {more:,} more lines" if len(lines) > _MOST_LINES else shown


def _short(title: str) -> str:
    line = " ".join(plain(title).split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[:_LONGEST_TITLE]}…"

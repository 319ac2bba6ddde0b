"""Selects the notifications to show, with their texts and buttons. `desktop` shows them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from PySide6.QtCore import QObject, QTimer, Signal

from errand.client.safe_text import escape_hidden, escape_hidden_line, plain
from errand.client.texts.asks import asked_text, subject_text
from errand.client.texts.limits import more_text
from errand.client.texts.tasks import is_unfinished
from errand.protocol.asks import Approval, Ask, AskAnswerParams
from errand.protocol.tasks.task import Task
from errand.text.redaction import redact
from errand.text.translation import grouped, tr, trn
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import task_activity

OPEN = "open"
_MAX_CHOICES = 3
# The space of a banner on common desktops; GNOME's is the smallest.
_MAX_BODY, _MAX_LINES = 240, 6
_MAX_CHOICE = 30
_MAX_TITLE = 60

_MAX_ENDS = 3
_MAX_ASKS = 3
_DEBOUNCE_MS = 150


@dataclass(frozen=True, slots=True)
class NotificationButton:
    """`choice` is the index of the answer that the button gives to a question."""

    key: str
    label: str
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """A desktop notification. `stays` until it is settled; `conversation_id` is opened by a click, "" for none.

    The buttons require that the body is visible: a backend that does not show it may offer only `OPEN`.
    """

    key: str
    conversation_id: str
    title: str
    body: str
    buttons: tuple[NotificationButton, ...] = ()
    stays: bool = False


def ask_notification(ask: Ask, title: str) -> Notification:
    """Return the notification of an ask. It has answer buttons only if its body shows the complete request."""
    heading, body, buttons = _parts(ask)
    fits = _fits(body)
    last = NotificationButton(OPEN, tr("Reply") if ask.kind == "question" else tr("Open"))
    return Notification(
        key=ask.id,
        conversation_id=ask.conversation_id,
        title=f"{heading}: {_short(title)}" if title else heading,
        body=body if fits else _truncated(body),
        buttons=(*buttons, last) if fits else (last,),
        stays=True,
    )


def ended_notification(task: Task, title: str) -> Notification:
    body = plain(task.outcome.summary or task.outcome.error or "")
    return Notification(
        key=task.id,
        conversation_id=task.conversation_id,
        title=f"{task_activity(task)}: {_short(title)}",
        body=body if _fits(body) else _truncated(body),
        buttons=(NotificationButton(OPEN, tr("Open")),),
    )


def grouped_notification(tasks: tuple[Task, ...]) -> Notification:
    """One notification for many tasks that ended at the same time."""
    failed = sum(task.outcome.stop_reason == "error" for task in tasks)
    unfinished = sum(is_unfinished(task) for task in tasks)
    sentences = [
        trn("{n} of these tasks failed.", "{n} of these tasks failed.", failed) if failed else "",
        trn("{n} of these tasks ended without being done.", "{n} of these tasks ended without being done.", unfinished)
        if unfinished
        else "",
    ]
    return Notification(
        "ended",
        "",
        trn("{n} task has ended", "{n} tasks have ended", len(tasks)),
        " ".join(filter(None, sentences)),
        (NotificationButton(OPEN, tr("Open")),),
    )


def grouped_asks_notification(asks: tuple[Ask, ...]) -> Notification:
    """One notification for many asks; a click opens the conversation of the first."""
    questions = sum(ask.kind == "question" for ask in asks)
    approvals = sum(ask.kind == "approval" for ask in asks)
    parts = [
        trn("{n} question", "{n} questions", questions) if questions else "",
        trn("{n} approval", "{n} approvals", approvals) if approvals else "",
    ]
    title = trn(
        "{n} task waits for you", "{n} tasks wait for you", len({(ask.conversation_id, ask.task_id) for ask in asks})
    )
    body = ", ".join(part for part in parts if part)
    return Notification(
        "asks", asks[0].conversation_id, title, body, (NotificationButton(OPEN, tr("Open")),), stays=True
    )


def _parts(ask: Ask) -> tuple[str, str, tuple[NotificationButton, ...]]:
    match ask.kind:
        case "question":
            return tr("Question"), plain(ask.text), _choice_buttons(ask.choices)
        case "limit":
            limit, goes_on = ask.limit, tr("Continue")
            if limit is not None:
                goes_on = tr("Continue: {amount}").format(amount=more_text(limit.kind, limit.adds))
            buttons = (NotificationButton("allow", goes_on), NotificationButton("deny", tr("Stop")))
            return tr("Limit reached"), asked_text(ask), buttons
        case "unknown":
            # No buttons: the person has to check the effects of the call first.
            assert ask.unknown is not None
            return tr("Outcome unknown"), f"{subject_text(ask.unknown)}\n{asked_text(ask)}", ()
        case "approval":
            assert ask.approval is not None
            return tr("Approval needed"), _what_would_run(ask.approval), _approval_buttons(ask.approval)


def _choice_buttons(choices: tuple[str, ...]) -> tuple[NotificationButton, ...]:
    """Return a button per choice; none if any choice is too long to be shown in full, or has a key."""
    labels = [plain(choice) for choice in choices]
    if len(labels) > _MAX_CHOICES or not all(map(_fits_button, labels)):
        return ()
    return tuple(NotificationButton(f"choice {index}", label, index) for index, label in enumerate(labels))


def _fits_button(label: str) -> bool:
    return len(label) <= _MAX_CHOICE and "\n" not in label and redact(label) == label


def _approval_buttons(approval: Approval) -> tuple[NotificationButton, ...]:
    """Allow and deny; none for file changes and high risk, which require the card."""
    if approval.preview or approval.risk == "high":
        return ()
    return (NotificationButton("allow", tr("Allow once")), NotificationButton("deny", tr("Deny")))


def _what_would_run(approval: Approval) -> str:
    """Return the lines of the approval card without the rule, in the same order."""
    reads = tuple(path for path in approval.reads if path != approval.working_dir)
    lines = [escape_hidden(approval.text if approval.command is None else approval.command)]
    for name, text in (
        (tr("Folder"), approval.working_dir or ""),
        (tr("Reads"), ", ".join(reads)),
        (tr("Writes"), ", ".join(approval.writes)),
    ):
        if text:
            lines.append(f"{name}: {escape_hidden_line(text)}")
    return "\n".join(lines)


def _fits(body: str) -> bool:
    """Return True if the text fits. False for a text with a key: the screen may be locked or shared."""
    return len(body) <= _MAX_BODY and body.count("\n") < _MAX_LINES and redact(body) == body


def _truncated(body: str) -> str:
    """Return the beginning of the text, with a mark for the rest."""
    lines = redact(body).split("\n")
    beginning = "\n".join(lines[: _MAX_LINES - 1] if len(lines) > _MAX_LINES else lines)
    if len(beginning) > _MAX_BODY:
        return f"{beginning[:_MAX_BODY]}…"
    more = len(lines) - _MAX_LINES + 1
    return (
        tr("{text}\n… {more} more lines").format(text=beginning, more=grouped(more))
        if len(lines) > _MAX_LINES
        else beginning
    )


def _short(title: str) -> str:
    line = redact(" ".join(plain(title).split()))
    return line if len(line) <= _MAX_TITLE else f"{line[:_MAX_TITLE]}…"


class NotificationStore(QObject):
    """Emits `notices_changed` with all notifications whenever they change.

    Ignores asks and tasks from before its creation.

    `active_conversation_id` returns the active conversation, "" if no window of ours has the focus.
    """

    notices_changed = Signal(object)
    opened = Signal(str)

    def __init__(
        self, stores: Stores, active_conversation_id: Callable[[], str], is_active: Callable[[], bool]
    ) -> None:
        super().__init__()
        self._stores = stores
        self._active_conversation_id = active_conversation_id
        self._is_active = is_active
        self._since = datetime.now(UTC)
        self._last: tuple[Notification, ...] = ()
        self._ended: dict[str, Task] = {}
        self._grouped: dict[str, Task] = {}
        self._groups_asks = False  # until all of them are settled
        self._notified: set[str] = set()
        self._seen: set[str] = set()
        self._update_timer = QTimer(self)
        self._update_timer.setSingleShot(True)
        self._update_timer.setInterval(_DEBOUNCE_MS)
        self._update_timer.timeout.connect(self._update)
        stores.tasks.taskUpdate.connect(self._on_task_update)
        stores.asks.changed.connect(self._update_timer.start)

    def close(self) -> None:
        """Stop: the window that `active_conversation_id` depends on is closing."""
        self._stores.tasks.taskUpdate.disconnect(self._on_task_update)
        self._stores.asks.changed.disconnect(self._update_timer.start)
        self._update_timer.stop()

    def on_activation_changed(self) -> None:
        """The active conversation or window has changed."""
        if self._is_active():
            self._grouped.clear()  # the inbox in the window shows them
        active_id = self._active_conversation_id()
        self._ended = {task_id: task for task_id, task in self._ended.items() if task.conversation_id != active_id}
        self._update_timer.start()

    def handle_click(self, key: str, button: str) -> None:
        """Handle a click on a button of a notification."""
        notice = next((notice for notice in self._last if notice.key == key), None)
        if notice is None:
            return
        ask = next((ask for ask in self._stores.asks.waiting() if ask.id == key), None)
        choice = next((offered.choice for offered in notice.buttons if offered.key == button), None)
        if ask is not None and button in ("allow", "deny"):
            self._stores.asks.answer(AskAnswerParams(ask_id=ask.id, allow=button == "allow"))
        elif ask is not None and choice is not None:
            self._stores.asks.answer(AskAnswerParams(ask_id=ask.id, text=ask.choices[choice]))
        else:
            self.opened.emit(notice.conversation_id)

    def _on_task_update(self, task: Task) -> None:
        if task.outcome.ended_at is None or task.origin.parent_id is not None:
            self._withdraw_earlier(task)
            return
        is_news = (
            task.outcome.ended_at > self._since
            and task.outcome.stop_reason != "manual_stop"
            and task.id not in self._notified
        )
        self._notified.add(task.id)
        if is_news and task.conversation_id != self._active_conversation_id():
            self._ended[task.id] = task
            self._update_timer.start()

    def _withdraw_earlier(self, started: Task) -> None:
        """Remove notifications about earlier tasks of a conversation that is running again."""
        for task_id, task in tuple(self._ended.items()):
            if task.conversation_id == started.conversation_id:
                del self._ended[task_id]
                self._update_timer.start()

    def _update(self) -> None:
        if len(self._ended) > _MAX_ENDS or (self._grouped and self._ended):
            self._grouped |= self._ended
            self._ended.clear()
        new = self._new_asks()
        self._groups_asks = bool(new) and (self._groups_asks or len(new) > _MAX_ASKS)
        if self._groups_asks:
            asks = [grouped_asks_notification(tuple(new))]
        else:
            asks = [ask_notification(ask, self._title_of(ask)) for ask in new]
        ends = [
            ended_notification(task, self._title(task.conversation_id, task.request.prompt))
            for task in self._ended.values()
        ]
        many = [grouped_notification(tuple(self._grouped.values()))] if self._grouped else []
        notices = (*asks, *ends, *many)
        if notices != self._last:
            self._last = notices
            self.notices_changed.emit(notices)

    def _new_asks(self) -> list[Ask]:
        """Open asks to notify about: new ones that were not in view yet."""
        active_id, waiting = self._active_conversation_id(), self._stores.asks.waiting()
        in_view = {ask.id for ask in waiting if ask.conversation_id == active_id}
        self._seen = (self._seen | in_view) & {ask.id for ask in waiting}
        return [ask for ask in waiting if ask.created_at > self._since and ask.id not in self._seen]

    def _title_of(self, ask: Ask) -> str:
        task = self._stores.tasks.get(ask.task_id)
        return self._title(ask.conversation_id, task.request.prompt if task else "")

    def _title(self, conversation_id: str, default: str) -> str:
        conversation = self._stores.conversations.get(conversation_id)
        return conversation.title if conversation else default

"""Event sinks: lines for people, JSON lines for programs, events of a simpler agent interface."""

from typing import Protocol

import msgspec

from errand.cli.json_lines import json_line
from errand.cli.rendering.transcript import TranscriptRenderer, with_label
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import columns, plain
from errand.client.agent_events import AgentEvent, AgentView
from errand.client.conversation.task_watcher import ShownMessage
from errand.client.number_format import duration, elapsed
from errand.client.thought_events import ThoughtEvent, ThoughtView
from errand.protocol.engine import Condition
from errand.protocol.events import (
    EventRecord,
    PromptReading,
    TaskUpdate,
    TextDelta,
    ToolOutput,
)
from errand.protocol.methods import Notice
from errand.protocol.tasks.task import Task
from errand.text.translation import tr


class Output(Protocol):
    """A terminal, or a prompt with output above it."""

    @property
    def style(self) -> Style: ...
    @property
    def width(self) -> int: ...
    @property
    def shows_status(self) -> bool: ...
    def write(self, text: str) -> None: ...
    def line(self, text: str = "") -> None: ...
    def note(self, text: str) -> None: ...
    def status(self, text: str) -> None: ...


class _WaitNotes:
    """Says once each wait for a model: for a provider's limit, for a server that loads it, or before another attempt.

    Only where no status line says it.
    """

    def __init__(self, terminal: Output) -> None:
        self._terminal = terminal
        self._waiting: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._awaiting_server: set[str] = set()

    def see(self, message: ShownMessage) -> None:
        if self._terminal.shows_status or not isinstance(message, EventRecord):
            return
        if not isinstance(message.event, TaskUpdate):
            return
        task = message.event.task
        if task.activity.attempt > self._attempts.get(task.id, 0):
            self._terminal.note(f"errand: {plain(task.activity.detail)}")
        self._attempts[task.id] = task.activity.attempt
        if not task.activity.awaits_server:
            self._awaiting_server.discard(task.id)
        elif task.id not in self._awaiting_server:
            self._awaiting_server.add(task.id)
            self._terminal.note(f"errand: {plain(task.activity.detail)}")
        if task.activity.retry_at is None or task.activity.stopping or task.outcome.ended_at is not None:
            self._waiting.discard(task.id)
        elif task.id not in self._waiting:
            self._waiting.add(task.id)
            self._terminal.note(
                tr("errand: {activity}; the task continues by itself after that").format(
                    activity=plain(task.activity.detail)
                )
            )


class JsonScreen:
    """Each message in wire format, one per line."""

    def __init__(self, terminal: Output) -> None:
        self._terminal = terminal
        self._waits = _WaitNotes(terminal)

    def show(self, conversation_id: str, message: ShownMessage) -> None:
        self._waits.see(message)
        notice = Notice("event" if isinstance(message, EventRecord) else "delta", message)
        self._terminal.line(json_line(notice))

    def connection(self, *, lost: bool) -> None:
        _note_connection(self._terminal, lost)

    def health(self, conditions: tuple[Condition, ...]) -> None:
        _note_health(self._terminal, conditions)

    def tick(self) -> None:
        pass


class TextScreen:
    """Transcripts of one or more conversations; with more than one, each line has a label."""

    def __init__(self, terminal: Output, *, thinking: bool = False) -> None:
        self._terminal = terminal
        self._shows_thinking = thinking
        self._waits = _WaitNotes(terminal)
        self._transcripts: dict[str, tuple[str, TranscriptRenderer]] = {}

    def add(self, conversation_id: str, label: str = "", *, streams: bool = True) -> None:
        """Show a conversation, with `label` before every line."""
        width = self._terminal.width - columns(plain(label))
        transcript = TranscriptRenderer(
            self._terminal.style, width, streams=streams, thinking=self._shows_thinking and streams
        )
        self._transcripts[conversation_id] = (label, transcript)

    def mark_typed(self, conversation_id: str, text: str) -> None:
        """The person has typed this here: it is not shown again."""
        if (entry := self._transcripts.get(conversation_id)) is not None:
            entry[1].feed.mark_typed(text)

    def show(self, conversation_id: str, message: ShownMessage) -> None:
        entry = self._transcripts.get(conversation_id)
        if entry is None:
            return
        self._waits.see(message)
        label, transcript = entry
        self._terminal.write(with_label(_text(transcript, message), label))
        self.tick()

    def connection(self, *, lost: bool) -> None:
        _note_connection(self._terminal, lost)

    def health(self, conditions: tuple[Condition, ...]) -> None:
        _note_health(self._terminal, conditions)

    def tick(self) -> None:
        self._terminal.status(self._terminal.style.join(*self._statuses()))

    def _statuses(self) -> list[str]:
        working = [(plain(label), t) for label, t in self._transcripts.values() if t.status()]
        join = self._terminal.style.join
        return [label + join(t.status(), _elapsed_text(t.feed.task), t.unread()) for label, t in working]


def _text(transcript: TranscriptRenderer, message: ShownMessage) -> str:
    match message:
        case EventRecord():
            return transcript.event(message.event)
        case TextDelta():
            return transcript.delta(message)
        case PromptReading():
            transcript.show_reading(message)
            return ""
        case ToolOutput():
            return ""


def _elapsed_text(task: Task | None) -> str:
    spent = elapsed(task) if task else 0.0
    return duration(spent) if spent >= 1 else ""


def _note_connection(terminal: Output, lost: bool) -> None:
    terminal.note(
        tr("errand: the engine does not respond; reconnecting …") if lost else tr("errand: reconnected to the engine")
    )


def _note_health(terminal: Output, conditions: tuple[Condition, ...]) -> None:
    for condition in conditions:
        terminal.note(f"errand: {plain(condition.text)} {plain(condition.advice)}")
    if not conditions:
        terminal.note(tr("errand: the problem is solved; the tasks continue"))


class AgentEventScreen(JsonScreen):
    """Shows the events of a view; reports a lost connection on standard error."""

    def __init__(self, output: Output, view: AgentView | ThoughtView) -> None:
        super().__init__(output)
        self._output = output
        self._view = view

    def show(self, conversation_id: str, message: ShownMessage) -> None:
        self._waits.see(message)
        for event in self._events(message):
            self._output.line(msgspec.json.encode(event).decode())

    def _events(self, message: ShownMessage) -> tuple[AgentEvent | ThoughtEvent, ...]:
        if isinstance(message, EventRecord):
            return self._view.record(message.event)
        return self._view.delta(message) if isinstance(self._view, AgentView) else ()

"""One task followed to its end: what it does is shown, what it asks is settled. How it began is the caller's."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from app.cli.answers import Answers, NobodyAnswers, OthersAnswer, PersonAnswers
from app.cli.event_screen import EventScreen
from app.cli.figures import short_id
from app.cli.interrupts import Interrupts
from app.cli.outcome import EXIT_STOPPED, exit_code, result_line
from app.cli.render import task_line
from app.cli.screen import JsonScreen, PeopleScreen, Screen
from app.cli.stopping import Stopper
from app.cli.terminal import Terminal
from app.cli.watch import Watch
from app.client.agent_view import AgentView
from app.client.connection import Connection
from app.client.thought_view import ThoughtView
from app.protocol.tasks import Task


class Follower:
    """Shows tasks of one connection, for people or with `as_json` for programs.

    With `events` they are shown as another interface has them: `agent` or `react`.
    With `answer_to` the answer of a task that has a schema goes there, and what is shown elsewhere.
    """

    def __init__(
        self,
        connection: Connection,
        terminal: Terminal,
        *,
        as_json: bool,
        events: str | None = None,
        answer_to: Terminal | None = None,
    ) -> None:
        self._connection = connection
        self._terminal = terminal
        self._as_json = as_json
        self._events = events
        self._answer_to = answer_to

    async def to_its_end(self, begin: Callable[[], Awaitable[Task]], *, is_new: bool) -> int:
        """Ctrl+C stops the task. The exit code says how it ended."""
        stopper = Stopper(self._connection, self._terminal)
        with Interrupts(stopper.stop) as interrupts:
            try:
                task = await begin()
                stopper.add(task.id)
                task = await self._watch(task, self._person(interrupts) or NobodyAnswers(self._terminal), is_new)
            except asyncio.CancelledError:
                if interrupts.count < 2:
                    raise
                await stopper.delivered()
                return EXIT_STOPPED
            finally:
                self._terminal.clear_status()
        return self._finish(task)

    async def as_onlooker(self, task: Task) -> int:
        """Ctrl+C leaves the task at work. Where nobody can type its questions are left to others."""
        with Interrupts(None) as interrupts:
            try:
                answers = self._person(interrupts) or OthersAnswer(self._terminal)
                task = await self._watch(task, answers, is_new=False)
            except asyncio.CancelledError:
                if not interrupts.count:
                    raise
                self._terminal.note(f"errand: left; the task goes on. Back to it: errand attach {short_id(task.id)}")
                return EXIT_STOPPED
            finally:
                self._terminal.clear_status()
        return self._finish(task)

    def _person(self, interrupts: Interrupts) -> PersonAnswers | None:
        if self._as_json or self._events is not None or not self._terminal.interactive:
            return None
        return PersonAnswers(self._terminal, interrupts)

    async def _watch(self, task: Task, answers: Answers, is_new: bool) -> Task:
        """A new task is shown from its first event, another one with what it has done so far."""
        start = self._connection.welcome
        watch = Watch(self._connection, self._screen(task), answers)
        try:
            if is_new:
                await watch.follow(task.conversation_id, task.id, after=start.head, epoch=start.epoch)
            else:
                await watch.follow(task.conversation_id, task.id)
            await watch.until_ended([task.id])
        finally:
            watch.close()
        return watch.tasks[task.id]

    def _screen(self, task: Task) -> Screen:
        if self._events is not None:
            return EventScreen(self._terminal, AgentView() if self._events == "agent" else ThoughtView(task.id))
        if self._as_json:
            return JsonScreen(self._terminal)
        screen = PeopleScreen(self._terminal)
        screen.add(task.conversation_id)
        self._terminal.line(task_line(task, self._terminal.style, self._terminal.width))
        return screen

    def _finish(self, task: Task) -> int:
        code = exit_code(task)
        if self._as_json:
            self._terminal.line(result_line(task, code))
        elif self._answer_to is not None and code == 0:
            self._answer_to.line(msgspec.json.encode(task.answer).decode())
        return code

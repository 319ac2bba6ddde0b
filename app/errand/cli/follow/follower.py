"""Follows one task and its round to the exit code. `commands` starts the task."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from errand.cli.exit_codes import EXIT_STOPPED, exit_code, json_result
from errand.cli.follow.answers import NoAnswerer, OtherClientsAnswerer, PersonAnswerer
from errand.cli.follow.interrupts import Interrupts, OrderlyStop
from errand.cli.follow.typed_lines import ATTACHED, AttachedPrompt
from errand.cli.rendering.screen import AgentEventScreen, JsonScreen, Output, TextScreen
from errand.cli.rendering.task_lines import prompt_line
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import one_line, short_id, wrapped
from errand.client.agent_events import AgentView
from errand.client.connection import Connection
from errand.client.conversation.task_watcher import Answerer, TaskDisplay, TaskWatcher
from errand.client.thought_events import ThoughtView
from errand.protocol.tasks.methods import TASK_NEXT, TaskIdParams
from errand.protocol.tasks.task import Task
from errand.text.translation import tr

if TYPE_CHECKING:
    from errand.cli.terminal.prompt import LivePrompt  # prompt_toolkit takes 90 ms


def interrupted_text(task: Task) -> str:
    return tr("errand: the task was interrupted, since the engine ended. Continue it: errand resume {name}").format(
        name=short_id(task.id)
    )


class TaskFollower:
    """Shows tasks of one connection, for people or with `as_json` for programs.

    `events` selects another event format: `agent` or `react`. With `answer_to` the answer of a task with a schema
    goes there, and everything else to the terminal. `thinking` shows what the model thinks, on a terminal alone.
    """

    def __init__(
        self,
        connection: Connection,
        terminal: Terminal,
        *,
        as_json: bool,
        events: str | None = None,
        answer_to: Terminal | None = None,
        if_refused: str = "",
        thinking: bool = True,
    ) -> None:
        """`if_refused` is printed at the end if calls were not allowed."""
        self._connection = connection
        self._terminal = terminal
        self._as_json = as_json
        self._events = events
        self._answer_to = answer_to
        self._if_refused = if_refused
        self._thinking = thinking and terminal.is_screen

    async def run_to_end(self, begin: Callable[[], Awaitable[Task]], *, is_new: bool) -> int:
        """Follow a task that Ctrl+C stops. The exit code is that of the last task of its round."""
        stopper = OrderlyStop(self._connection, self._terminal)
        with Interrupts(stopper.stop) as interrupts:
            try:
                task = await begin()
                answers = self._person_answerer(interrupts) or NoAnswerer(self._terminal)
                tasks = await self._watch(task, self._screen(task), answers, stopper.add, is_new=is_new)
            except asyncio.CancelledError:
                if interrupts.count < 2:
                    raise
                await stopper.wait_accepted()
                return EXIT_STOPPED
            finally:
                self._terminal.clear_status()
        return self._finish(tasks)

    async def watch_only(self, task: Task) -> int:
        """Follow a task that keeps running after Ctrl+C, and that other clients answer."""
        with Interrupts(None) as interrupts:
            watching = self._watch(task, self._screen(task), OtherClientsAnswerer(self._terminal), is_new=False)
            return await self._until_left(task, interrupts, watching)

    async def steer(self, task: Task, prompt: "LivePrompt") -> int:
        """Follow a task that a person types to. It keeps running after Ctrl+C."""
        screen = self._text_screen(task, prompt)
        self._terminal.line(self._terminal.style.dim(wrapped(ATTACHED, self._terminal.width)))
        with Interrupts(None) as interrupts:
            typed = AttachedPrompt(self._connection, prompt, screen, task, interrupts.press)
            code = await self._until_left(task, interrupts, self._watch_and_read(task, screen, prompt, typed))
        if prompt.unsent:
            self._terminal.note(tr("errand: not sent: {unsent}").format(unsent=one_line(prompt.unsent, 200)))
        return code

    async def _until_left(self, task: Task, interrupts: Interrupts, watching: Awaitable[list[Task]]) -> int:
        try:
            tasks = await watching
        except asyncio.CancelledError:
            if not interrupts.count:
                raise
            self._terminal.note(
                tr("errand: detached; the task keeps running. Follow it again: errand attach {id}").format(
                    id=short_id(task.id)
                )
            )
            return EXIT_STOPPED
        finally:
            self._terminal.clear_status()
        return self._finish(tasks)

    async def _watch_and_read(
        self, task: Task, screen: TaskDisplay, prompt: "LivePrompt", typed: AttachedPrompt
    ) -> list[Task]:
        def on_started(task_id: str) -> None:
            typed.task_id = task_id

        with prompt.opened():
            try:
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(typed.read())
                    ended = await self._watch(task, screen, typed.answers, on_started, is_new=False)
                    reading.cancel()
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None
        return ended

    def _person_answerer(self, interrupts: Interrupts) -> PersonAnswerer | None:
        if self._as_json or self._events is not None or not self._terminal.interactive:
            return None
        return PersonAnswerer(self._terminal, interrupts)

    async def _watch(
        self,
        task: Task,
        screen: TaskDisplay,
        answers: Answerer,
        on_started: Callable[[str], None] | None = None,
        *,
        is_new: bool,
    ) -> list[Task]:
        """Return a task and its successors in a round, at their ends; calls `on_started` with the id of each.

        A new task is shown from its first event, another one with its previous events.
        """
        start = self._connection.welcome
        watch = TaskWatcher(self._connection, screen, answers)
        try:
            if is_new:
                await watch.follow(task.conversation_id, task.id, after=start.head, epoch=start.epoch)
            else:
                await watch.follow(task.conversation_id, task.id)
            current, ended = task, list[Task]()
            while current is not None:
                if on_started is not None:
                    on_started(current.id)
                await watch.until_ended([current.id])
                ended.append(watch.tasks[current.id])
                current = await self._next(ended[-1])
            if ended[-1].activity.status != "interrupted":  # then the engine is ending, and says nothing more
                await watch.until_shown()  # the reason for the end of the round
        finally:
            watch.close()
        return ended

    async def _next(self, task: Task) -> Task | None:
        """Return the next task in a round; None if this one was stopped or interrupted."""
        if task.activity.status not in ("completed", "error"):
            return None
        return (await self._connection.call(TASK_NEXT, TaskIdParams(task_id=task.id))).task

    def _screen(self, task: Task) -> TaskDisplay:
        if self._events is not None:
            return AgentEventScreen(self._terminal, AgentView() if self._events == "agent" else ThoughtView(task.id))
        if self._as_json:
            return JsonScreen(self._terminal)
        return self._text_screen(task, self._terminal)

    def _text_screen(self, task: Task, output: Output) -> TextScreen:
        screen = TextScreen(output, thinking=self._thinking)
        screen.add(task.conversation_id)
        screen.mark_typed(task.conversation_id, task.request.prompt)  # as the line below
        self._terminal.line(prompt_line(task, self._terminal.style, self._terminal.width))
        return screen

    def _finish(self, tasks: Sequence[Task]) -> int:
        if self._if_refused and any(task.progress.refused_calls for task in tasks):
            self._terminal.note(self._if_refused)
        if tasks[-1].activity.status == "interrupted":
            self._terminal.note(interrupted_text(tasks[-1]))
        for task in tasks:
            code = exit_code(task)
            if self._as_json:
                self._terminal.line(json_result(task, code))
            elif self._answer_to is not None and code == 0 and task.request.answer_schema is not None:
                self._answer_to.line(msgspec.json.encode(task.outcome.answer).decode())
        return exit_code(tasks[-1])

"""`errand ask-models`: the same asked of several models at once, and their answers beside each other."""

import asyncio

import msgspec

from app.cli.answers import Answers, NobodyAnswers, PersonAnswers
from app.cli.asks import ask_lines
from app.cli.beside import beside
from app.cli.figures import account, short_id
from app.cli.interrupts import Interrupts
from app.cli.options import Options
from app.cli.outcome import EXIT_STOPPED, exit_code
from app.cli.run import UsageError, confirm_workspace, read_prompt, start_params
from app.cli.screen import PeopleScreen, Shown
from app.cli.stopping import Stopper
from app.cli.terminal import Terminal
from app.cli.watch import Watch
from app.client.connection import Connection
from app.client.endings import is_unfinished, unfinished_words
from app.client.launch import connect
from app.paths import Paths
from app.protocol.comparisons import TaskCompareModelsParams
from app.protocol.events import AskUpdate, EventRecord, TaskUpdate
from app.protocol.tasks import Task
from app.protocol.wire import TASK_COMPARE_MODELS


class _Progress(PeopleScreen):
    """How many have answered, and what is asked meanwhile: the answers come when all are there."""

    def __init__(self, terminal: Terminal, count: int) -> None:
        super().__init__(terminal)
        self._output = terminal
        self._count = count
        self._ended: set[str] = set()

    def show(self, conversation_id: str, message: Shown) -> None:
        match message:
            case EventRecord(event=TaskUpdate(task=task)) if task.ended_at is not None:
                self._ended.add(task.id)
            case EventRecord(event=AskUpdate(ask=ask)) if ask.status == "waiting":
                self._output.write("\n".join(ask_lines(ask, self._output.style, self._output.width)) + "\n")
            case _:
                pass
        self.tick()

    def tick(self) -> None:
        self._output.status(f"{len(self._ended)} of {self._count} have answered")


async def ask_models(options: Options, paths: Paths, terminal: Terminal) -> int:
    """0 where at least one has answered, else how the first one ended."""
    models = tuple(options.models or ())
    if len(models) < 2:
        raise UsageError("Name the models, at least two: errand ask-models -m MODEL -m MODEL 'what to ask'")
    someone = terminal.interactive and not options.json
    start = start_params(options, read_prompt(options.prompt), someone)
    connection = await connect(paths, "errand ask-models")
    try:
        if someone:
            await confirm_workspace(connection, start, terminal)
        params = TaskCompareModelsParams(models=models, start=start)
        tasks = await _asked(connection, params, terminal, someone=someone)
    finally:
        await connection.close()
    if not tasks:
        return EXIT_STOPPED
    for line in [msgspec.json.encode(task).decode() for task in tasks] if options.json else _lines(tasks, terminal):
        terminal.line(line)
    codes = [exit_code(task) for task in tasks]
    return 0 if 0 in codes else codes[0]


async def _asked(
    connection: Connection, params: TaskCompareModelsParams, terminal: Terminal, *, someone: bool
) -> tuple[Task, ...]:
    """The tasks at their ends; none where a second Ctrl+C left them. The first one stops all of them."""
    before = connection.welcome
    stopper = Stopper(connection, terminal)
    with Interrupts(stopper.stop) as interrupts:
        answers: Answers = PersonAnswers(terminal, interrupts) if someone else NobodyAnswers(terminal)
        watch = Watch(connection, _Progress(terminal, len(params.models)), answers)
        try:
            tasks = (await connection.call(TASK_COMPARE_MODELS, params)).tasks
            for task in tasks:
                stopper.add(task.id)
            await watch.follow(tasks[0].conversation_id, after=before.head, epoch=before.epoch)
            await watch.until_ended([task.id for task in tasks])
        except asyncio.CancelledError:
            if interrupts.count < 2:
                raise
            await stopper.delivered()
            return ()
        finally:
            watch.close()
            terminal.clear_status()
    return tuple(watch.tasks[task.id] for task in tasks)


def _lines(tasks: tuple[Task, ...], terminal: Terminal) -> list[str]:
    style = terminal.style
    told = [(f"{task.model} · {short_id(task.id)}", _answer(task), account(task, style)) for task in tasks]
    return beside(told, terminal.width, style)


def _answer(task: Task) -> str:
    if task.stop_reason == "completed":
        return f"({unfinished_words(task)})\n\n{task.summary}" if is_unfinished(task) else task.summary
    return task.error or f"It ended without an answer: {(task.stop_reason or task.status).replace('_', ' ')}."

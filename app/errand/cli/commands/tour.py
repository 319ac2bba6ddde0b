"""`errand tour`: three tasks at once in a scratch folder, with a scripted model or one of yours, and real tools."""

from pathlib import Path
from typing import Annotated

from errand.cli.command import Command
from errand.cli.exit_codes import exit_code
from errand.cli.follow.answers import PersonAnswerer
from errand.cli.follow.interrupts import Interrupts, OrderlyStop
from errand.cli.options import CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.rendering.screen import TextScreen
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import plain, short_path
from errand.client.connection import Connection
from errand.client.conversation.task_watcher import Answerer, TaskWatcher
from errand.client.launch import connect
from errand.client.tour import LABEL, TOUR_TASKS, TourTask, make_workspace
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.tasks.methods import TASK_START
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import tr

_COLOURS = {"fix": "36", "note": "35", "clean": "34"}


class TourAnswerer:
    """Answers in place of a person, and says so."""

    is_person = False

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def answer(self, ask: Ask, task: Task | None) -> AskAnswerParams:
        if ask.kind == "question":
            text = ask.choices[0] if ask.choices else "friendly"
            self._say(tr("the tour answers: {text}").format(text=plain(text)))
            return AskAnswerParams(ask_id=ask.id, text=text)
        self._say(tr("the tour allows it once"))
        return AskAnswerParams(ask_id=ask.id, allow=True)

    def _say(self, text: str) -> None:
        self._terminal.line(self._terminal.style.amber(tr("No terminal input: {text}").format(text=text)))


class TourOptions(CommandOptions, frozen=True, kw_only=True):
    model: Annotated[str, Option("--model", "run the three tasks for real, with this model", "M")] = ""


async def tour(options: TourOptions, paths: Paths, output: CommandOutput) -> int:
    """Play the tour; returns 0 if every task is complete."""
    async with await connect(paths, "errand tour") as connection:
        return await play(connection, paths, output.terminal, options.model)


TOUR = Command(TourOptions, tour)


async def play(connection: Connection, paths: Paths, terminal: Terminal, model: str = "") -> int:
    """Play the tour with its scripts, or for real with a model."""
    workspace = make_workspace(paths.workspaces)
    for line in introduction(workspace, terminal, model):
        terminal.line(line)
    start = connection.welcome
    screen = TextScreen(terminal)
    stopper = OrderlyStop(connection, terminal)
    with Interrupts(stopper.stop) as interrupts:
        answers: Answerer = TourAnswerer(terminal)
        if terminal.interactive:
            answers = PersonAnswerer(terminal, interrupts)
        watch = TaskWatcher(connection, screen, answers)
        try:
            for story in TOUR_TASKS:
                task = (await connection.call(TASK_START, story.start_in(workspace, model))).task
                stopper.add(task.id)
                screen.add(task.conversation_id, _label(story, terminal), streams=False)
                screen.mark_typed(task.conversation_id, story.prompt)
                await watch.follow(task.conversation_id, after=start.head, epoch=start.epoch)
            await watch.until_ended(stopper.task_ids)
        finally:
            watch.close()
            terminal.clear_status()
    return _print_outcome(list(watch.tasks.values()), workspace, interrupts.count, terminal, model)


def introduction(workspace: Path, terminal: Terminal, model: str = "") -> list[str]:
    style = terminal.style
    label = plain(model) if model else LABEL
    about = [
        tr("No model is called and nothing leaves this machine. Replies come from a script;"),
        tr("the files, the commands and their results are real."),
    ]
    lines = [
        f"{style.bold(tr('The Errand tour'))}{style.sign('sep')}{style.amber(label)}",
        *([] if model else about),
        tr("Workspace: {workspace}").format(workspace=short_path(str(workspace))),
        "",
    ]
    rows = [f"  {style.paint(_COLOURS[story.name], f'{story.name:<5}')}  {story.prompt}" for story in TOUR_TASKS]
    return [*lines, tr("Three tasks now start at once:"), *rows, ""]


def _label(story: TourTask, terminal: Terminal) -> str:
    return terminal.style.paint(_COLOURS[story.name], f"{story.name:<5} {terminal.style.sign('bar')} ")


def _print_outcome(tasks: list[Task], workspace: Path, interrupts: int, terminal: Terminal, model: str) -> int:
    style = terminal.style
    complete = sum(exit_code(task) == 0 for task in tasks)
    terminal.line()
    terminal.line(
        style.bold(
            tr("{complete} of {TOUR_TASKS} tasks complete.").format(complete=complete, TOUR_TASKS=len(TOUR_TASKS))
        )
        + tr(" Their files: {workspace}").format(workspace=workspace)
    )
    if interrupts:
        return 130
    if complete < len(TOUR_TASKS):
        return 1
    if model:
        text = tr("Next, a task of your own: errand run --model {model} 'what to do'")
        terminal.line(text.format(model=plain(model)))
        return 0
    terminal.line(tr("Next: set a key such as OPENAI_API_KEY or start Ollama, check with `errand models`,"))
    terminal.line(tr("then start your own task: errand run 'what to do'   or   errand chat"))
    return 0

"""`errand run`: one task, followed to its end."""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from app.cli.answers import Answers, NobodyAnswers, PersonAnswers
from app.cli.interrupts import Interrupts
from app.cli.options import Options
from app.cli.render import task_line
from app.cli.screen import JsonScreen, PeopleScreen, Screen
from app.cli.stopping import Stopper
from app.cli.terminal import Terminal
from app.cli.watch import Watch
from app.client.connection import Connection
from app.client.launch import connect
from app.paths import Paths
from app.protocol.agents import ThinkingLevel
from app.protocol.json import JsonObject
from app.protocol.tasks import ApproveMode, Task, TaskMode, TaskStartParams
from app.protocol.wire import TASK_START

EXIT_ERROR, EXIT_USAGE, EXIT_LIMIT, EXIT_STOPPED = 1, 2, 3, 130


class UsageError(Exception):
    """What was typed cannot be done; the text says what to type instead."""


async def run(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Start the task, show it, settle what it asks; the exit code says how it ended."""
    someone = terminal.interactive and not options.json
    params = start_params(options, read_prompt(options.prompt), someone)
    if options.approve == "ask" and not someone:
        terminal.note("errand: nobody is there to ask, so what needs approval is refused (--approve all allows it)")
    connection = await connect(paths, "errand run")
    try:
        return await _follow(connection, params, options.json, terminal)
    finally:
        await connection.close()


def start_params(options: Options, prompt: str, someone: bool) -> TaskStartParams:
    """The options as the engine takes them; raises `UsageError`."""
    approve: ApproveMode = "ask" if someone else "never"
    if options.approve != "ask":
        approve = msgspec.convert(options.approve, ApproveMode)
    return TaskStartParams(
        prompt=prompt,
        conversation_id=options.conversation,
        model=options.model,
        api_base=options.api_base,
        api_key=_key(options.api_key_env),
        workspace=None if options.conversation and not options.workspace else _workspace(options.workspace),
        mode=msgspec.convert(options.mode, TaskMode),
        approve=approve,
        thinking_level=msgspec.convert(options.thinking, ThinkingLevel | None),
        max_turns=options.max_turns,
        budget_usd=options.budget,
    )


def read_prompt(argument: str) -> str:
    """The prompt, from standard input for `-`; raises `UsageError` when there is none."""
    prompt = sys.stdin.read() if argument == "-" else argument
    if not prompt.strip():
        raise UsageError("The prompt is empty. Say what to do, for example: errand run 'list the largest files here'")
    return prompt


async def _follow(connection: Connection, params: TaskStartParams, as_json: bool, terminal: Terminal) -> int:
    stopper = Stopper(connection, terminal)
    with Interrupts(stopper.stop) as interrupts:
        answers: Answers = NobodyAnswers(terminal)
        if terminal.interactive and not as_json:
            answers = PersonAnswers(terminal, interrupts)
        try:
            task = await _start(connection, params, stopper)
            task = await _watch(connection, task, _screen(terminal, task, as_json), answers)
        except asyncio.CancelledError:
            if interrupts.count < 2:
                raise
            await stopper.delivered()
            return EXIT_STOPPED
        finally:
            terminal.clear_status()
    return _finish(task, as_json, terminal)


async def _start(connection: Connection, params: TaskStartParams, stopper: Stopper) -> Task:
    task = (await connection.call(TASK_START, params)).task
    stopper.add(task.id)
    return task


async def _watch(connection: Connection, task: Task, screen: Screen, answers: Answers) -> Task:
    """Follow the task from its first event to its end."""
    start = connection.welcome
    watch = Watch(connection, screen, answers)
    try:
        await watch.follow(task.conversation_id, after=start.head, epoch=start.epoch)
        await watch.until_ended([task.id])
    finally:
        watch.close()
    return watch.tasks[task.id]


def _screen(terminal: Terminal, task: Task, as_json: bool) -> Screen:
    if as_json:
        return JsonScreen(terminal)
    screen = PeopleScreen(terminal)
    screen.add(task.conversation_id)
    terminal.line(task_line(task, terminal.style, terminal.width))
    return screen


def _finish(task: Task, as_json: bool, terminal: Terminal) -> int:
    code = exit_code(task)
    if as_json:
        terminal.line(msgspec.json.encode(result_line(task, code)).decode())
    return code


def exit_code(task: Task) -> int:
    match task.stop_reason:
        case "completed":
            return 0
        case "manual_stop":
            return EXIT_STOPPED
        case "iteration_limit" | "time_limit" | "budget_limit":
            return EXIT_LIMIT
        case "error" | None:
            return EXIT_ERROR


def result_line(task: Task, code: int) -> JsonObject:
    """The last line of --json: how the task ended and what it took."""
    whole: JsonObject = msgspec.to_builtins(task)
    return {"type": "result", "exitCode": code, "turns": task.step_count, **whole}


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"The environment variable {variable} is not set, so there is no key to use.")
    return key


def _workspace(folder: str | None) -> str:
    path = Path(folder or ".").expanduser()
    if not path.is_dir():
        raise UsageError(
            f"There is no folder {str(path)!r} to work in. Make it first, or name another with --workspace."
        )
    return str(path.resolve())

"""Entry of the command line: parses, runs the command, turns errors into texts and exit codes."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from app.cli.arguments import UsageError
from app.cli.exit_codes import EXIT_ERROR, EXIT_STOPPED, EXIT_USAGE, json_failure
from app.cli.options import Options, parse
from app.cli.terminal.terminal import OutputClosed, Terminal, close_output, standard_terminal
from app.cli.terminal.text import plain
from app.client.errors import CallError, ConnectionLost, LaunchError
from app.paths import Paths, default_paths
from app.printable import printable

CommandHandler: TypeAlias = Callable[[Options, Paths, Terminal], Awaitable[int]]

# Error codes of the engine that the user can fix by changing the command.
_USAGE_CODES = frozenset({"invalid_params", "configuration_error", "not_found", "unconfirmed_workspace"})


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    options = parse([_as_text(argument) for argument in arguments])
    terminal = standard_terminal()
    try:
        return asyncio.run(_run(options, default_paths(), terminal))
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except OutputClosed as closed:
        if str(closed):
            sys.stderr.write(f"errand: {printable(str(closed))}\n")
        close_output()
        return EXIT_ERROR
    except UsageError as error:
        return _failed(options, terminal, str(error), EXIT_USAGE)
    except CallError as error:
        return _failed(options, terminal, str(error), EXIT_USAGE if error.code in _USAGE_CODES else EXIT_ERROR)
    except (ConnectionLost, LaunchError) as error:
        return _failed(options, terminal, str(error), EXIT_ERROR)


def _as_text(argument: str) -> str:
    """Replaces bytes that are not UTF-8 with the replacement character: the engine accepts text only."""
    return os.fsencode(argument).decode("utf-8", "replace")


async def _run(options: Options, paths: Paths, terminal: Terminal) -> int:
    name = "repair" if options.repair else options.command
    some = _of_one_task(name) or _of_the_data(name) or _of_conversations(name) or _of_choices(name)
    command = some or _of_everything(name)
    return await command(options, paths, terminal)


# Import each command on use, so that no command pays for another's imports.


def _of_one_task(name: str | None) -> CommandHandler | None:
    match name:
        case "run":
            from app.cli.commands.run import run as command
        case "chat":
            from app.cli.commands.chat import chat as command
        case "attach":
            from app.cli.commands.tasks import attach as command
        case "resume":
            from app.cli.commands.tasks import resume as command
        case "pause":
            from app.cli.commands.tasks import pause as command
        case "mode":
            from app.cli.commands.tasks import set_mode as command
        case "stop":
            from app.cli.commands.tasks import stop_task as command
        case "context":
            from app.cli.commands.task_details import show_context as command
        case "record":
            from app.cli.commands.task_details import write_record as command
        case _:
            return None
    return command


def _of_the_data(name: str | None) -> CommandHandler | None:
    match name:
        case "backup":
            from app.cli.recovery.backup import backup as command
        case "restore":
            from app.cli.recovery.restore import restore as command
        case "repair":
            from app.cli.recovery.repair import repair as command
        case _:
            return None
    return command


def _of_conversations(name: str | None) -> CommandHandler | None:
    match name:
        case "export":
            from app.cli.commands.conversations import export as command
        case "import":
            from app.cli.commands.conversations import import_file as command
        case "orphans":
            from app.cli.commands.conversations import orphans as command
        case "prune":
            from app.cli.commands.conversations import prune as command
        case "delete":
            from app.cli.commands.conversations import delete as command
        case "agents":
            from app.cli.commands.agents import agents as command
        case _:
            return None
    return command


def _of_choices(name: str | None) -> CommandHandler | None:
    match name:
        case "ask-models":
            from app.cli.commands.comparison import ask_models as command
        case "compare":
            from app.cli.commands.comparison import compare as command
        case "output":
            from app.cli.commands.task_details import show_output as command
        case "prompt":
            from app.cli.commands.task_details import show_prompt as command
        case "personalities":
            from app.cli.commands.personalities import personalities as command
        case _:
            return None
    return command


def _of_everything(name: str | None) -> CommandHandler:
    match name:
        case "tasks":
            from app.cli.commands.tasks import list_tasks as command
        case "search":
            from app.cli.commands.conversations import search as command
        case "models":
            from app.cli.commands.models import models as command
        case "usage":
            from app.cli.commands.usage import show_usage as command
        case "engine":
            from app.cli.commands.doctor import stop_engine as command
        case "doctor":
            from app.cli.commands.doctor import doctor as command
        case "tour":
            from app.cli.commands.tour import tour as command
        case _:
            from app.cli.commands.start import start as command
    return command


def _failed(options: Options, terminal: Terminal, text: str, code: int) -> int:
    terminal.note(f"errand: {plain(text)}")
    if options.command in ("run", "resume", "attach") and options.json:
        terminal.line(json_failure(text, code))
    return code

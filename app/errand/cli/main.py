"""Entry of the command line: parses, runs the command, turns errors into texts and exit codes."""

import asyncio
import os
import sys

from errand.cli.command import Invocation
from errand.cli.exit_codes import EXIT_ERROR, EXIT_STOPPED, EXIT_USAGE, CommandError, json_failure
from errand.cli.parser import parse
from errand.cli.rendering.task_lines import unreachable_text
from errand.cli.table import TABLE
from errand.cli.terminal.terminal import OutputClosed, Terminal, close_output, standard_terminal
from errand.cli.terminal.text import plain
from errand.client.errors import CallError, ConnectionLost, EngineUnreachable, LaunchError
from errand.system.paths import default_paths
from errand.text.printable import printable
from errand.text.translation import tr

# Error codes of the engine that the user can fix by changing the command.
_USAGE_CODES = frozenset({"invalid_params", "configuration_error", "not_found", "unconfirmed_workspace"})


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    invocation = parse([_as_text(argument) for argument in arguments], TABLE)
    terminal = standard_terminal()
    try:
        return asyncio.run(_run(invocation, terminal))
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except OutputClosed as closed:
        if str(closed):
            sys.stderr.write(f"errand: {printable(str(closed))}\n")
        close_output()
        return EXIT_ERROR
    except CommandError as error:
        return report_failure(invocation, terminal, str(error), error.code)
    except CallError as error:
        code = EXIT_USAGE if error.code in _USAGE_CODES else EXIT_ERROR
        return report_failure(invocation, terminal, str(error), code)
    except EngineUnreachable as error:
        return report_failure(invocation, terminal, unreachable_text(error), EXIT_ERROR)
    except (ConnectionLost, LaunchError) as error:
        return report_failure(invocation, terminal, str(error), EXIT_ERROR)
    except OSError as error:
        return report_failure(invocation, terminal, system_error_text(error), EXIT_ERROR)


def system_error_text(error: OSError) -> str:
    """Return a text about an error that no command explains itself, such as a removed working directory."""
    try:
        os.getcwd()
    except OSError:
        return tr("The current folder no longer exists. Change to another one and try again.")
    return tr("{filename} cannot be used: {strerror}.").format(
        filename=error.filename or tr("A file"), strerror=error.strerror or error
    )


def _as_text(argument: str) -> str:
    """Replaces bytes that are not UTF-8 with the replacement character: the engine accepts text only."""
    return os.fsencode(argument).decode("utf-8", "replace")


async def _run(invocation: Invocation, terminal: Terminal) -> int:
    return await invocation.run(default_paths(), terminal)


def report_failure(invocation: Invocation, terminal: Terminal, text: str, code: int) -> int:
    """Print an error for the person and, with `--json`, for the program; returns the exit code."""
    terminal.note(f"errand: {plain(text)}")
    if invocation.as_json:
        terminal.line(json_failure(text, code))
    return code

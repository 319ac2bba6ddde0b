"""`errand help` and `errand man`: the help of a command, and the manual page made from the table of commands."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

from errand.cli.arguments import UsageError
from errand.cli.command import Command, Entry
from errand.cli.exit_codes import EXIT_CODES_TEXT
from errand.cli.options import Argument, CommandOptions, Described, Flag
from errand.cli.output import CommandOutput
from errand.cli.parser import ABOUT, did_you_mean, general_help, help_width, parser_of, sentence
from errand.cli.table import TABLE
from errand.system.paths import Paths
from errand.text.translation import tr

# The groups of variables that a person may set.
_VARIABLES = (
    ("ERRAND_HOME", "The data directory; ~/.local/share/errand or the system's place for such data otherwise."),
    (
        "OPENAI_API_KEY, ANTHROPIC_API_KEY, …",
        "Keys of providers; errand keys lists the names.",
    ),
    ("VISUAL, EDITOR", "The editor of errand personalities edit."),
    ("NO_COLOR, FORCE_COLOR", "Output without colours, or with colours where it is no terminal."),
)


class HelpOptions(CommandOptions, frozen=True, kw_only=True):
    command: Annotated[str, Argument("COMMAND", "a command (default: all)")] = ""


async def show_help(options: HelpOptions, paths: Paths, output: CommandOutput) -> int:
    if not options.command:
        output.terminal.write(general_help(TABLE, help_width()))
        return 0
    entry = next((entry for entry in TABLE.entries if entry.name == options.command), None)
    if entry is None:
        near = did_you_mean(options.command, [entry.name for entry in TABLE.entries])
        raise UsageError(tr("There is no command {command!r}.{near}").format(command=options.command, near=near))
    output.terminal.write(parser_of(entry, entry.load(), help_width()).format_help())
    return 0


HELP = Command(HelpOptions, show_help)


class ManualOptions(CommandOptions, frozen=True, kw_only=True):
    roff: Annotated[bool, Flag("--roff", "print the source of the manual page, for a file errand.1")] = False


async def manual(options: ManualOptions, paths: Paths, output: CommandOutput) -> int:
    """Show the page with `man`; as it is where there is none, or no terminal."""
    program = shutil.which("man")
    if options.roff:
        output.terminal.write_raw(page())
        return 0
    if program is None:
        output.note(tr("errand: man is not installed, so this is the help for all commands."))
        output.terminal.write(general_help(TABLE, help_width()))
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".1", prefix="errand-", encoding="utf-8") as file:
        file.write(page())
        file.flush()
        viewer = await asyncio.create_subprocess_exec(program, "-l", file.name)
        return await viewer.wait()


MANUAL = Command(ManualOptions, manual)


def page() -> str:
    """Return the manual page as the source of man(7)."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield f'.TH ERRAND 1 "" "errand {_roff(_version())}" "User commands"'
    yield from (".SH NAME", "errand \\- hand work to AI agents that use real tools on this machine")
    yield from (".SH SYNOPSIS", ".B errand", _roff("[-h] [--version] [COMMAND …]"))
    yield from (".SH DESCRIPTION", _roff(ABOUT))
    yield _roff("Without a command it opens the window, or where there is no display a conversation in the terminal.")
    yield _roff("A task goes on when the window or the terminal is closed: one engine runs all of them.")
    for group in TABLE.groups:
        yield f".SH {_roff(tr(group.title).upper())}"
        for entry in group.entries:
            yield from _command(entry)
    yield ".SH EXAMPLES"
    for about, line in TABLE.examples:
        yield from (".TP", _roff(f"{about[0].upper()}{about[1:]}:"), f".B {_roff(line)}")
    yield ".SH ENVIRONMENT"
    for name, about in _VARIABLES:
        yield from (".TP", f".B {_roff(name)}", _roff(about))
    yield from (".SH EXIT STATUS", _roff(EXIT_CODES_TEXT))


def _version() -> str:
    """Empty while it is being built."""
    try:
        return version("errand-desktop")
    except PackageNotFoundError:
        return ""


def _command(entry: Entry) -> Iterator[str]:
    command = entry.load()
    parts = entry.described()
    arguments = " ".join(_usage(part) for part in parts if not part.is_option)
    yield f".SS {_roff(f'errand {entry.name} {arguments}'.rstrip())}"
    yield _roff(sentence(tr(entry.help)))
    for action in command.actions:
        yield from (".TP", f".B {_roff(f'errand {entry.name} {action.usage}')}", _roff(tr(action.help)))
    for part in parts:
        if part.is_option or not command.actions:
            yield from (".TP", f".B {_roff(_usage(part))}", _roff(part.help))
    if command.epilog and command.epilog != EXIT_CODES_TEXT:
        yield ".PP"
        text = command.epilog
        yield from (".nf", *map(_roff, text.splitlines()), ".fi") if "\n" in text else (_roff(text),)


def _usage(part: Described) -> str:
    """Return the option or argument with its choices or the placeholder of its value."""
    value = "|".join(part.choices) or part.metavar
    if not part.is_option:
        return f"{value} …" if part.repeats else value
    return f"{part.name} {value}" if value else part.name


def _roff(text: str) -> str:
    """Return the text without a meaning for roff: dashes stay as they are typed, and no line is a request."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    safe = re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", safe)
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe

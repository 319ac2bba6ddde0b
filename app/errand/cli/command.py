"""A command, its line in the table of commands, and the parser that is built from both."""

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Generic

from errand.arguments import Parser
from errand.cli.exit_codes import EXIT_CODES_TEXT
from errand.cli.options import CommandOptions, OptionsT, declare, option_names, read, rest_of
from errand.cli.terminal.terminal import Terminal
from errand.paths import Paths

_ABOUT = "Errand hands work to AI agents that use real tools on your machine."


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command with its options, ready to run; `run` returns the exit code."""

    options: CommandOptions
    run: Callable[[Paths, Terminal], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Command(Generic[OptionsT]):
    """The options of a command, the function that runs it, and the text below its help."""

    options: type[OptionsT]
    run: Callable[[OptionsT, Paths, Terminal], Awaitable[int]]
    epilog: str | None = None

    def invocation(self, values: Mapping[str, object]) -> Invocation:
        options = read(self.options, values)
        return Invocation(options, lambda paths, terminal: self.run(options, paths, terminal))


@dataclass(frozen=True, slots=True)
class Entry:
    """A line in the table of commands.

    `location` is the module below errand/cli and the name of its `Command`. It is imported on use, so that no command
    pays for another's imports.
    """

    name: str
    help: str
    location: str

    def load(self) -> Command[CommandOptions]:
        module, _, name = self.location.partition(":")
        return getattr(import_module(f"errand.cli.{module}"), name)


def parse(arguments: list[str], entries: Sequence[Entry], default: Entry) -> Invocation:
    """Parse the command line; returns `alone` if it names no command.

    Raises SystemExit(2) with an error text for wrong usage, SystemExit(0) after --help and --version.
    """
    parser = Parser(prog="errand", description=_ABOUT, epilog=EXIT_CODES_TEXT)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND")
    named = next((argument for argument in arguments if not argument.startswith("-")), None)
    command = None
    own: argparse.ArgumentParser = parser
    first = [entry for entry in entries if [entry.name] == arguments[:1]]
    if named is not None and named not in (names := [entry.name for entry in entries]):
        parser.error(f"there is no command {named!r}.{_did_you_mean(named, names)}")
    for entry in first or entries:  # building the parsers of all commands takes 4 ms
        about = f"{entry.help[0].upper()}{entry.help[1:]}."
        made = commands.add_parser(entry.name, help=entry.help, description=about)
        if entry.name == named:
            command = entry.load()
            own = made
            own.epilog = command.epilog
            if "\n" in (command.epilog or ""):
                own.formatter_class = argparse.RawDescriptionHelpFormatter
            declare(command.options, own)
    rest = rest_of(command.options) if command is not None else None
    given, following = arguments, list[str]()
    if rest is not None and "--" in arguments:
        at = arguments.index("--")
        given, following = arguments[:at], arguments[at + 1 :]
    found, unknown = parser.parse_known_args(given)
    if unknown and command is not None:
        own.error(_not_understood(unknown[0], command.options))
    if unknown:
        parser.error(f"there is no option {unknown[0]}.")
    values = vars(found) | ({rest: following} if rest is not None else {})
    return (command or default.load()).invocation(values)


def _not_understood(argument: str, options: type[CommandOptions]) -> str:
    if not argument.startswith("-"):
        return f"{argument!r} is one argument too many."
    name = argument.partition("=")[0]
    return f"there is no option {name}.{_did_you_mean(name, option_names(options))}"


def _did_you_mean(given: str, names: Sequence[str]) -> str:
    """Empty if no name is like it."""
    from difflib import get_close_matches  # takes 5 ms

    near = get_close_matches(given, names, 2, cutoff=0.7)
    return f" Did you mean {' or '.join(near)}?" if near else ""


class _Version(argparse.Action):
    """Looks up the version only on use, which takes 20 ms."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"errand {version('errand-desktop')}\n")
        parser.exit(0)

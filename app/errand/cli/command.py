"""A command, its line in the table of commands, and the groups of that table."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Generic

from errand.cli.options import Action, CommandOptions, Described, OptionsT, described, read
from errand.cli.output import CommandOutput
from errand.cli.terminal.terminal import Terminal
from errand.system.paths import Paths
from errand.text.translation import marked, tr

JSON_LINES_HELP = marked("print JSON lines")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command with its options, ready to run; `run` returns the exit code."""

    options: CommandOptions
    as_json: bool
    run: Callable[[Paths, Terminal], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Command(Generic[OptionsT]):
    """The options of a command, the function that runs it, and the text below its help.

    `actions` are what the first of its `arguments` may be; with `takes_others` it may be something else too.
    `json_help` is the help of `--json`.
    """

    options: type[OptionsT]
    run: Callable[[OptionsT, Paths, CommandOutput], Awaitable[int]]
    epilog: str | None = None
    actions: tuple[Action, ...] = ()
    takes_others: bool = False
    json_help: str = JSON_LINES_HELP

    def invocation(self, values: Mapping[str, object], *, as_json: bool = False) -> Invocation:
        options = read(self.options, values)

        def run(paths: Paths, terminal: Terminal) -> Awaitable[int]:
            return self.run(options, paths, CommandOutput(terminal, as_json=as_json))

        return Invocation(options, as_json, run)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line in the table of commands.

    `location` is the module below errand/cli and the name of its `Command`. It is imported on use, so that no command
    pays for another's imports. Every command has `--json`, unless `without_json` gives the reason why not.
    """

    name: str
    help: str
    location: str
    without_json: str = ""

    def load(self) -> Command[CommandOptions]:
        module, _, name = self.location.partition(":")
        return getattr(import_module(f"errand.cli.{module}"), name)

    def described(self) -> list[Described]:
        """Return the options and arguments, in their order; not what follows `--`."""
        command = self.load()
        json = [] if self.without_json else [Described("--json", tr(command.json_help))]
        return described(command.options) + json


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """All commands. `default` runs if none is named; `examples` are what a line is for, and the line."""

    groups: tuple[Group, ...]
    default: Entry
    examples: tuple[tuple[str, str], ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for group in self.groups for entry in group.entries)

"""A command, its line in the table of commands, and the groups of that table."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Generic

from errand.cli.options import Action, CommandOptions, OptionsT, read
from errand.cli.terminal.terminal import Terminal
from errand.system.paths import Paths


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command with its options, ready to run; `run` returns the exit code."""

    options: CommandOptions
    run: Callable[[Paths, Terminal], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Command(Generic[OptionsT]):
    """The options of a command, the function that runs it, and the text below its help.

    `actions` are what the first of its `words` may be; with `takes_others` it may be something else too.
    """

    options: type[OptionsT]
    run: Callable[[OptionsT, Paths, Terminal], Awaitable[int]]
    epilog: str | None = None
    actions: tuple[Action, ...] = ()
    takes_others: bool = False

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

"""`errand explain`: says what the permission policy decides and why. Its options; `errand.__main__` asks it."""

from typing import Annotated

from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_USAGE
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.terminal.terminal import Terminal
from errand.paths import Paths


class ExplainOptions(CommandOptions, frozen=True, kw_only=True):
    what: Annotated[str | None, Argument("COMMAND", "a command line in quotes; with --json cases come from input")] = (
        None
    )
    path: Annotated[str | None, Option("--path", "explain reading this path instead of a command", "PATH")] = None
    write: Annotated[bool, Flag("--write", "with --path: writing it")] = False
    address: Annotated[str | None, Option("--address", "explain opening this web address", "URL")] = None
    workspace: Annotated[str | None, Option("--workspace", "folder it would happen in (default: this one)", "DIR")] = (
        None
    )
    json: Annotated[bool, Flag("--json", "read one case a line from standard input, write one answer a line")] = False

    def names_one(self) -> bool:
        """True if there is exactly one thing to explain."""
        return sum(bool(one) for one in (self.what is not None, self.path, self.address is not None, self.json)) == 1


async def _not_started(options: ExplainOptions, paths: Paths, terminal: Terminal) -> int:
    terminal.note("errand: Name one command in quotes, one --path or one --address, or use --json.")
    return EXIT_USAGE


EXPLAIN = Command(ExplainOptions, _not_started)

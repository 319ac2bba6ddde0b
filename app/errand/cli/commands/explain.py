"""`errand explain`: says what the permission policy decides and why. Its options; `errand.__main__` asks it."""

from typing import Annotated

from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_USAGE
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.terminal.terminal import Terminal
from errand.system.paths import Paths
from errand.text.translation import tr


class ExplainOptions(CommandOptions, frozen=True, kw_only=True):
    what: Annotated[
        str | None, Argument("COMMAND", "a command line in quotes; with --json, cases are read from standard input")
    ] = None
    path: Annotated[str | None, Option("--path", "explain what happens if this path is read", "PATH")] = None
    write: Annotated[bool, Flag("--write", "with --path: explain writing instead of reading")] = False
    address: Annotated[str | None, Option("--address", "explain what happens if this web address is opened", "URL")] = (
        None
    )
    workspace: Annotated[
        str | None, Option("--workspace", "folder in which it would run (default: the current one)", "DIR")
    ] = None
    json: Annotated[
        bool, Flag("--json", "read one case per line from standard input and write one answer per line")
    ] = False

    def names_one(self) -> bool:
        """True if there is exactly one thing to explain."""
        return sum(bool(one) for one in (self.what is not None, self.path, self.address is not None, self.json)) == 1


async def _not_started(options: ExplainOptions, paths: Paths, terminal: Terminal) -> int:
    terminal.note(
        tr("errand: Give one of these: a command in quotes, --path, --address, or --json with cases on standard input.")
    )
    return EXIT_USAGE


EXPLAIN = Command(ExplainOptions, _not_started)

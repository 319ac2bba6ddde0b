"""`errand explain`: says what the permission policy decides and why. Its options; `errand.__main__` asks it."""

from typing import Annotated

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.system.paths import Paths
from errand.text.translation import marked, tr


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

    @property
    def subject_count(self) -> int:
        """The number of things to explain; the cases on standard input are not counted."""
        return sum((self.what is not None, bool(self.path), self.address is not None))


async def _not_started(options: ExplainOptions, paths: Paths, output: CommandOutput) -> int:
    raise UsageError(
        tr("Give one of these: a command in quotes, --path, --address, or --json with cases on standard input.")
    )


EXPLAIN = Command(
    ExplainOptions,
    _not_started,
    json_help=marked("read one case per line from standard input and write one answer per line"),
)

"""The output of a command: lines for a person, or with `--json` one JSON value a line for a program."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from errand.cli.arguments import UsageError
from errand.cli.exit_codes import EXIT_STOPPED, CommandError
from errand.cli.json_lines import json_line
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import aligned
from errand.text.translation import tr

T = TypeVar("T")


class CommandOutput:
    """A terminal that shows each result once: as text, or as JSON if `as_json`.

    With `as_json` standard output has JSON only: text for a person is dropped, remarks go to standard error, and nobody
    is asked.
    """

    def __init__(self, terminal: Terminal, *, as_json: bool = False) -> None:
        self.terminal = terminal
        self.as_json = as_json

    @property
    def style(self) -> Style:
        return self.terminal.style

    @property
    def width(self) -> int:
        return self.terminal.width

    @property
    def interactive(self) -> bool:
        """True if a person reads the output and can be asked."""
        return self.terminal.interactive and not self.as_json

    def line(self, text: str = "") -> None:
        """Print a line for a person."""
        if not self.as_json:
            self.terminal.line(text)

    def note(self, text: str) -> None:
        """Print a remark on standard error, which is not part of the result."""
        self.terminal.note(text)

    def json(self, value: object) -> None:
        """Print a value for a program, in a line."""
        if self.as_json:
            self.terminal.line(json_line(value))

    def result(self, value: object, *lines: str) -> None:
        """Print a value, for a person as these lines."""
        self.json(value)
        for line in lines:
            self.line(line)

    def each(self, values: Sequence[T], lines_of: Callable[[T], Iterable[str]], *, empty: str = "") -> None:
        """Print a list, for a person each value with its own lines; if there are none, `empty` is a remark."""
        for value in values:
            self.json(value)
            for line in () if self.as_json else lines_of(value):
                self.line(line)
        if not values and empty and not self.as_json:
            self.note(empty)

    def table(
        self,
        values: Sequence[T],
        cells_of: Callable[[T], Sequence[str]],
        *,
        right: Collection[int] = (),
        empty: str = "",
    ) -> None:
        """Print a list, for a person as a row with columns for each value; those in `right` are aligned right."""
        rows = iter([] if self.as_json else aligned([cells_of(value) for value in values], right))
        self.each(values, lambda _: [next(rows)], empty=empty)

    async def confirm(self, question: str, *, yes: bool, unchanged: str) -> None:
        """Ask a person before something is done; `yes` stands for the answer.

        `unchanged` says what was not done. Raises `UsageError` if nobody can be asked and `CommandError` if the person
        declines.
        """
        if yes:
            return
        if not self.interactive:
            text = tr("{question} {unchanged} Confirm with --yes.")
            raise UsageError(text.format(question=question, unchanged=unchanged))
        if not await self.is_confirmed(question):
            raise CommandError(unchanged, EXIT_STOPPED)

    async def is_confirmed(self, question: str) -> bool:
        """Ask a person; Enter, Ctrl+C and Ctrl+D mean no."""
        try:
            reply = await self.terminal.ask(tr("{question} y for yes, Enter for no: ").format(question=question))
        except (EOFError, KeyboardInterrupt):
            return False
        return reply.strip().casefold() in ("y", "yes")

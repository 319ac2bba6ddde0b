"""The parser that is built from the table of commands, and the texts of its help."""

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import NoReturn, cast

from errand.cli.command import Command, Entry, Invocation, Table
from errand.cli.exit_codes import EXIT_CODES_TEXT, EXIT_USAGE, json_failure
from errand.cli.options import Action, CommandOptions, declare, rest_of
from errand.text.argument_parser import Parser
from errand.text.translation import marked, tr

ABOUT = tr("Errand hands work to AI agents that use real tools on your machine.")
_USAGE = "errand [-h] [--version] COMMAND …"
_MORE = tr("Help for a command: errand help COMMAND. The manual page: errand man.")
_MAX_WIDTH = 110
_NARROWEST = 40
_JSON = "as_json"  # the parser's name for `--json`
_LEFT = 28  # a longer left column has its text below it
# The words of argparse, which asks gettext for them by this name.
_ARGPARSE = (
    marked("usage: "),
    marked("options"),
    marked("positional arguments"),
    marked("show this help message and exit"),
    marked("the following arguments are required: %s"),
    marked("argument %(argument_name)s: %(message)s"),
    marked("expected one argument"),
    marked("expected at least one argument"),
    marked("expected at most one argument"),
    marked("not allowed with argument %s"),
    marked("one of the arguments %s is required"),
    marked("ambiguous option: %(option)s could match %(matches)s"),
    marked("ignored explicit argument %r"),
    marked("invalid choice: %(value)r (choose from %(choices)s)"),
    marked("invalid %(type)s value: %(value)r"),
)
setattr(argparse, "_", tr)  # noqa: B010 - the stubs of argparse do not have it


class _CommandParser(Parser):
    """A parser that reports wrong usage as JSON too if `as_json`."""

    as_json = False

    def error(self, message: str) -> NoReturn:
        if self.as_json:
            sys.stdout.write(f"{json_failure(message, EXIT_USAGE)}\n")
            sys.stdout.flush()
        super().error(message)


def parse(arguments: list[str], table: Table) -> Invocation:
    """Parse the command line.

    Raises SystemExit(2) with an error text for wrong usage, SystemExit(0) after --help and --version.
    """
    if not arguments:
        return table.default.load().invocation({})
    first = arguments[0]
    if first in ("-h", "--help"):
        sys.stdout.write(general_help(table, help_width()))
        sys.exit(0)
    if first == "--version":
        _print_version()
    names = [entry.name for entry in table.entries]
    parser = _CommandParser(prog="errand", usage=_USAGE)
    parser.as_json = _has_json(arguments)
    if first.startswith("-"):
        parser.error(
            tr("there is no option {first}.{first2}").format(
                first=first, first2=did_you_mean(first, ["--help", "--version"])
            )
        )
    entry = next((entry for entry in table.entries if entry.name == first), None)
    if entry is None:
        parser.error(
            tr("there is no command {first!r}.{first2}").format(first=first, first2=did_you_mean(first, names))
        )
    command = entry.load()
    return _parse_command(entry, command, arguments[1:])


def _parse_command(entry: Entry, command: Command[CommandOptions], tokens: list[str]) -> Invocation:
    parser = parser_of(entry, command, help_width())
    parser.as_json = _has_json(tokens)
    rest, following = rest_of(command.options), list[str]()
    if rest is not None and "--" in tokens:
        at = tokens.index("--")
        tokens, following = tokens[:at], tokens[at + 1 :]
    # Alone, argparse takes an argument that may be left out for missing if an option stands before it.
    namespace, unknown = (
        parser.parse_known_args(tokens) if "--" in tokens else parser.parse_known_intermixed_args(tokens)
    )
    if unknown:
        parser.error(_not_understood(unknown[0], entry))
    values: dict[str, object] = {**vars(namespace)}
    as_json = bool(values.pop(_JSON, False))
    if rest is not None:
        values[rest] = following
    arguments = cast("list[str]", values.get("arguments") or [])
    if command.actions and not command.takes_others and arguments:
        names = list(dict.fromkeys(name for action in command.actions for name in action.names))
        if (word := arguments[0]) not in names:
            near = did_you_mean(word, names) or tr(" There is: {names}.").format(names=", ".join(names))
            parser.error(tr("{name} has no {word!r}.{near}").format(name=entry.name, word=word, near=near))
    return command.invocation(values, as_json=as_json)


def _has_json(arguments: list[str]) -> bool:
    """Return whether the arguments before `--` have `--json`."""
    return "--json" in arguments[: arguments.index("--") if "--" in arguments else None]


def parser_of(entry: Entry, command: Command[CommandOptions], width: int) -> _CommandParser:
    """Return the parser of one command; its help is wrapped at `width` columns."""
    parser = _CommandParser(
        prog=f"errand {entry.name}",
        description=textwrap.fill(sentence(tr(entry.help)), width),
        epilog=_below(entry, command, width),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=_LEFT, width=width),
    )
    declare(command.options, parser)
    if not entry.without_json:
        parser.add_argument("--json", dest=_JSON, action="store_true", help=tr(command.json_help))
    # argparse keeps it too, without its first seven letters, which are "usage: " in English alone.
    parser.usage = parser.format_usage().removeprefix(tr("usage: ")).rstrip()
    return parser


def _below(entry: Entry, command: Command[CommandOptions], width: int) -> str:
    parts = (
        ["\n".join([f"{tr('actions')}:", *action_lines(entry.name, command.actions, width)])] if command.actions else []
    )
    if command.epilog:
        parts.append(textwrap.fill(command.epilog, width) if "\n" not in command.epilog else command.epilog)
    return "\n\n".join(parts)


def sentence(text: str) -> str:
    """Return a help text as a sentence of its own."""
    return f"{text[0].upper()}{text[1:]}."


def action_lines(name: str, actions: Iterable[Action], width: int) -> list[str]:
    return two_columns([(f"errand {name} {action.usage}".rstrip(), tr(action.help)) for action in actions], width)


def general_help(table: Table, width: int) -> str:
    """Return the help of `errand` itself: its commands in groups, then examples."""
    parts = [f"{tr('usage: ')}{_USAGE}", textwrap.fill(ABOUT, width)]
    for group in table.groups:
        rows = two_columns([(entry.name, tr(entry.help)) for entry in group.entries], width)
        parts.append("\n".join([f"{tr(group.title)}:", *rows]))
    examples = [line for about, command in table.examples for line in (f"  # {about}", f"  {command}")]
    parts.append("\n".join([f"{tr('Examples')}:", *examples]))
    parts += [textwrap.fill(_MORE, width), textwrap.fill(EXIT_CODES_TEXT, width)]
    return "\n\n".join(parts) + "\n"


def help_width() -> int:
    return max(_NARROWEST, min(_MAX_WIDTH, shutil.get_terminal_size().columns) - 1)


def two_columns(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return lines with each name and its text, which is wrapped below itself; a long name has a line of its own."""
    left = min(width * 2 // 5, max((len(name) for name, _ in rows), default=0) + 4)
    lines: list[str] = []
    for name, text in rows:
        texts = textwrap.wrap(text, max(20, width - left)) or [""]
        if len(name) + 4 > left:
            lines.append(f"  {name}")
        else:
            lines.append(f"{f'  {name}':<{left}}{texts.pop(0)}".rstrip())
        lines += [" " * left + line for line in texts if line]
    return lines


def _not_understood(argument: str, entry: Entry) -> str:
    if not argument.startswith("-"):
        return tr("{argument!r} is one argument too many.").format(argument=argument)
    if argument == "--json":
        return tr("errand {name} has no --json: {reason}.").format(name=entry.name, reason=tr(entry.without_json))
    name = argument.partition("=")[0]
    options = [part.name for part in entry.described() if part.is_option]
    return tr("there is no option {name}.{name2}").format(name=name, name2=did_you_mean(name, options))


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a question about the names that are like `name`; empty if there are none."""
    from difflib import get_close_matches  # takes 5 ms

    near = list(dict.fromkeys(get_close_matches(name, names, 3, cutoff=0.7)))[:2]
    return tr(" Did you mean {names}?").format(names=" or ".join(near)) if near else ""


def _print_version() -> NoReturn:
    """Looks up the version only on use, which takes 20 ms."""
    from importlib.metadata import version

    sys.stdout.write(f"errand {version('errand-desktop')}\n")
    sys.exit(0)

"""`errand import`: takes conversations in from a file or folder, or finds those of other programs on this machine."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec

from errand.cli.arguments import UsageError, absolute_path
from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_ERROR, EXIT_STOPPED
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import plain, short_path, time_ago, wrapped
from errand.client.connection import Connection
from errand.client.errors import CallError
from errand.client.launch import connect
from errand.client.number_format import file_size
from errand.client.texts.imports import found_counts_text, import_text
from errand.protocol.base import EmptyParams
from errand.protocol.data import DATA_FIND, DATA_IMPORT, DataFindResult, DataImportParams, FoundSessions
from errand.system.paths import Paths
from errand.text.translation import tr, trn

_EPILOG = tr(
    "Without a path, errand import shows the sessions of Codex, Claude Code, OpenCode, "
    "gemini-cli, goose and pi on this machine and asks which ones to import. It also reads "
    "the exports of ChatGPT and Claude (the zip or its conversations.json), OpenCode and "
    "goose. Existing conversations stay as they are; those of other programs get their "
    "new messages."
)
_Program = Literal["codex", "claude-code", "opencode", "gemini-cli", "pi", "goose"]


class ImportOptions(CommandOptions, frozen=True, kw_only=True):
    path: Annotated[
        str | None,
        Argument(
            "PATH",
            (
                "a file written by errand export, or a file, zip or folder of another program (default: "
                "search this machine)"
            ),
        ),
    ] = None
    programs: Annotated[
        tuple[_Program, ...],
        Option(
            "--program",
            "without PATH: only codex, claude-code, opencode, gemini-cli, pi or goose; can be repeated",
            "NAME",
        ),
    ] = ()
    yes: Annotated[bool, Flag("--yes", "without PATH: import what is new, without asking")] = False
    json: Annotated[bool, Flag("--json", "print what is found or imported as JSON lines")] = False


async def import_conversations(options: ImportOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand import") as connection:
        if options.path is not None:
            await _take(connection, absolute_path(options.path), options, terminal)
            return 0
        terminal.status(tr("Looking for sessions of other programs …"))
        result = await connection.call(DATA_FIND, EmptyParams())
        terminal.clear_status()
        found = [one for one in result.found if not options.programs or program_name(one) in options.programs]
        if options.json and not options.yes:
            for one in found:
                terminal.line(msgspec.json.encode(one).decode())
            return 0
        if not found:
            _say_nothing_found(result, options, terminal)
            return 0
        if not options.json:
            for number, one in enumerate(found, 1):
                for line in found_lines(number, one, terminal.width, terminal.style):
                    terminal.line(line)
        takeable = [one for one in found if one.new or one.grown]
        if not takeable:
            terminal.note(tr("Everything found has already been imported."))
            return 0
        if not options.yes and not terminal.interactive:
            terminal.note(
                tr(
                    "errand: nothing was imported. Import what is new with --yes, or only one program "
                    "with --program NAME."
                )
            )
            return 0
        chosen = takeable if options.yes else await _chosen(found, takeable, terminal)
        if chosen is None:
            terminal.line(tr("Nothing was imported."))
            return EXIT_STOPPED
        return await _take_all(connection, chosen, options, terminal)


IMPORT = Command(ImportOptions, import_conversations, epilog=_EPILOG)


def program_name(found: FoundSessions) -> str:
    """As it is written after --program."""
    return found.program.lower().replace(" ", "-")


def found_lines(number: int, found: FoundSessions, width: int, style: Style) -> list[str]:
    """The program with its counts, then its folder and what could not be looked at."""
    age = ""
    if found.newest_at is not None:
        age = tr("newest {total_seconds}").format(
            total_seconds=time_ago((datetime.now(UTC) - found.newest_at).total_seconds())
        )
    about = style.join(
        trn("{n} session", "{n} sessions", found.sessions), found_counts_text(found), file_size(found.bytes), age
    )
    lines = [f"{number}  {style.bold(f'{plain(found.program):<12}')} {about}"]
    lines.append(f"   {style.dim(plain(short_path(found.path)))}")
    if found.not_looked_at:
        lines.append(
            style.amber(
                tr("   {older_files} could not be read in time").format(
                    older_files=trn("{n} older file", "{n} older files", found.not_looked_at)
                )
            )
        )
    if found.problem:
        lines.append(style.amber(wrapped(f"   {plain(found.problem)}", width)))
    return lines


def _say_nothing_found(result: DataFindResult, options: ImportOptions, terminal: Terminal) -> None:
    which = (
        tr(" of {names}").format(names=" or ".join(options.programs)) if options.programs else tr(" of other programs")
    )
    terminal.line(tr("No sessions{which} were found on this machine. Searched:").format(which=which))
    for place in result.searched:
        terminal.line(f"  {plain(short_path(place))}")
    terminal.line(tr("To import a file or another folder: errand import PATH"))


async def _chosen(
    found: Sequence[FoundSessions], takeable: Sequence[FoundSessions], terminal: Terminal
) -> Sequence[FoundSessions] | None:
    """What the person wants; None for nothing."""
    while True:
        try:
            typed = (
                await terminal.ask(tr("import everything new? Enter for yes, numbers such as 1,3, or n > "))
            ).strip()
        except (EOFError, KeyboardInterrupt):
            return None
        if typed.lower() in ("", "y", "yes", "all"):
            return takeable
        if typed.lower() in ("n", "no"):
            return None
        words = typed.replace(",", " ").lower().split()
        names = {
            **{str(number): one for number, one in enumerate(found, 1)},
            **{program_name(one): one for one in found},
        }
        unknown = [word for word in words if word not in names]
        if not unknown:
            return [names[word] for word in dict.fromkeys(words)]
        terminal.line(terminal.style.amber(tr("{unknown!r} is not in the list.").format(unknown=plain(unknown[0]))))


async def _take_all(
    connection: Connection, chosen: Sequence[FoundSessions], options: ImportOptions, terminal: Terminal
) -> int:
    """Each after the other; the fault of one stops no other."""
    code = 0
    for one in chosen:
        terminal.status(tr("Reading {program} …").format(program=one.program))
        try:
            await _take(connection, one.path, options, terminal)
        except CallError as error:
            terminal.clear_status()
            terminal.note(f"errand: {plain(str(error))}")
            code = EXIT_ERROR
    return code


async def _take(connection: Connection, path: str, options: ImportOptions, terminal: Terminal) -> None:
    if options.path is not None and (options.programs or options.yes):
        raise UsageError(tr("--program and --yes cannot be used with PATH."))
    done = await connection.call(DATA_IMPORT, DataImportParams(path=path))
    terminal.clear_status()
    if options.json:
        terminal.line(msgspec.json.encode(done).decode())
        return
    for words in import_text(done):
        terminal.line(words)

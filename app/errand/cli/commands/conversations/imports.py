"""`errand import`: takes conversations in from a file or folder, or finds those of other programs on this machine."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from errand.cli.arguments import UsageError, absolute_path
from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_STOPPED, CommandError
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
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
from errand.text.translation import marked, tr, trn

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


async def import_conversations(options: ImportOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand import") as connection:
        if options.path is not None:
            if options.programs or options.yes:
                raise UsageError(tr("--program and --yes cannot be used with PATH."))
            await _import(connection, absolute_path(options.path), output)
            return 0
        output.terminal.status(tr("Looking for sessions of other programs …"))
        result = await connection.call(DATA_FIND, EmptyParams())
        output.terminal.clear_status()
        programs = [
            program for program in result.found if not options.programs or program_name(program) in options.programs
        ]
        if output.as_json and not options.yes:
            output.each(programs, lambda _: [])
            return 0
        if not programs:
            _say_nothing_found(result, options, output)
            return 0
        for number, program in enumerate(programs, 1):
            for line in found_lines(number, program, output.width, output.style):
                output.line(line)
        importable = [program for program in programs if program.new or program.grown]
        if not importable:
            output.note(tr("Everything found has already been imported."))
            return 0
        if not options.yes and not output.interactive:
            output.note(
                tr(
                    "errand: nothing was imported. Import what is new with --yes, or only one program "
                    "with --program NAME."
                )
            )
            return 0
        chosen = importable if options.yes else await _choose(programs, importable, output.terminal)
        if chosen is None:
            raise CommandError(tr("Nothing was imported."), EXIT_STOPPED)
        await _import_all(connection, chosen, output)
    return 0


IMPORT = Command(
    ImportOptions,
    import_conversations,
    epilog=_EPILOG,
    json_help=marked("print what is found or imported as JSON lines"),
)


def program_name(sessions: FoundSessions) -> str:
    """Return the name of the program, as it is written after --program."""
    return sessions.program.lower().replace(" ", "-")


def found_lines(number: int, sessions: FoundSessions, width: int, style: Style) -> list[str]:
    """Return the program with its counts, then its folder and what could not be read."""
    age = ""
    if sessions.newest_at is not None:
        age = tr("newest {total_seconds}").format(
            total_seconds=time_ago((datetime.now(UTC) - sessions.newest_at).total_seconds())
        )
    count = trn("{n} session", "{n} sessions", sessions.sessions)
    about = style.join(count, found_counts_text(sessions), file_size(sessions.bytes), age)
    lines = [f"{number}  {style.bold(f'{plain(sessions.program):<12}')} {about}"]
    lines.append(f"   {style.dim(plain(short_path(sessions.path)))}")
    if sessions.not_looked_at:
        older = trn("{n} older file", "{n} older files", sessions.not_looked_at)
        lines.append(style.amber(tr("   {older_files} could not be read in time").format(older_files=older)))
    if sessions.problem:
        lines.append(style.amber(wrapped(f"   {plain(sessions.problem)}", width)))
    return lines


def _say_nothing_found(result: DataFindResult, options: ImportOptions, output: CommandOutput) -> None:
    which = (
        tr(" of {names}").format(names=" or ".join(options.programs)) if options.programs else tr(" of other programs")
    )
    output.line(tr("No sessions{which} were found on this machine. Searched:").format(which=which))
    for folder in result.searched:
        output.line(f"  {plain(short_path(folder))}")
    output.line(tr("To import a file or another folder: errand import PATH"))


async def _choose(
    programs: Sequence[FoundSessions], importable: Sequence[FoundSessions], terminal: Terminal
) -> Sequence[FoundSessions] | None:
    """Let the person choose what to import; None for nothing."""
    question = tr("import everything new? Enter for yes, numbers such as 1,3, or n > ")
    while True:
        try:
            typed = (await terminal.ask(question)).strip()
        except (EOFError, KeyboardInterrupt):
            return None
        if typed.lower() in ("", "y", "yes", "all"):
            return importable
        if typed.lower() in ("n", "no"):
            return None
        choices = typed.replace(",", " ").lower().split()
        names = {
            **{str(number): program for number, program in enumerate(programs, 1)},
            **{program_name(program): program for program in programs},
        }
        unknown = [choice for choice in choices if choice not in names]
        if not unknown:
            return [names[choice] for choice in dict.fromkeys(choices)]
        terminal.line(terminal.style.amber(tr("{unknown!r} is not in the list.").format(unknown=plain(unknown[0]))))


async def _import_all(connection: Connection, chosen: Sequence[FoundSessions], output: CommandOutput) -> None:
    """Import one program after the other; raises `CommandError` at the end if some failed."""
    problems: list[str] = []
    for program in chosen:
        output.terminal.status(tr("Reading {program} …").format(program=program.program))
        try:
            await _import(connection, program.path, output)
        except CallError as error:
            output.terminal.clear_status()
            problems.append(str(error))
    if problems:
        raise CommandError("\n".join(problems))


async def _import(connection: Connection, path: str, output: CommandOutput) -> None:
    imported = await connection.call(DATA_IMPORT, DataImportParams(path=path))
    output.terminal.clear_status()
    output.result(imported, *import_text(imported))

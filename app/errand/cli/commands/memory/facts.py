"""`errand memory`: searching it, the facts that every task is told, forgetting, its indexes and its log."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError, workspace_path, wrong_arguments
from errand.cli.command import Command
from errand.cli.commands.memory import index
from errand.cli.commands.memory.editing import export, merge_facts, replace_entries
from errand.cli.commands.memory.folders import folders
from errand.cli.commands.memory.forgetting import forget
from errand.cli.lookup import only_match
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import escape_hidden_line, short_id
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.memory import (
    MEMORY_FACTS,
    MEMORY_LOG,
    MEMORY_PIN,
    MEMORY_UNPIN,
    Fact,
    FactScope,
    MemoryFactsParams,
    MemoryLogEntry,
    MemoryLogParams,
    MemoryPinParams,
    MemoryUnpinParams,
)
from errand.system.paths import Paths
from errand.text.translation import tr

_ACTIONS = (
    Action("facts", "list pinned and proposed facts (the default)"),
    Action(
        "search 'QUESTION'",
        "search by meaning and words; narrow with --folder, --after, --before and --kind",
    ),
    Action("show NUMBER", "show the full text of a search result"),
    Action("pin 'TEXT'", "add a fact: a sentence or a short paragraph"),
    Action("edit ID 'TEXT'", "edit a fact; --scope and --folder change where it applies", first="fact"),
    Action("edit NUMBER 'TEXT'", "make a corrected entry a fact, and forget its message"),
    Action("merge ID ID 'TEXT'", "merge two facts into one, or two entries by their numbers, which are forgotten"),
    Action("export FILE", "write all of memory to a file: Markdown for .md, else JSON lines; - prints it"),
    Action("accept ID", "accept a proposed fact; with a TEXT, in these words", first="fact"),
    Action("unpin ID", "remove a fact, or decline a proposed one", first="fact"),
    Action(
        "forget MESSAGE…",
        ("permanently remove the text of messages everywhere, by any part of their ids (errand show prints them)"),
        first="message",
    ),
    Action(
        "folders",
        "list which folders share memory; folders share A B, folders apart A B, or ask, share, apart for all others",
    ),
    Action("log", "show the log of memory"),
    Action("stats", "show sizes, what is not indexed yet, and the model"),
    Action(
        "prune 90d|10000",
        ("remove the vectors of old entries, or of all but the newest; they can still be found by their words"),
    ),
    Action("rebuild", "rebuild the indexes from the stored conversations"),
    Action("download", "download the embedding model now"),
)
_SCOPES: dict[FactScope, str] = {"always": "always", "me": tr("about you"), "folder": "in"}


class MemoryOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...],
        Argument(
            "WHAT",
            (
                "facts (the default), search, show, pin, edit, merge, accept, unpin, forget, export, folders, log, "
                "stats, prune, rebuild or download, and its argument"
            ),
        ),
    ] = ()
    scope: Annotated[
        FactScope | None,
        Option(
            "--scope", "where a fact applies: always (the default), me, or folder for this folder and those below it"
        ),
    ] = None
    folder: Annotated[str | None, Option("--folder", "folder of the fact; with search: only this folder", "DIR")] = None
    kinds: Annotated[
        tuple[index.EntryKind, ...],
        Option("--kind", "with search: only your messages, replies, tool results, or tasks; can be repeated"),
    ] = ()
    after: Annotated[
        str | None,
        Option("--after", "with search: only since this time: 2026-11-02, 2026-11, yesterday, 8h or 30d", "TIME"),
    ] = None
    before: Annotated[str | None, Option("--before", "with search: only before this time", "TIME")] = None
    limit: Annotated[int | None, Option("--limit", "with search and log: show at most N (default: 10, 50)", "N")] = None
    yes: Annotated[bool, Flag("--yes", "with forget, edit and merge: do not ask; with export: replace the file")] = (
        False
    )


async def memory(options: MemoryOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand memory") as connection:
        match options.arguments or ("facts",):
            case ["facts"]:
                empty = tr(
                    "No pinned facts. Every task is told the facts that you pin: errand memory pin 'Answer in German.'"
                )
                output.each(await _facts(connection), lambda fact: _lines(fact, output.style), empty=empty)
            case ["pin", *words] if words:
                await _pin(connection, MemoryPinParams(text=" ".join(words)), options, output)
            case ["edit", number, *words] if number.isdecimal() and words:
                change = _with_scope(MemoryPinParams(text=" ".join(words)), options)
                fact = await replace_entries(connection, (number,), change, output, yes=options.yes)
                output.result(fact, *_lines(fact, output.style))
            case ["merge", first, second, *words] if words:
                fact = await _merged(connection, (first, second), " ".join(words), options, output)
                output.result(fact, *_lines(fact, output.style))
            case ["export", file]:
                await export(connection, file, output, yes=options.yes)
            case ["edit", part, *words] if words or options.scope is not None or options.folder is not None:
                fact = await _matching(connection, part)
                await _pin(connection, _change(fact, words), options, output)
            case ["accept", part, *words]:
                fact = await _matching(connection, part)
                if fact.status == "pinned" and not words:
                    output.note(tr("Already accepted."))
                await _pin(connection, _change(fact, words), options, output)
            case ["unpin", part]:
                await _unpin(connection, await _matching(connection, part), output)
            case ["forget", *parts] if parts:
                await forget(connection, parts, output, yes=options.yes)
            case ["folders", *words]:
                await folders(connection, words, output)
            case ["log"]:
                await _log(connection, options, output)
            case words:
                order = index.Order(
                    words,
                    options.folder,
                    options.kinds,
                    options.after,
                    options.before,
                    options.limit,
                )
                status = await index.serve(connection, order, output)
                if status is None:
                    raise wrong_arguments("memory", _ACTIONS, options.arguments)
                return status
    return 0


MEMORY = Command(MemoryOptions, memory, actions=_ACTIONS)


async def _merged(
    connection: Connection, parts: Sequence[str], text: str, options: MemoryOptions, output: CommandOutput
) -> Fact:
    """Merge two entries, named by their numbers, or two facts, into one fact."""
    change = _with_scope(MemoryPinParams(text=text), options)
    if all(map(str.isdecimal, parts)):
        return await replace_entries(connection, parts, change, output, yes=options.yes)
    facts = [await _matching(connection, part) for part in parts]
    if len({fact.id for fact in facts}) < len(facts):
        raise UsageError(tr("These are the same fact."))
    return await merge_facts(connection, facts, change, output)


async def _facts(connection: Connection) -> tuple[Fact, ...]:
    return (await connection.call(MEMORY_FACTS, MemoryFactsParams())).facts


def _change(fact: Fact, words: list[str]) -> MemoryPinParams:
    return MemoryPinParams(id=fact.id, text=" ".join(words) or None)


def _with_scope(params: MemoryPinParams, options: MemoryOptions) -> MemoryPinParams:
    """Return the parameters with the scope that `--scope` and `--folder` give."""
    if options.folder is not None and options.scope not in (None, "folder"):
        raise UsageError(tr("--folder and --scope {scope} cannot be used together.").format(scope=options.scope))
    if options.folder is None and options.scope != "folder":
        return msgspec.structs.replace(params, scope=options.scope)
    return msgspec.structs.replace(params, scope="folder", folder=workspace_path(options.folder))


async def _pin(connection: Connection, params: MemoryPinParams, options: MemoryOptions, output: CommandOutput) -> None:
    fact = (await connection.call(MEMORY_PIN, _with_scope(params, options))).fact
    output.result(fact, *_lines(fact, output.style))


async def _unpin(connection: Connection, fact: Fact, output: CommandOutput) -> None:
    await connection.call(MEMORY_UNPIN, MemoryUnpinParams(id=fact.id))
    output.result(fact, *_lines(fact, output.style))
    output.note(tr("Removed.") if fact.status == "pinned" else tr("Declined."))


def _lines(fact: Fact, style: Style) -> list[str]:
    folder = f" {escape_hidden_line(fact.folder)}" if fact.folder else ""
    proposed = f"{style.amber('proposed')}  " if fact.status == "proposed" else ""
    by = tr(" by {by}").format(by=escape_hidden_line(fact.by)) if fact.by else ""
    about = f"{_SCOPES[fact.scope]}{folder} · {fact.at.astimezone():%d %b %Y}{by}"
    return [
        f"{style.bold(short_id(fact.id))}  {proposed}{escape_hidden_line(fact.text)}",
        f"{'':<10}{style.dim(about)}",
    ]


async def _matching(connection: Connection, part: str) -> Fact:
    """Return the fact with this part in its id; raises `UsageError` for none and for several."""
    matching = [fact for fact in await _facts(connection) if part and part in fact.id]
    if not matching:
        raise UsageError(tr("No fact has the id {part!r}. List them: errand memory facts").format(part=part))
    return only_match(part, matching, "facts", lambda fact: fact.text)


async def _log(connection: Connection, options: MemoryOptions, output: CommandOutput) -> None:
    log = await connection.call(MEMORY_LOG, MemoryLogParams(limit=options.limit or 50))
    output.each(log.entries, lambda entry: [_log_line(entry)], empty=tr("The log is empty."))
    if log.has_more:
        output.note(tr("These are the newest {entries}. Show more with --limit.").format(entries=len(log.entries)))


def _log_line(entry: MemoryLogEntry) -> str:
    by, about = escape_hidden_line(entry.by), escape_hidden_line(entry.about)
    return tr("{time:%Y-%m-%d %H:%M}  {action:<9}  {about}  by {by}").format(
        time=entry.at.astimezone(), action=entry.action, about=about, by=by
    )

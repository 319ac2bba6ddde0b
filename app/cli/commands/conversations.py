"""`errand search`, `export`, `import`, `prune`, `delete`, `orphans`: operations on whole conversations."""

import os
from pathlib import Path

import msgspec

from app.cli.arguments import UsageError, read_text_file
from app.cli.options import Options
from app.cli.terminal.style import Style
from app.cli.terminal.terminal import Terminal
from app.cli.terminal.text import one_line
from app.client.connection import Connection
from app.client.display_text import import_words
from app.client.launch import connect
from app.client.number_format import count, file_size
from app.paths import Paths
from app.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_SEARCH,
    ConversationChangeParams,
    ConversationSearchParams,
    SearchHit,
)
from app.protocol.data import (
    CONVERSATION_DELETE,
    DATA_EXPORT,
    DATA_IMPORT,
    DATA_ORPHANS,
    DATA_PRUNE,
    ConversationDeleteParams,
    DataExportParams,
    DataImportParams,
    DataPruneParams,
    Orphan,
    OrphansParams,
    OrphansResult,
)

_START, _END = "\u2068", "\u2069"

_MOST = 500


async def search(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand search")
    try:
        found = await connection.call(
            CONVERSATION_SEARCH, ConversationSearchParams(text=options.text, limit=options.limit)
        )
    finally:
        await connection.close()
    if found.advice:
        raise UsageError(found.advice)
    if not found.hits and not options.json:
        terminal.note(f"errand: nothing was found for {options.text!r}")
    for hit in found.hits:
        terminal.line(msgspec.json.encode(hit).decode() if options.json else hit_lines(hit, terminal.style))
    return 0


def hit_lines(hit: SearchHit, style: Style) -> str:
    """Day, conversation, position and snippet with the matching words in bold, then the adjacent messages."""
    day = hit.created_at.astimezone().strftime("%Y-%m-%d %H:%M")
    title, place = one_line(hit.conversation_title, 40), style.dim(f"{hit.place:,} of {hit.of:,}")
    lines = [style.join(f"{style.dim(day)}  {style.bold(title)}  {place}", highlight_hits(hit.snippet, style))]
    around = (("before", hit.before), ("after", hit.after))
    lines += [style.dim(f"    {word}: {one_line(text, 100)}") for word, text in around if text]
    return "\n".join(lines)


def highlight_hits(snippet: str, style: Style) -> str:
    """A snippet with its marked words colored; the marks themselves are never shown."""
    shown: list[str] = []
    for part in snippet.split(_START):
        word, mark, rest = part.partition(_END)
        plain_word = one_line(word, 200)
        shown.append(f"{style.paint('1;33', plain_word)}{_spaced(rest)}" if mark else _spaced(word))
    return "".join(shown)


def _spaced(text: str) -> str:
    """The text on one line, with the blanks at its ends."""
    short = one_line(text, 400)
    lead = " " if text[:1].isspace() else ""
    return f"{lead}{short}{' ' if short and text[-1:].isspace() else ''}"


async def export(options: Options, paths: Paths, terminal: Terminal) -> int:
    params = DataExportParams(
        path=_absolute(options.path),
        format=options.format,
        conversation_ids=tuple(options.ids or ()) or None,
        leaf_id=options.branch,
        overwrite=options.overwrite,
    )
    connection = await connect(paths, "errand export")
    try:
        done = await connection.call(DATA_EXPORT, params)
    finally:
        await connection.close()
    what = f"{count(done.conversations, 'conversation')} with {count(done.nodes, 'message')}"
    terminal.line(f"{what} written to {done.path} ({file_size(done.bytes)})")
    return 0


async def import_file(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand import")
    try:
        done = await connection.call(DATA_IMPORT, DataImportParams(path=_absolute(options.path)))
    finally:
        await connection.close()
    for words in import_words(done):
        terminal.line(words)
    return 0


async def prune(options: Options, paths: Paths, terminal: Terminal) -> int:
    assert options.days is not None, "it is required"
    connection = await connect(paths, "errand prune")
    try:
        done = await connection.call(DATA_PRUNE, DataPruneParams(days=options.days, dry_run=not options.yes))
    finally:
        await connection.close()
    what = f"{count(done.conversations, 'conversation')} with {count(done.nodes, 'message')} ({file_size(done.bytes)})"
    terminal.line(f"{what} {'deleted' if options.yes else 'would be deleted'}")
    if not options.yes and done.conversations:
        terminal.note("errand: this cannot be undone. Add --yes to delete them, or export them first.")
    return 0


async def delete(options: Options, paths: Paths, terminal: Terminal) -> int:
    assert options.ids is not None, "it is required"
    (conversation_id,) = options.ids
    connection = await connect(paths, "errand delete")
    try:
        await connection.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation_id))
    finally:
        await connection.close()
    terminal.line(f"{conversation_id} deleted")
    return 0


def _absolute(path: str) -> str:
    """An absolute path, since the engine does not know the working directory."""
    return read_text_file(Path(os.path.expanduser(path)).absolute())


async def orphans(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand orphans")
    try:
        found = await connection.call(DATA_ORPHANS, OrphansParams(limit=_MOST))
        for orphan in found.orphans:
            terminal.line(
                msgspec.json.encode(orphan).decode() if options.json else format_orphan(orphan, terminal.style)
            )
        if not options.json:
            terminal.note(f"errand: {_words(found)}")
        if options.archive or (options.delete and options.yes):
            await _put_away(connection, found, delete=options.delete)
            terminal.note(f"errand: {'deleted' if options.delete else 'archived'}: {len(found.orphans):,}")
        elif options.delete and found.orphans:
            terminal.note("errand: this cannot be undone. Add --yes to delete them, or export them first.")
    finally:
        await connection.close()
    return 0


def format_orphan(orphan: Orphan, style: Style) -> str:
    """Id, size, messages, title."""
    conversation = orphan.conversation
    archived = style.dim("  archived") if conversation.archived else ""
    facts = f"{file_size(orphan.bytes):>10}  {count(orphan.nodes, 'message'):>14}"
    return f"{conversation.id}  {facts}  {one_line(conversation.title, 60)}{archived}"


def _words(found: OrphansResult) -> str:
    if not found.count:
        return "every conversation has an agent"
    more = f"; the {_MOST} largest are shown" if found.count > _MOST else ""
    return f"{count(found.count, 'conversation')} without any agent, {file_size(found.bytes)} in all{more}"


async def _put_away(connection: Connection, found: OrphansResult, *, delete: bool) -> None:
    for orphan in found.orphans:
        conversation_id = orphan.conversation.id
        params = ConversationChangeParams(conversation_id=conversation_id, archived=True)
        await connection.call(CONVERSATION_CHANGE, params)
        if delete:
            await connection.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation_id))

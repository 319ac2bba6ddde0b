"""`errand export`, `prune`, `delete`, `orphans`: operations on whole conversations."""

from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError, absolute_path
from errand.cli.command import Command
from errand.cli.lookup import find_conversation, find_node
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import escape_hidden_line, one_line, short_id, short_path
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.number_format import file_size
from errand.protocol.conversations import CONVERSATION_CHANGE, Conversation, ConversationChangeParams
from errand.protocol.data import (
    CONVERSATION_DELETE,
    DATA_EXPORT,
    DATA_ORPHANS,
    DATA_PRUNE,
    ConversationDeleteParams,
    DataExportParams,
    DataPruneParams,
    ExportFormat,
    Orphan,
    OrphansParams,
    OrphansResult,
)
from errand.system.paths import Paths
from errand.text.translation import tr, trn

_MAX_ORPHANS = 500


class ExportOptions(CommandOptions, frozen=True, kw_only=True):
    conversation_ids: Annotated[
        tuple[str, ...], Argument("ID", "conversations: a unique part of each id or title (default: all)")
    ] = ()
    to: Annotated[str, Option("--to", "a file, or a folder if there are several pages", "PATH")]
    format: Annotated[
        ExportFormat,
        Option("--format", "json (the default) is lossless and can be imported; markdown and html are for reading"),
    ] = "json"
    branch: Annotated[str | None, Option("--branch", "export only the branch that ends in this message", "NODE")] = None
    overwrite: Annotated[bool, Flag("--overwrite", "overwrite existing files")] = False
    keep_secrets: Annotated[bool, Flag("--keep-secrets", "do not redact keys, tokens and passwords")] = False
    json: Annotated[bool, Flag("--json", "print what was written as one JSON object")] = False


async def export(options: ExportOptions, paths: Paths, terminal: Terminal) -> int:
    if options.to == "-":
        raise UsageError(tr("An export goes to a file: --to FILE. To read a conversation here: errand show ID"))
    path = absolute_path(options.to)
    async with await connect(paths, "errand export") as connection:
        found = [await find_conversation(connection, part) for part in options.conversation_ids]
        leaf = options.branch
        if leaf is not None and len(found) == 1:
            leaf = (await find_node(connection, found[0], leaf)).id
        params = DataExportParams(
            path=path,
            format=options.format,
            conversation_ids=tuple(one.id for one in found) or None,
            leaf_id=leaf,
            overwrite=options.overwrite,
            keep_secrets=options.keep_secrets,
        )
        done = await connection.call(DATA_EXPORT, params)
    if options.json:
        terminal.line(msgspec.json.encode(done).decode())
        return 0
    what = tr("{conversations} with {messages}").format(
        conversations=trn("{n} conversation", "{n} conversations", done.conversations),
        messages=trn("{n} message", "{n} messages", done.nodes),
    )
    terminal.line(
        tr("{what} written to {path} ({bytes})").format(what=what, path=done.path, bytes=file_size(done.bytes))
    )
    if done.removed:
        terminal.line(
            tr("secrets were redacted in {texts}; --keep-secrets keeps them").format(
                texts=trn("{n} text", "{n} texts", done.removed)
            )
        )
    return 0


EXPORT = Command(ExportOptions, export)


class PruneOptions(CommandOptions, frozen=True, kw_only=True):
    days: Annotated[int, Option("--days", "unchanged for this many days", "N")]
    yes: Annotated[bool, Flag("--yes", "delete them; without this option they are only counted")] = False
    json: Annotated[bool, Flag("--json", "print the numbers as one JSON object")] = False


async def prune(options: PruneOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand prune") as connection:
        done = await connection.call(DATA_PRUNE, DataPruneParams(days=options.days, dry_run=not options.yes))
    if options.json:
        terminal.line(msgspec.json.encode(done).decode())
        return 0
    what = tr("{conversations} with {messages} ({bytes})").format(
        conversations=trn("{n} conversation", "{n} conversations", done.conversations),
        messages=trn("{n} message", "{n} messages", done.nodes),
        bytes=file_size(done.bytes),
    )
    terminal.line((tr("{what} deleted") if options.yes else tr("{what} would be deleted")).format(what=what))
    if not options.yes and done.conversations:
        terminal.note(tr("errand: this cannot be undone. Add --yes to delete them, or export them first."))
    return 0


PRUNE = Command(PruneOptions, prune)


class DeleteOptions(CommandOptions, frozen=True, kw_only=True):
    conversation_id: Annotated[str, Argument("ID", "an archived conversation: a unique part of its id or title")]
    yes: Annotated[bool, Flag("--yes", "do not ask for confirmation")] = False
    json: Annotated[bool, Flag("--json", "print the conversation as one JSON object, with --yes")] = False


async def delete(options: DeleteOptions, paths: Paths, terminal: Terminal) -> int:
    if options.json and not options.yes:
        raise UsageError(tr("With --json nothing is asked. Add --yes to delete it; this cannot be undone."))
    async with await connect(paths, "errand delete") as connection:
        conversation = await find_conversation(connection, options.conversation_id, exactly=True)
        if not conversation.archived:
            name = short_id(conversation.id)
            raise UsageError(
                tr("{name} is not archived: {conversation}. Archive it first: errand archive {name}").format(
                    name=name, conversation=_title(conversation)
                )
            )
        if not options.yes:
            await _confirm(conversation, terminal)
        await connection.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation.id))
    text = tr("Deleted {id}: {conversation}").format(id=short_id(conversation.id), conversation=_title(conversation))
    terminal.line(msgspec.json.encode(conversation).decode() if options.json else text)
    return 0


DELETE = Command(DeleteOptions, delete)


async def _confirm(conversation: Conversation, terminal: Terminal) -> None:
    """Raises `UsageError` if the person declines, or if nobody can be asked."""
    changed, style = conversation.updated_at.astimezone(), terminal.style
    facts = style.join(
        tr("last changed {changed:%Y-%m-%d %H:%M}").format(changed=changed),
        escape_hidden_line(short_path(conversation.workspace)),
    )
    terminal.line(f"{short_id(conversation.id)}  {_title(conversation)}  {style.dim(facts)}")
    if not terminal.interactive:
        raise UsageError(tr("Nothing was deleted. This cannot be undone; repeat the command with --yes to delete."))
    try:
        reply = await terminal.ask(
            tr("Delete it and everything in it? This cannot be undone. y for yes, Enter for no: ")
        )
    except (EOFError, KeyboardInterrupt):
        reply = ""
    if reply.strip().casefold() not in ("y", "yes"):
        raise UsageError(tr("Nothing was deleted."))


def _title(conversation: Conversation) -> str:
    return one_line(escape_hidden_line(conversation.title), 60) or tr("(untitled)")


class OrphansOptions(CommandOptions, frozen=True, kw_only=True):
    json: Annotated[bool, Flag("--json", "print JSON lines")] = False
    archive: Annotated[bool, Flag("--archive", "archive the listed conversations", group="what")] = False
    delete: Annotated[bool, Flag("--delete", "permanently delete what is listed, with --yes", group="what")] = False
    yes: Annotated[bool, Flag("--yes", "delete them; without this option they are only listed")] = False


async def orphans(options: OrphansOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand orphans") as connection:
        found = await connection.call(DATA_ORPHANS, OrphansParams(limit=_MAX_ORPHANS))
        for orphan in found.orphans:
            terminal.line(
                msgspec.json.encode(orphan).decode() if options.json else format_orphan(orphan, terminal.style)
            )
        if not options.json:
            terminal.note(f"errand: {_orphans_text(found)}")
        if options.archive or (options.delete and options.yes):
            await _archive_or_delete(connection, found, delete=options.delete)
            done = tr("errand: deleted {count}") if options.delete else tr("errand: archived {count}")
            terminal.note(done.format(count=f"{len(found.orphans):,}"))
        elif options.delete and found.orphans:
            terminal.note(tr("errand: this cannot be undone. Add --yes to delete them, or export them first."))
    return 0


ORPHANS = Command(OrphansOptions, orphans)


def format_orphan(orphan: Orphan, style: Style) -> str:
    """Id, size, messages, title."""
    conversation = orphan.conversation
    archived = style.dim(tr("  archived")) if conversation.archived else ""
    facts = f"{file_size(orphan.bytes):>10}  {trn('{n} message', '{n} messages', orphan.nodes):>14}"
    return f"{conversation.id}  {facts}  {one_line(conversation.title, 60)}{archived}"


def _orphans_text(found: OrphansResult) -> str:
    if not found.count:
        return tr("Every conversation has an agent.")
    more = tr("; the {count} largest are shown").format(count=_MAX_ORPHANS) if found.count > _MAX_ORPHANS else ""
    return tr("{conversations} without an agent, {bytes} in total{more}").format(
        conversations=trn("{n} conversation", "{n} conversations", found.count), bytes=file_size(found.bytes), more=more
    )


async def _archive_or_delete(connection: Connection, found: OrphansResult, *, delete: bool) -> None:
    for orphan in found.orphans:
        conversation_id = orphan.conversation.id
        params = ConversationChangeParams(conversation_id=conversation_id, archived=True)
        await connection.call(CONVERSATION_CHANGE, params)
        if delete:
            await connection.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation_id))

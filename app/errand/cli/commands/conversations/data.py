"""`errand export`, `prune`, `delete`, `orphans`: operations on whole conversations."""

from typing import Annotated

from errand.cli.arguments import UsageError, absolute_path
from errand.cli.command import Command
from errand.cli.lookup import find_conversation, find_node
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
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
from errand.text.translation import marked, tr, trn

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


async def export(options: ExportOptions, paths: Paths, output: CommandOutput) -> int:
    if options.to == "-":
        raise UsageError(tr("An export goes to a file: --to FILE. To read a conversation here: errand show ID"))
    path = absolute_path(options.to)
    async with await connect(paths, "errand export") as connection:
        conversations = [await find_conversation(connection, part) for part in options.conversation_ids]
        leaf = options.branch
        if leaf is not None and len(conversations) == 1:
            leaf = (await find_node(connection, conversations[0], leaf)).id
        params = DataExportParams(
            path=path,
            format=options.format,
            conversation_ids=tuple(conversation.id for conversation in conversations) or None,
            leaf_id=leaf,
            overwrite=options.overwrite,
            keep_secrets=options.keep_secrets,
        )
        export = await connection.call(DATA_EXPORT, params)
    content = tr("{conversations} with {messages}").format(
        conversations=trn("{n} conversation", "{n} conversations", export.conversations),
        messages=trn("{n} message", "{n} messages", export.nodes),
    )
    text = tr("{what} written to {path} ({bytes})")
    output.result(export, text.format(what=content, path=export.path, bytes=file_size(export.bytes)))
    if export.removed:
        text = tr("secrets were redacted in {texts}; --keep-secrets keeps them")
        output.line(text.format(texts=trn("{n} text", "{n} texts", export.removed)))
    return 0


EXPORT = Command(ExportOptions, export, json_help=marked("print what was written as one JSON object"))


class PruneOptions(CommandOptions, frozen=True, kw_only=True):
    days: Annotated[int, Option("--days", "unchanged for this many days", "N")]
    yes: Annotated[bool, Flag("--yes", "delete them; without this option they are only counted")] = False


async def prune(options: PruneOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand prune") as connection:
        pruned = await connection.call(DATA_PRUNE, DataPruneParams(days=options.days, dry_run=not options.yes))
    content = tr("{conversations} with {messages} ({bytes})").format(
        conversations=trn("{n} conversation", "{n} conversations", pruned.conversations),
        messages=trn("{n} message", "{n} messages", pruned.nodes),
        bytes=file_size(pruned.bytes),
    )
    text = tr("{what} deleted") if options.yes else tr("{what} would be deleted")
    output.result(pruned, text.format(what=content))
    if not options.yes and pruned.conversations:
        output.note(tr("errand: this cannot be undone. Add --yes to delete them, or export them first."))
    return 0


PRUNE = Command(PruneOptions, prune, json_help=marked("print the numbers as one JSON object"))


class DeleteOptions(CommandOptions, frozen=True, kw_only=True):
    conversation_id: Annotated[str, Argument("ID", "an archived conversation: a unique part of its id or title")]
    yes: Annotated[bool, Flag("--yes", "do not ask for confirmation")] = False


async def delete(options: DeleteOptions, paths: Paths, output: CommandOutput) -> int:
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
            output.line(_facts_line(conversation, output.style))
        question = tr("Delete it and everything in it? This cannot be undone.")
        await output.confirm(question, yes=options.yes, unchanged=tr("Nothing was deleted."))
        await connection.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation.id))
    text = tr("Deleted {id}: {conversation}").format(id=short_id(conversation.id), conversation=_title(conversation))
    output.result(conversation, text)
    return 0


DELETE = Command(DeleteOptions, delete, json_help=marked("print the conversation as one JSON object"))


def _facts_line(conversation: Conversation, style: Style) -> str:
    changed = conversation.updated_at.astimezone()
    facts = style.join(
        tr("last changed {changed:%Y-%m-%d %H:%M}").format(changed=changed),
        escape_hidden_line(short_path(conversation.workspace)),
    )
    return f"{short_id(conversation.id)}  {_title(conversation)}  {style.dim(facts)}"


def _title(conversation: Conversation) -> str:
    return one_line(escape_hidden_line(conversation.title), 60) or tr("(untitled)")


class OrphansOptions(CommandOptions, frozen=True, kw_only=True):
    archive: Annotated[bool, Flag("--archive", "archive the listed conversations", group="what")] = False
    delete: Annotated[bool, Flag("--delete", "permanently delete what is listed, with --yes", group="what")] = False
    yes: Annotated[bool, Flag("--yes", "delete them; without this option they are only listed")] = False


async def orphans(options: OrphansOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand orphans") as connection:
        listing = await connection.call(DATA_ORPHANS, OrphansParams(limit=_MAX_ORPHANS))
        output.each(listing.orphans, lambda orphan: [format_orphan(orphan, output.style)])
        output.note(f"errand: {_orphans_text(listing)}")
        if options.archive or (options.delete and options.yes):
            await _archive_or_delete(connection, listing, delete=options.delete)
            text = tr("errand: deleted {count}") if options.delete else tr("errand: archived {count}")
            output.note(text.format(count=f"{len(listing.orphans):,}"))
        elif options.delete and listing.orphans:
            output.note(tr("errand: this cannot be undone. Add --yes to delete them, or export them first."))
    return 0


ORPHANS = Command(OrphansOptions, orphans)


def format_orphan(orphan: Orphan, style: Style) -> str:
    """Return a line with id, size, number of messages and title."""
    conversation = orphan.conversation
    archived = style.dim(tr("  archived")) if conversation.archived else ""
    facts = f"{file_size(orphan.bytes):>10}  {trn('{n} message', '{n} messages', orphan.nodes):>14}"
    return f"{conversation.id}  {facts}  {one_line(conversation.title, 60)}{archived}"


def _orphans_text(listing: OrphansResult) -> str:
    if not listing.count:
        return tr("Every conversation has an agent.")
    more = tr("; the {count} largest are shown").format(count=_MAX_ORPHANS) if listing.count > _MAX_ORPHANS else ""
    return tr("{conversations} without an agent, {bytes} in total{more}").format(
        conversations=trn("{n} conversation", "{n} conversations", listing.count),
        bytes=file_size(listing.bytes),
        more=more,
    )


async def _archive_or_delete(connection: Connection, listing: OrphansResult, *, delete: bool) -> None:
    for orphan in listing.orphans:
        conversation_id = orphan.conversation.id
        params = ConversationChangeParams(conversation_id=conversation_id, archived=True)
        await connection.call(CONVERSATION_CHANGE, params)
        if delete:
            await connection.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation_id))

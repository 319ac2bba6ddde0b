"""`errand orphans`: conversations that no agent takes part in any more; listed, put away, deleted."""

import msgspec

from app.cli.options import Options
from app.cli.plain import one_line
from app.cli.style import Style
from app.cli.terminal import Terminal
from app.client.connection import Connection
from app.client.figures import count, file_size
from app.client.launch import connect
from app.paths import Paths
from app.protocol.conversations import ConversationChangeParams
from app.protocol.data import ConversationDeleteParams, Orphan, OrphansParams, OrphansResult
from app.protocol.wire import CONVERSATION_CHANGE, CONVERSATION_DELETE, DATA_ORPHANS

_MOST = 500


async def orphans(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand orphans")
    try:
        found = await connection.call(DATA_ORPHANS, OrphansParams(limit=_MOST))
        for orphan in found.orphans:
            terminal.line(msgspec.json.encode(orphan).decode() if options.json else orphan_line(orphan, terminal.style))
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


def orphan_line(orphan: Orphan, style: Style) -> str:
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

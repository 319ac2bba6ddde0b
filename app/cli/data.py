"""`errand export`, `import`, `prune` and `delete`: conversations taken out, in and away."""

import os
from pathlib import Path

from app.cli.options import Options
from app.cli.run import as_text
from app.cli.terminal import Terminal
from app.client.figures import count, file_size
from app.client.import_words import import_words
from app.client.launch import connect
from app.paths import Paths
from app.protocol.data import (
    ConversationDeleteParams,
    DataExportParams,
    DataImportParams,
    DataPruneParams,
)
from app.protocol.wire import CONVERSATION_DELETE, DATA_EXPORT, DATA_IMPORT, DATA_PRUNE


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


async def take_in(options: Options, paths: Paths, terminal: Terminal) -> int:
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
    """As the engine takes it: it does not know the folder that this was typed in."""
    return as_text(Path(os.path.expanduser(path)).absolute())

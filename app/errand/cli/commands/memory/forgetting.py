"""`errand memory forget`: says what would be removed for good, asks, and says what was removed and what was not."""

from collections.abc import Sequence

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.lookup import find_message
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import escape_hidden, one_line
from errand.client.connection import Connection
from errand.client.texts.forgetting import forgotten_text, remarks, removed_parts
from errand.protocol.blocks import MemoryRole
from errand.protocol.memory import (
    MEMORY_FORGET,
    MEMORY_PREVIEW_FORGET,
    ForgettableNode,
    MemoryForgetParams,
    MemoryPreviewForgetParams,
)
from errand.text.translation import tr, trn

_SHOWN = 20
_WHOSE: dict[MemoryRole, str] = {"user": "you", "agent": "agent", "tool": "tool", "task": "engine"}


async def forget(
    connection: Connection, parts: Sequence[str], terminal: Terminal, *, asks: bool, as_json: bool
) -> None:
    """Forget messages, each by any part of its id that no other has.

    Raises `UsageError` if the person declines, or if nobody can be asked.
    """
    if asks and as_json:
        raise UsageError(tr("With --json nothing is asked. Add --yes to forget; this cannot be undone."))
    node_ids = tuple([(await find_message(connection, part)).id for part in parts])
    if asks:
        await _confirm(connection, node_ids, terminal)
    done = await connection.call(MEMORY_FORGET, MemoryForgetParams(node_ids=node_ids))
    if as_json:
        terminal.line(msgspec.json.encode(done).decode())
        return
    terminal.line(forgotten_text(done))
    for line in remarks(done):
        terminal.note(line)


async def _confirm(connection: Connection, node_ids: tuple[str, ...], terminal: Terminal) -> None:
    shown = await connection.call(MEMORY_PREVIEW_FORGET, MemoryPreviewForgetParams(node_ids=node_ids))
    if not shown.removes.nodes:
        return  # forgotten before; what is left of it, if anything, goes without a question
    for node in shown.nodes[:_SHOWN]:
        terminal.line(_line(node, terminal))
    if (more := shown.removes.nodes - len(shown.nodes[:_SHOWN])) > 0:
        terminal.line(tr("and {other_texts}").format(other_texts=trn("{n} other text", "{n} other texts", more)))
    terminal.line(
        tr("This permanently removes: {names}, also from memory and the search index.").format(
            names=", ".join(removed_parts(shown.removes))
        )
    )
    if not terminal.interactive:
        raise UsageError(tr("Nothing was forgotten. This cannot be undone; repeat the command with --yes."))
    try:
        reply = await terminal.ask(tr("Forget this? This cannot be undone. y for yes, Enter for no: "))
    except (EOFError, KeyboardInterrupt):
        reply = ""
    if reply.strip().casefold() not in ("y", "yes"):
        raise UsageError(tr("Nothing was forgotten."))


def _line(node: ForgettableNode, terminal: Terminal) -> str:
    style = terminal.style
    title = one_line(escape_hidden(node.conversation_title), 40)
    head = f"{node.at.astimezone():%Y-%m-%d %H:%M}  {_WHOSE[node.role]:<6}"
    text = one_line(escape_hidden(node.text), max(20, terminal.width - 30))
    where = tr("in {title} · {node_id}").format(title=title, node_id=node.node_id)
    return f"{style.dim(head)}  {text}\n{'':<18}{style.dim(where)}"

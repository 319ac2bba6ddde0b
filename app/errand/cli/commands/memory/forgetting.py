"""`errand memory forget`: says what would be removed for good, asks, and says what was removed and what was not."""

from collections.abc import Sequence

import msgspec

from errand.cli.commands.memory.index import wait_removed
from errand.cli.lookup import find_message
from errand.cli.output import CommandOutput
from errand.cli.terminal.text import escape_hidden, one_line
from errand.client.connection import Connection
from errand.client.texts.forgetting import forgotten_text, remarks, removed_parts
from errand.protocol.blocks import MemoryRole
from errand.protocol.memory import (
    MEMORY_FORGET,
    MEMORY_PREVIEW_FORGET,
    ForgettableNode,
    MemoryForgetParams,
    MemoryForgetResult,
    MemoryPreviewForgetParams,
)
from errand.text.translation import tr, trn

_MAX_LISTED_NODES = 20
_AUTHORS: dict[MemoryRole, str] = {"user": "you", "agent": "agent", "tool": "tool", "task": "engine"}


async def forget(connection: Connection, parts: Sequence[str], output: CommandOutput, *, yes: bool) -> None:
    """Forget messages, each by any part of its id that no other has, once the person has confirmed it."""
    node_ids = tuple([(await find_message(connection, part)).id for part in parts])
    if not yes:
        await confirm_forgetting(connection, node_ids, output)
    result = await connection.call(MEMORY_FORGET, MemoryForgetParams(node_ids=node_ids))
    result = await note_unreached(connection, result, output)
    output.result(result, forgotten_text(result))


async def note_unreached(
    connection: Connection, result: MemoryForgetResult, output: CommandOutput
) -> MemoryForgetResult:
    """Wait until vectors of what was forgotten are removed, and say what was not reached."""
    result = msgspec.structs.replace(result, to_remove=await wait_removed(connection, result.to_remove, output))
    for line in remarks(result):
        output.note(line)
    return result


async def confirm_forgetting(connection: Connection, node_ids: tuple[str, ...], output: CommandOutput) -> None:
    """Ask whether the texts of these messages may be removed for good."""
    preview = await connection.call(MEMORY_PREVIEW_FORGET, MemoryPreviewForgetParams(node_ids=node_ids))
    if not preview.removes.nodes:
        return  # forgotten before; what is left of it, if anything, goes without a question
    listed = preview.nodes[:_MAX_LISTED_NODES]
    for node in listed:
        output.line(_line(node, output))
    if (more := preview.removes.nodes - len(listed)) > 0:
        output.line(tr("and {other_texts}").format(other_texts=trn("{n} other text", "{n} other texts", more)))
    output.line(
        tr("This permanently removes: {names}, also from memory and the search index.").format(
            names=", ".join(removed_parts(preview.removes))
        )
    )
    question = tr("Forget this? This cannot be undone.")
    await output.confirm(question, yes=False, unchanged=tr("Nothing was forgotten."))


def _line(node: ForgettableNode, output: CommandOutput) -> str:
    style = output.style
    title = one_line(escape_hidden(node.conversation_title), 40)
    head = f"{node.at.astimezone():%Y-%m-%d %H:%M}  {_AUTHORS[node.role]:<6}"
    text = one_line(escape_hidden(node.text), max(20, output.width - 30))
    origin = tr("in {title} · {node_id}").format(title=title, node_id=node.node_id)
    return f"{style.dim(head)}  {text}\n{'':<18}{style.dim(origin)}"

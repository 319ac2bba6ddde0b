"""`errand memory forget`: says what would be removed for good, asks, and says what was removed and what was not."""

import msgspec

from app.cli.arguments import UsageError
from app.cli.terminal.terminal import Terminal
from app.cli.terminal.text import escape_hidden, one_line
from app.client.connection import Connection
from app.client.number_format import count
from app.protocol.blocks import MemoryRole
from app.protocol.memory import (
    MEMORY_FORGET,
    MEMORY_PREVIEW_FORGET,
    ForgettableNode,
    MemoryForgetParams,
    MemoryForgetResult,
    MemoryPreviewForgetParams,
)

_SHOWN = 20
_WHOSE: dict[MemoryRole, str] = {"user": "you", "agent": "agent", "tool": "tool", "task": "engine"}
# What nothing on this machine can tell Errand to remove.
_LIMITS = (
    "Not removed: files in workspaces and what is kept to undo changes in them, permission rules made from a command, "
    "exports, other machines, and what the model's provider has received."
)


async def forget(
    connection: Connection, node_ids: tuple[str, ...], terminal: Terminal, *, asks: bool, as_json: bool
) -> None:
    """Raises `UsageError` if the person declines, or if nobody can be asked."""
    if asks and as_json:
        raise UsageError("--json answers no question. Add --yes to forget; it cannot be undone.")
    if asks:
        await _confirm(connection, node_ids, terminal)
    done = await connection.call(MEMORY_FORGET, MemoryForgetParams(node_ids=node_ids))
    if as_json:
        terminal.line(msgspec.json.encode(done).decode())
        return
    parts = _parts(done)
    terminal.line(f"Forgotten: {', '.join(parts)}." if parts else "There was nothing left to forget.")
    for line in _remarks(done):
        terminal.note(line)


async def _confirm(connection: Connection, node_ids: tuple[str, ...], terminal: Terminal) -> None:
    shown = await connection.call(MEMORY_PREVIEW_FORGET, MemoryPreviewForgetParams(node_ids=node_ids))
    if not shown.removes.nodes:
        return  # forgotten before; what is left of it, if anything, goes without a question
    for node in shown.nodes[:_SHOWN]:
        terminal.line(_line(node, terminal))
    if (more := shown.removes.nodes - len(shown.nodes[:_SHOWN])) > 0:
        terminal.line(f"and {count(more, 'other text')}")
    terminal.line(
        f"This removes for good: {', '.join(_parts(shown.removes))}, and what memory and the search have of it."
    )
    if not terminal.interactive:
        raise UsageError("Nothing was forgotten. It cannot be undone: repeat the command with --yes.")
    try:
        reply = await terminal.ask("Forget this? It cannot be undone. y for yes, Enter for no: ")
    except (EOFError, KeyboardInterrupt):
        reply = ""
    if reply.strip().casefold() not in ("y", "yes"):
        raise UsageError("Nothing was forgotten.")


def _line(node: ForgettableNode, terminal: Terminal) -> str:
    style = terminal.style
    title = one_line(escape_hidden(node.conversation_title), 40)
    head = f"{node.at.astimezone():%Y-%m-%d %H:%M}  {_WHOSE[node.role]:<6}"
    text = one_line(escape_hidden(node.text), max(20, terminal.width - 30))
    return f"{style.dim(head)}  {text}\n{'':<18}{style.dim(f'in {title} · {node.node_id}')}"


def _parts(result: MemoryForgetResult) -> list[str]:
    counted = (
        (result.nodes, "text", ""),
        (result.entries, "entry of memory", "entries of memory"),
        (result.executions, "record of a tool call", "records of tool calls"),
        (result.summaries, "summary", "summaries"),
        (result.recalls, "place where it was recalled", "places where it was recalled"),
        (result.asks, "question or approval", "questions and approvals"),
        (result.tasks, "task's prompt or summary", "tasks' prompts or summaries"),
        (result.titles, "title", ""),
        (result.files, "file of output or picture", "files of output and pictures"),
        (result.facts, "proposed fact", ""),
    )
    return [count(number, one, many) for number, one, many in counted if number]


def _remarks(result: MemoryForgetResult) -> list[str]:
    lines = [result.problem] if result.problem else []
    if result.rules:
        lines.append(f"{count(result.rules, 'permission rule')} made from it stay until revoked: errand grants")
    if result.copies:
        lines.append("These copies of the database were made before and may still have it. Delete them if you must:")
        lines += [f"  {escape_hidden(copy)}" for copy in result.copies]
    return [*lines, *([_LIMITS] if result.nodes else [])]

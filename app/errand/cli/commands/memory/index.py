"""`errand memory search|show|stats|prune|rebuild|download`: what memory finds, and the state of its indexes."""

import asyncio
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from errand.cli.arguments import UsageError, past_moment, workspace_path
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import escape_hidden, escape_hidden_line, indent, one_line, short_id, wrapped
from errand.client.connection import Connection
from errand.client.number_format import file_size
from errand.protocol.blocks import MemoryRole
from errand.protocol.memory import (
    MEMORY_GET,
    MEMORY_MODEL,
    MEMORY_PRUNE,
    MEMORY_REBUILD,
    MEMORY_SEARCH,
    MEMORY_STATS,
    MemoryFilter,
    MemoryGetParams,
    MemoryItem,
    MemoryModelParams,
    MemoryPruneParams,
    MemoryRebuildParams,
    MemorySearchParams,
    MemoryStatsParams,
    MemoryStatsResult,
)
from errand.text.translation import tr, trn

EntryKind = Literal["messages", "replies", "results", "tasks"]
"""The words of the tool `search_memory`."""

_ROLES: dict[EntryKind, MemoryRole] = {"messages": "user", "replies": "agent", "results": "tool", "tasks": "task"}
_POLL_S = 0.5
_HITS = 10
# Without progress for so long, something is wrong, and is said.
_STANDS_S = 20.0
_DAYS = re.compile(r"(\d{1,5})d(?:ays?)?")


@dataclass(frozen=True, slots=True)
class Order:
    """The words of the command line, and its options; None or empty where an option is not given."""

    words: tuple[str, ...]
    folder: str | None
    kinds: tuple[EntryKind, ...]
    after: str | None
    before: str | None
    limit: int | None
    as_json: bool


async def serve(connection: Connection, order: Order, terminal: Terminal) -> int | None:
    """The exit code; None if the words are none of these commands."""
    match order.words:
        case ["search", *words] if words:
            await _search(connection, " ".join(words), order, terminal)
        case ["show", number]:
            await _show(connection, number, terminal, as_json=order.as_json)
        case ["stats"]:
            await _stats(connection, terminal, as_json=order.as_json)
        case ["prune", *words] if words:
            await _prune(connection, words, terminal, as_json=order.as_json)
        case ["rebuild"]:
            await _rebuild(connection, terminal, as_json=order.as_json)
        case ["download"]:
            return await _download(connection, terminal)
        case _:
            return None
    return 0


async def _search(connection: Connection, text: str, order: Order, terminal: Terminal) -> None:
    """The entries that fit a question best, of those that the options name."""
    as_json = order.as_json
    where = MemoryFilter(
        folders=(workspace_path(order.folder),) if order.folder is not None else (),
        roles=tuple(_ROLES[kind] for kind in order.kinds),
        after=past_moment(order.after) if order.after is not None else None,
        before=past_moment(order.before) if order.before is not None else None,
    )
    found = await connection.call(MEMORY_SEARCH, MemorySearchParams(text=text, limit=order.limit or _HITS, where=where))
    for hit in found.hits:
        terminal.line(msgspec.json.encode(hit).decode() if as_json else _hit(hit, terminal))
    if found.remark and not as_json:
        terminal.note(found.remark)
    if not found.hits and not as_json:
        fewer = tr(" Try other words or fewer filters.") if where != MemoryFilter() else ""
        terminal.note(tr("No results in remembered conversations.{fewer}").format(fewer=fewer))


async def _show(connection: Connection, number: str, terminal: Terminal, *, as_json: bool) -> None:
    """One entry with its whole text. Raises `UsageError` for what is no number."""
    if not number.isdecimal():
        raise UsageError(
            tr("{number!r} is not the number of an entry. errand memory search shows them.").format(number=number)
        )
    item = (await connection.call(MEMORY_GET, MemoryGetParams(number=int(number)))).item
    if as_json:
        terminal.line(msgspec.json.encode(item).decode())
        return
    terminal.line(_head(item, terminal))
    terminal.line(escape_hidden(item.text))


async def _stats(connection: Connection, terminal: Terminal, *, as_json: bool) -> None:
    found = await connection.call(MEMORY_STATS, MemoryStatsParams())
    if as_json:
        terminal.line(msgspec.json.encode(found).decode())
        return
    for name, text in _rows(found):
        terminal.line(f"{name:<18}{text}")
    if found.problem:
        terminal.note(found.problem)


async def _prune(connection: Connection, words: list[str], terminal: Terminal, *, as_json: bool) -> None:
    """`90d` removes vectors of older entries, a number keeps as many of the newest."""
    params = MemoryPruneParams()
    for word in words:
        if match := _DAYS.fullmatch(word):
            params = msgspec.structs.replace(params, before=datetime.now(UTC) - timedelta(days=int(match[1])))
        elif word.isdecimal():
            params = msgspec.structs.replace(params, keep=int(word))
        else:
            raise UsageError(
                tr("{word!r}: use an age such as 90d, or the number of entries that keep their vectors.").format(
                    word=word
                )
            )
    done = await connection.call(MEMORY_PRUNE, params)
    if as_json:
        terminal.line(msgspec.json.encode(done).decode())
        return
    terminal.line(
        tr("{vectors} removed. The entries can still be found by their words.").format(
            vectors=trn("{n} vector", "{n} vectors", done.removed)
        )
    )


async def _rebuild(connection: Connection, terminal: Terminal, *, as_json: bool) -> None:
    """Wait until the words are indexed again; the vectors follow in the background."""
    await connection.call(MEMORY_REBUILD, MemoryRebuildParams())
    found = await connection.call(MEMORY_STATS, MemoryStatsParams())
    stands_until = time.monotonic() + _STANDS_S
    while found.to_index and time.monotonic() < stands_until:
        terminal.status(
            tr("indexing: {messages} left").format(messages=trn("{n} message", "{n} messages", found.to_index))
        )
        await asyncio.sleep(_POLL_S)
        before, found = found, await connection.call(MEMORY_STATS, MemoryStatsParams())
        if found.to_index != before.to_index:
            stands_until = time.monotonic() + _STANDS_S
    terminal.clear_status()
    if as_json:
        terminal.line(msgspec.json.encode(found).decode())
    else:
        terminal.line(tr("Rebuilt: {entries}.").format(entries=trn("{n} entry", "{n} entries", found.entries)))
        if found.problem:
            terminal.note(found.problem)
        elif found.to_embed and found.model.status == "ready":
            terminal.note(
                tr("{vectors} follow in the background.").format(
                    vectors=trn("{n} vector", "{n} vectors", found.to_embed)
                )
            )


async def _download(connection: Connection, terminal: Terminal) -> int:
    """Download the embedding model and show the progress; 1 if it fails. An interrupt leaves it going on."""
    await connection.call(MEMORY_MODEL, MemoryModelParams())
    while (model := (await connection.call(MEMORY_STATS, MemoryStatsParams())).model).status == "downloading":
        terminal.status(tr("{done} of {total}").format(done=file_size(model.done), total=file_size(model.total)))
        await asyncio.sleep(_POLL_S)
    terminal.clear_status()
    if model.status == "ready":
        terminal.line(tr("The embedding model is in {folder}.").format(folder=model.folder))
        return 0
    terminal.note(model.reason or tr("The download has ended."))
    return 1


def _hit(hit: MemoryItem, terminal: Terminal) -> str:
    text = wrapped(one_line(hit.text, 4 * terminal.width), terminal.width - 6)
    body = "\n".join(f"{indent(3)}{line}" for line in text.splitlines())
    return f"{_head(hit, terminal)}\n{body}"


def _head(item: MemoryItem, terminal: Terminal) -> str:
    style = terminal.style
    title = escape_hidden_line(item.conversation_title) or tr("untitled")
    score = f" · {item.score:.2f}" if item.score else ""
    where = f"{item.at.astimezone():%d %b %Y %H:%M} · {title} · {short_id(item.node_id)}{score}"
    return f"{style.bold(str(item.number))}  {escape_hidden_line(item.speaker)}  {style.dim(where)}"


def _rows(found: MemoryStatsResult) -> list[tuple[str, str]]:
    model = found.model
    state = {
        "ready": f"in {escape_hidden_line(str(Path(model.folder)))}",
        "downloading": tr("{done} of {total} downloaded").format(
            done=file_size(model.done), total=file_size(model.total)
        ),
        "missing": model.reason or tr("not downloaded yet"),
        "failed": model.reason,
    }[model.status]
    rows = [
        ("entries", f"{found.entries:,}"),
        (tr("found by meaning"), f"{found.vectors:,}"),
        (tr("to index"), f"{found.to_index:,}" if found.to_index else ""),
        (tr("to embed"), f"{found.to_embed:,}" if found.to_embed else ""),
        ("pruned", f"{found.pruned:,}" if found.pruned else ""),
        ("words", file_size(found.index_bytes)),
        ("vectors", file_size(found.vector_bytes)),
        (tr("embedding model"), state),
    ]
    return [(name, text) for name, text in rows if text]

"""`errand memory search|show|stats|prune|rebuild|download`: what memory finds, and the state of its indexes."""

import asyncio
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from errand.cli.arguments import UsageError, past_moment, workspace_path
from errand.cli.exit_codes import CommandError
from errand.cli.output import CommandOutput
from errand.cli.terminal.text import aligned, escape_hidden, escape_hidden_line, indent, one_line, short_id, wrapped
from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost
from errand.client.number_format import file_size
from errand.client.texts.embedding_model import finds_meanings, percent_done
from errand.client.texts.forgetting import being_removed
from errand.client.texts.messages import repetition_text
from errand.protocol.blocks import MemoryRole
from errand.protocol.memory import (
    MEMORY_GET,
    MEMORY_MODEL,
    MEMORY_PRUNE,
    MEMORY_REBUILD,
    MEMORY_SEARCH,
    MEMORY_STATS,
    EmbeddingModel,
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
_CANCEL_S = 3.0
_DEFAULT_HITS = 10
# Without progress for so long, the wait ends: something is wrong.
_STALL_LIMIT_S = 20.0
_DAYS = re.compile(r"(\d{1,5})d(?:ays?)?")


@dataclass(frozen=True, slots=True)
class Order:
    """The arguments and options of the command line; None or empty for an option that is not given."""

    arguments: tuple[str, ...]
    folder: str | None
    kinds: tuple[EntryKind, ...]
    after: str | None
    before: str | None
    limit: int | None


async def serve(connection: Connection, order: Order, output: CommandOutput) -> int | None:
    """Run the action that the arguments name; returns its exit code, or None if there is no such action."""
    match order.arguments:
        case ["search", *words] if words:
            await _search(connection, " ".join(words), order, output)
        case ["show", number]:
            await _show(connection, number, output)
        case ["stats"]:
            await _stats(connection, output)
        case ["prune", *words] if words:
            await _prune(connection, words, output)
        case ["rebuild"]:
            await _rebuild(connection, output)
        case ["download"]:
            await _download(connection, output)
        case _:
            return None
    return 0


async def _search(connection: Connection, text: str, order: Order, output: CommandOutput) -> None:
    """Print the entries that fit a question best, of those that the options name."""
    filters = MemoryFilter(
        folders=(workspace_path(order.folder),) if order.folder is not None else (),
        roles=tuple(_ROLES[kind] for kind in order.kinds),
        after=past_moment(order.after) if order.after is not None else None,
        before=past_moment(order.before) if order.before is not None else None,
    )
    params = MemorySearchParams(text=text, limit=order.limit or _DEFAULT_HITS, where=filters)
    results = await connection.call(MEMORY_SEARCH, params)
    if results.remark:
        output.note(results.remark)
    fewer = tr(" Try other words or fewer filters.") if filters != MemoryFilter() else ""
    empty = tr("No results in remembered conversations.{fewer}").format(fewer=fewer)
    output.each(results.hits, lambda hit: [_hit(hit, output)], empty=empty)


async def _show(connection: Connection, number: str, output: CommandOutput) -> None:
    """Print an entry with its whole text. Raises `UsageError` unless `number` is a number."""
    if not number.isdecimal():
        raise UsageError(
            tr("{number!r} is not the number of an entry. errand memory search shows them.").format(number=number)
        )
    item = (await connection.call(MEMORY_GET, MemoryGetParams(number=int(number)))).item
    output.result(item, _head(item, output), escape_hidden(item.text))


async def _stats(connection: Connection, output: CommandOutput) -> None:
    stats = await connection.call(MEMORY_STATS, MemoryStatsParams())
    output.result(stats, *aligned(_rows(stats)))
    if stats.problem:
        output.note(stats.problem)


async def _prune(connection: Connection, words: list[str], output: CommandOutput) -> None:
    """Remove vectors: `90d` those of older entries, a number all but those of the newest entries."""
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
    pruned = await connection.call(MEMORY_PRUNE, params)
    text = tr("{vectors} removed. The entries can still be found by their words.")
    left = await wait_removed(connection, pruned.to_remove, output)
    pruned = msgspec.structs.replace(pruned, to_remove=left)
    if left:
        output.result(pruned, being_removed(left))
    else:
        output.result(pruned, text.format(vectors=trn("{n} vector", "{n} vectors", pruned.removed)))


async def wait_removed(connection: Connection, to_remove: int, output: CommandOutput) -> int:
    """Wait until no vector of what was removed is on the disk; returns of how many entries there may still be some."""
    gives_up_at = time.monotonic() + _STALL_LIMIT_S
    while to_remove and time.monotonic() < gives_up_at:
        output.terminal.status(being_removed(to_remove))
        await asyncio.sleep(_POLL_S)
        to_remove = (await connection.call(MEMORY_STATS, MemoryStatsParams())).to_remove
    output.terminal.clear_status()
    return to_remove


async def _rebuild(connection: Connection, output: CommandOutput) -> None:
    """Wait until the words are indexed again; the vectors follow in the background."""
    await connection.call(MEMORY_REBUILD, MemoryRebuildParams())
    stats = await connection.call(MEMORY_STATS, MemoryStatsParams())
    gives_up_at = time.monotonic() + _STALL_LIMIT_S
    while stats.to_index and time.monotonic() < gives_up_at:
        messages = trn("{n} message", "{n} messages", stats.to_index)
        output.terminal.status(tr("indexing: {messages} left").format(messages=messages))
        await asyncio.sleep(_POLL_S)
        before, stats = stats, await connection.call(MEMORY_STATS, MemoryStatsParams())
        if stats.to_index != before.to_index:
            gives_up_at = time.monotonic() + _STALL_LIMIT_S
    output.terminal.clear_status()
    entries = trn("{n} entry", "{n} entries", stats.entries)
    output.result(stats, tr("Rebuilt: {entries}.").format(entries=entries))
    if stats.problem:
        output.note(stats.problem)
    elif stats.to_embed and finds_meanings(stats.model):
        vectors = trn("{n} vector", "{n} vectors", stats.to_embed)
        output.note(tr("{vectors} follow in the background.").format(vectors=vectors))


async def _download(connection: Connection, output: CommandOutput) -> None:
    """Download the embedding model and show the progress. Leaving it cancels the download; what has come is kept."""
    try:
        await connection.call(MEMORY_MODEL, MemoryModelParams())
        while (model := (await connection.call(MEMORY_STATS, MemoryStatsParams())).model).status == "downloading":
            progress = tr("{done} of {total}").format(done=file_size(model.done), total=file_size(model.total))
            output.terminal.status(progress)
            await asyncio.sleep(_POLL_S)
    except asyncio.CancelledError:
        with suppress(CallError, ConnectionLost, TimeoutError):
            async with asyncio.timeout(_CANCEL_S):
                await connection.call(MEMORY_MODEL, MemoryModelParams(action="cancel"))
        raise
    output.terminal.clear_status()
    if model.status != "ready":
        raise CommandError(model.reason or tr("The download has ended."))
    output.result(model, tr("The embedding model is in {folder}.").format(folder=model.folder))


def _hit(hit: MemoryItem, output: CommandOutput) -> str:
    text = wrapped(one_line(hit.text, 4 * output.width), output.width - 6)
    body = "\n".join(f"{indent(3)}{line}" for line in text.splitlines())
    return f"{_head(hit, output)}\n{body}"


def _head(item: MemoryItem, output: CommandOutput) -> str:
    style = output.style
    title = escape_hidden_line(item.conversation_title) or tr("untitled")
    score = f" · {item.score:.2f}" if item.score else ""
    repeated = f" · {text}" if (text := repetition_text(item)) else ""
    details = f"{item.at.astimezone():%d %b %Y %H:%M} · {title} · {short_id(item.node_id)}{score}{repeated}"
    return f"{style.bold(str(item.number))}  {escape_hidden_line(item.speaker)}  {style.dim(details)}"


def _to_embed(stats: MemoryStatsResult) -> str:
    if not stats.to_embed:
        return ""
    percent = percent_done(stats.vectors, stats.to_embed)
    return tr("{n} ({percent} % done)").format(n=f"{stats.to_embed:,}", percent=percent)


def model_line(model: EmbeddingModel) -> str:
    """Return which embedding model serves, and what is wrong with the better one."""
    match model.status:
        case "ready":
            return f"in {escape_hidden_line(str(Path(model.folder)))}"
        case "downloading":
            return tr("{done} of {total} downloaded").format(done=file_size(model.done), total=file_size(model.total))
        case "missing" | "failed" if model.reason:
            return tr("simple, built in. {reason}").format(reason=model.reason) if model.has_simple else model.reason
        case "missing" | "failed" if model.has_simple:
            return tr("simple, built in; for a better one: errand memory download")
        case "missing" | "failed":
            return tr("not downloaded yet")


def _rows(stats: MemoryStatsResult) -> list[tuple[str, str]]:
    rows = [
        ("entries", f"{stats.entries:,}"),
        (tr("found by meaning"), f"{stats.vectors:,}"),
        (tr("to index"), f"{stats.to_index:,}" if stats.to_index else ""),
        (tr("to embed"), _to_embed(stats)),
        ("pruned", f"{stats.pruned:,}" if stats.pruned else ""),
        (tr("being removed"), f"{stats.to_remove:,}" if stats.to_remove else ""),
        ("words", file_size(stats.index_bytes)),
        ("vectors", file_size(stats.vector_bytes)),
        (tr("embedding model"), model_line(stats.model)),
    ]
    return [(name, text) for name, text in rows if text]

"""Exports memory: the facts and all entries, as JSON lines or as Markdown. Window and terminal call it."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from errand.client.caller import Caller
from errand.client.errors import CallError
from errand.protocol.memory import (
    MEMORY_FACTS,
    MEMORY_GET,
    MEMORY_LIST,
    Fact,
    MemoryFactsParams,
    MemoryGetParams,
    MemoryItem,
    MemoryListParams,
)
from errand.system.regular_file import atomic_writer
from errand.text.translation import tr

ExportForm = Literal["jsonl", "markdown"]

_PAGE_ITEMS = 100


def form_of(file: str) -> ExportForm:
    """Return the form that the name of a file asks for: Markdown for `.md`, else JSON lines."""
    return "markdown" if Path(file).suffix.lower() in (".md", ".markdown") else "jsonl"


async def export_memory(caller: Caller, file: Path, form: ExportForm, *, overwrite: bool) -> int:
    """Write the facts and all entries, newest first, into the file; returns how many entries there are.

    The file is complete or not there. Raises OSError, `CallError` and `ConnectionLost`.
    """
    with atomic_writer(file, overwrite=overwrite) as stream:
        return await write_memory(caller, stream, form)


async def write_memory(caller: Caller, stream: BinaryIO, form: ExportForm) -> int:
    """Write the facts and all entries, newest first; returns how many entries there are."""
    facts = (await caller.call(MEMORY_FACTS, MemoryFactsParams())).facts
    show_fact, show_entry = (_fact_line, _entry_line) if form == "jsonl" else (_fact_text, _entry_text)
    if form == "markdown":
        stream.write(f"# {tr('Memory')}\n\n## {tr('Facts')}\n\n".encode())
    for fact in facts:
        stream.write(show_fact(fact))
    if form == "markdown":
        stream.write(f"\n## {tr('Entries')}\n".encode())
    return await _each_entry(caller, lambda item: stream.write(show_entry(item)))


async def _each_entry(caller: Caller, take: Callable[[MemoryItem], object]) -> int:
    count, before, has_more = 0, None, True
    while has_more:
        params = MemoryListParams(before_number=before, limit=_PAGE_ITEMS)
        page = await caller.call(MEMORY_LIST, params)
        for item in page.items:
            complete = item if len(item.text) >= item.length else await _whole(caller, item)
            if complete is not None:
                take(complete)
                count += 1
        before, has_more = (page.items[-1].number if page.items else None), page.has_more and bool(page.items)
    return count


async def _whole(caller: Caller, item: MemoryItem) -> MemoryItem | None:
    """Return the item with its whole text; None if it was forgotten meanwhile."""
    try:
        return (await caller.call(MEMORY_GET, MemoryGetParams(number=item.number))).item
    except CallError as error:
        if error.code == "not_found":
            return None
        raise


def _fact_line(fact: Fact) -> bytes:
    return msgspec.json.encode({"kind": "fact", **msgspec.to_builtins(fact)}) + b"\n"


def _entry_line(item: MemoryItem) -> bytes:
    return msgspec.json.encode({"kind": "entry", **msgspec.to_builtins(item)}) + b"\n"


def _fact_text(fact: Fact) -> bytes:
    scope = fact.folder or (tr("about you") if fact.scope == "me" else tr("always"))
    proposed = f", {tr('proposed')}" if fact.status == "proposed" else ""
    return f"- {fact.text} ({scope}{proposed})\n".encode()


def _entry_text(item: MemoryItem) -> bytes:
    """Return the entry with its text as a quotation, so that no line of it is taken for one of the file."""
    title = " ".join(item.conversation_title.split())
    head = f"{item.at.astimezone():%Y-%m-%d %H:%M} · {item.speaker} · {title}"
    quoted = "\n".join(f"> {line}".rstrip() for line in item.text.splitlines())
    return f"\n### {head}\n\n{quoted}\n".encode()

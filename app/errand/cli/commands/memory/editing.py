"""`errand memory edit|merge|export` of entries: an edited entry becomes a fact, and the messages are forgotten."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.commands.memory.forgetting import confirm_forgetting, note_unreached
from errand.cli.exit_codes import CommandError
from errand.cli.output import CommandOutput
from errand.client import memory_editing
from errand.client.connection import Connection
from errand.client.memory_export import export_memory, form_of, write_memory
from errand.client.texts.forgetting import NOTHING_CHANGED
from errand.client.texts.recall import folder_of_fact
from errand.protocol.memory import (
    MEMORY_GET,
    Fact,
    MemoryGetParams,
    MemoryItem,
    MemoryPinParams,
)
from errand.text.printable import reason
from errand.text.translation import tr, trn

T = TypeVar("T")


async def replace_entries(
    connection: Connection, numbers: Sequence[str], fact: MemoryPinParams, output: CommandOutput, *, yes: bool
) -> Fact:
    """Pin a fact in the place of entries, whose messages are forgotten; asks first unless `yes`.

    The fact is about the folder of the entries unless it has a scope: what was said there is told nowhere else.
    """
    items = [await _entry(connection, number) for number in numbers]
    if fact.scope is None and (folder := _only(map(folder_of_fact, items))):
        fact = msgspec.structs.replace(fact, scope="folder", folder=folder)
    node_ids = tuple({item.node_id: None for item in items})
    if not yes:
        await confirm_forgetting(connection, node_ids, output)
    draft = msgspec.structs.replace(fact, conversation_id=items[0].conversation_id, node_id="")
    replaced = await memory_editing.replace_entries(connection, node_ids, draft)
    if replaced is None:
        raise CommandError(NOTHING_CHANGED)
    pinned, result = replaced
    await note_unreached(connection, result, output)
    return pinned


async def merge_facts(
    connection: Connection, facts: Sequence[Fact], change: MemoryPinParams, output: CommandOutput
) -> Fact:
    """Change one of the facts, and remove the others. Without a scope, all must be about the same."""
    if change.scope is None:
        _only((fact.scope, fact.folder) for fact in facts)
    _, merged = await memory_editing.merge_facts(connection, facts, change)
    output.note(trn("{n} fact removed.", "{n} facts removed.", len(facts) - 1))
    return merged


async def export(connection: Connection, file: str, output: CommandOutput, *, yes: bool) -> None:
    """Write memory into a file, `-` for standard output; a file that exists is replaced with `yes` alone."""
    if file == "-":
        await write_memory(connection, sys.stdout.buffer, "jsonl")
        return
    path = _path(file)
    try:
        count = await export_memory(connection, path, form_of(file), overwrite=yes)
    except FileExistsError as error:
        raise CommandError(tr("{file} exists already; --yes replaces it.").format(file=file)) from error
    except OSError as error:
        raise CommandError(tr("{file} cannot be written: {reason}").format(file=file, reason=reason(error))) from error
    entries = trn("{n} entry", "{n} entries", count)
    output.result(
        {"file": str(path), "entries": count}, tr("{entries} written to {file}.").format(entries=entries, file=path)
    )


def _only(values: Iterable[T]) -> T:
    """Return the value that all have in common. Raises `UsageError` if they differ."""
    first, *others = set(values)
    if others:
        raise UsageError(
            tr("These apply in different folders. Choose with --scope or --folder where the new fact applies.")
        )
    return first


def _path(file: str) -> Path:
    return Path(file).expanduser()


async def _entry(connection: Connection, number: str) -> MemoryItem:
    if not number.isdecimal():
        raise UsageError(
            tr("{number!r} is not the number of an entry. errand memory search shows them.").format(number=number)
        )
    return (await connection.call(MEMORY_GET, MemoryGetParams(number=int(number)))).item

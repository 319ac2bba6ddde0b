"""`errand memory edit|merge|export` of entries: an edited entry becomes a fact, and the messages are forgotten.

Messages never change: what a person corrects is told to every task as a fact from then on, and the text that was wrong
is removed for good.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.commands.memory.forgetting import confirm_forgetting, forget_nodes
from errand.cli.exit_codes import CommandError
from errand.cli.output import CommandOutput
from errand.client.connection import Connection
from errand.client.errors import CallError
from errand.client.memory_export import export_memory, form_of, write_memory
from errand.client.texts.recall import folder_of_fact
from errand.protocol.memory import (
    MEMORY_FACTS,
    MEMORY_GET,
    MEMORY_PIN,
    MEMORY_UNPIN,
    Fact,
    MemoryFactsParams,
    MemoryGetParams,
    MemoryItem,
    MemoryPinParams,
    MemoryUnpinParams,
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
    first = items[0]
    origin = msgspec.structs.replace(fact, conversation_id=first.conversation_id, node_id="")
    earlier = {fact.id for fact in (await connection.call(MEMORY_FACTS, MemoryFactsParams())).facts}
    pinned = (await connection.call(MEMORY_PIN, origin)).fact
    try:
        if not (await forget_nodes(connection, node_ids, output)).nodes:
            raise CommandError(tr("Nothing was changed: the entry was edited or forgotten meanwhile."))
    except (CallError, CommandError):  # an agent works there, or another client was faster
        if pinned.id not in earlier:
            await connection.call(MEMORY_UNPIN, MemoryUnpinParams(id=pinned.id))
        raise
    return pinned


async def merge_facts(
    connection: Connection, facts: Sequence[Fact], change: MemoryPinParams, output: CommandOutput
) -> Fact:
    """Change one of the facts, and remove the others. Without a scope, all must be about the same."""
    if change.scope is None:
        _only((fact.scope, fact.folder) for fact in facts)
    first, *others = sorted(facts, key=lambda fact: fact.text != change.text)
    merged = (await connection.call(MEMORY_PIN, msgspec.structs.replace(change, id=first.id))).fact
    for other in others:
        await connection.call(MEMORY_UNPIN, MemoryUnpinParams(id=other.id))
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

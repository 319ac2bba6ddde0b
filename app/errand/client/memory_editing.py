"""Changes of memory that take several calls: merging facts, and putting a fact in the place of entries.

Messages never change: what a person corrects or merges is told to every task as a fact from then on, and the texts that
were wrong are removed for good. Window and terminal call it.
"""

from collections.abc import Sequence, Set

import msgspec

from errand.client.caller import Caller
from errand.client.errors import CallError
from errand.protocol.memory import (
    MEMORY_FACTS,
    MEMORY_FORGET,
    MEMORY_PIN,
    MEMORY_UNPIN,
    Fact,
    MemoryFactsParams,
    MemoryForgetParams,
    MemoryForgetResult,
    MemoryPinParams,
    MemoryUnpinParams,
)


async def merge_facts(caller: Caller, facts: Sequence[Fact], change: MemoryPinParams) -> tuple[Fact, Fact]:
    """Change one of the facts and remove the others; returns that fact as it was, and as it is. Raises `CallError`."""
    first, merged = await _changed(caller, facts, change)
    others = (fact for fact in facts if fact.id != first.id)
    for other in others:
        try:
            await caller.call(MEMORY_UNPIN, MemoryUnpinParams(id=other.id))
        except CallError as error:
            if error.code != "not_found":  # another client has removed it
                raise
    return first, merged


async def _changed(caller: Caller, facts: Sequence[Fact], change: MemoryPinParams) -> tuple[Fact, Fact]:
    """Change the first of the facts that the engine lets; return it as it was, and as it is. Raises `CallError`.

    No two facts may be equal: if the change makes one equal to another of them, that one is changed.
    """
    for fact in facts[:-1]:
        try:
            return fact, (await caller.call(MEMORY_PIN, msgspec.structs.replace(change, id=fact.id))).fact
        except CallError as error:
            if error.code != "conflict":
                raise
    return facts[-1], (await caller.call(MEMORY_PIN, msgspec.structs.replace(change, id=facts[-1].id))).fact


async def replace_entries(
    caller: Caller, node_ids: tuple[str, ...], draft: MemoryPinParams
) -> tuple[Fact, MemoryForgetResult] | None:
    """Pin a fact in the place of entries, whose nodes are forgotten; None if they were forgotten meanwhile.

    If nothing is forgotten, nothing is pinned either. Raises `CallError`.
    """
    earlier = {fact.id for fact in (await caller.call(MEMORY_FACTS, MemoryFactsParams())).facts}
    pinned = (await caller.call(MEMORY_PIN, draft)).fact
    try:
        result = await caller.call(MEMORY_FORGET, MemoryForgetParams(node_ids=node_ids))
    except CallError:  # an agent works there; of a lost connection it is not known what was done
        await _take_back(caller, pinned, earlier)
        raise
    if result.nodes:
        return pinned, result
    await _take_back(caller, pinned, earlier)
    return None


async def _take_back(caller: Caller, pinned: Fact, earlier: Set[str]) -> None:
    if pinned.id not in earlier:
        await caller.call(MEMORY_UNPIN, MemoryUnpinParams(id=pinned.id))

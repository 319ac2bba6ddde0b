"""Facts: sentences that a person pinned, and that every agent is told at the start of a task."""

from typing import Final, Literal

from errand.protocol.base import DerivedId, EmptyResult, Method, Timestamp, Wire

FactScope = Literal["always", "me", "folder"]
FactStatus = Literal["proposed", "pinned"]

# Characters of one fact.
LONGEST_FACT: Final = 500


class Fact(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence that agents are told at the start of every task: `always`, about the person (`me`), or in a `folder`.

    A `proposed` one is told to nobody until a person accepts it. `by` is the program or the agent that added it, `at`
    when. `conversation_id` and `node_id` are where it was said, if that is known; they may have been deleted since.
    """

    id: str
    scope: FactScope
    text: str
    status: FactStatus
    at: Timestamp
    folder: str = ""
    by: str = ""
    conversation_id: str = ""
    node_id: str = ""


class MemoryFactsParams(Wire, frozen=True, kw_only=True):
    pass


class MemoryFactsResult(Wire, frozen=True, kw_only=True):
    """Oldest first."""

    facts: tuple[Fact, ...]


class MemoryPinParams(Wire, frozen=True, kw_only=True):
    """Pin a new fact; with the `id` of one, change that fact: what is null stays. Pinning a proposed fact accepts it.

    A new fact needs a `text`, of at most 500 characters in one line; an equal one that exists already is pinned
    instead. `scope` is `always` for a new one. `folder` is an absolute path, needed for the scope `folder` alone. The
    client may choose `new_id`; repeating an id returns the existing fact. With a `node_id` the conversation is known.
    """

    text: str | None = None
    scope: FactScope | None = None
    folder: str | None = None
    id: str | None = None
    new_id: str | None = None
    conversation_id: str = ""
    node_id: str = ""


class MemoryPinResult(Wire, frozen=True, kw_only=True):
    fact: Fact


class MemoryUnpinParams(Wire, frozen=True, kw_only=True):
    """Remove a fact, or decline a proposed one."""

    id: str


MEMORY_FACTS = Method(
    "memory/facts", MemoryFactsParams, MemoryFactsResult, False, "List the pinned and the proposed facts."
)

MEMORY_PIN = Method(
    "memory/pin",
    MemoryPinParams,
    MemoryPinResult,
    True,
    "Pin, edit or accept a fact.",
    makes=DerivedId("new_id", "fact"),
)

MEMORY_UNPIN = Method("memory/unpin", MemoryUnpinParams, EmptyResult, True, "Remove or decline a fact.")

METHODS = (MEMORY_FACTS, MEMORY_PIN, MEMORY_UNPIN)

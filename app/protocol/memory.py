"""Memory: what was said and done, found again across conversations. The facts that a person pinned are in facts.py."""

from typing import Literal

from app.protocol.base import Method, Timestamp, Wire
from app.protocol.blocks import MemoryRole

# `accepted` and `declined` are proposed facts.
MemoryAction = Literal[
    "forgotten", "pruned", "rebuilt", "pinned", "edited", "unpinned", "proposed", "accepted", "declined", "switched"
]


class MemoryFilter(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """All conditions must hold; an empty one always does. `after` is included, `before` is not.

    A folder is the workspace of a conversation.
    """

    conversation_ids: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    roles: tuple[MemoryRole, ...] = ()
    after: Timestamp | None = None
    before: Timestamp | None = None


class MemoryItem(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of memory: one message, result of a tool, or task. `number` grows with the order of indexing.

    `text` is its beginning, of `length` characters in all. `has_vector`: it can be found by its meaning, too; not yet,
    or no longer after pruning. `score` compares the hits of one search, higher is better.
    """

    number: int
    node_id: str
    conversation_id: str
    conversation_title: str
    role: MemoryRole
    speaker: str
    at: Timestamp
    text: str
    length: int
    folder: str = ""
    has_vector: bool = False
    score: float = 0.0


class MemorySearchParams(Wire, frozen=True, kw_only=True):
    """A question or some words; `limit` from 1 to 100."""

    text: str
    limit: int = 20
    where: MemoryFilter = MemoryFilter()


class MemorySearchResult(Wire, frozen=True, kw_only=True):
    """Best first. `remark` says what is missing, for example that no embedding model is there; usually empty."""

    hits: tuple[MemoryItem, ...]
    remark: str = ""


class MemoryListParams(Wire, frozen=True, kw_only=True):
    """Newest first. `before_number` continues after the last item of a page."""

    where: MemoryFilter = MemoryFilter()
    before_number: int | None = None
    limit: int = 50


class MemoryListResult(Wire, frozen=True, kw_only=True):
    items: tuple[MemoryItem, ...]
    has_more: bool


class MemoryGetParams(Wire, frozen=True, kw_only=True):
    number: int


class MemoryGetResult(Wire, frozen=True, kw_only=True):
    """The item with the whole text that is indexed."""

    item: MemoryItem


class EmbeddingModel(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """`done` and `total` are bytes while it is downloading. `reason` says why it failed or is not used."""

    status: Literal["missing", "downloading", "ready", "failed"]
    done: int = 0
    total: int = 0
    reason: str = ""
    folder: str = ""


class MemoryStatsParams(Wire, frozen=True, kw_only=True):
    pass


class MemoryStatsResult(Wire, frozen=True, kw_only=True):
    """Sizes are in bytes. `to_index` nodes are not indexed yet, `to_embed` entries have no vector yet.

    `pruned` entries have none any more. `problem` says why memory does not work as it should; usually empty.
    """

    entries: int
    vectors: int
    to_index: int
    to_embed: int
    pruned: int
    facts: int
    index_bytes: int
    vector_bytes: int
    model: EmbeddingModel
    problem: str = ""


class MemoryRebuildParams(Wire, frozen=True, kw_only=True):
    """Throws the indexes away; they are made again in the background: see `to_index` and `to_embed`."""


class MemoryModelParams(Wire, frozen=True, kw_only=True):
    """Start the download of the embedding model, or cancel it. What has arrived is kept for the next time."""

    download: bool = True


class MemoryPruneParams(Wire, frozen=True, kw_only=True):
    """Remove vectors: of entries from before a time, all but the newest `keep`, or those of a conversation.

    The entries stay, and can be found by their words. Several conditions remove what any of them names.
    """

    before: Timestamp | None = None
    keep: int | None = None
    conversation_id: str | None = None


class MemoryPruneResult(Wire, frozen=True, kw_only=True):
    removed: int


class MemoryForgetParams(Wire, frozen=True, kw_only=True):
    """Remove the text of these nodes for good: from the conversation, the search, the indexes and summaries."""

    node_ids: tuple[str, ...]


class MemoryForgetResult(Wire, frozen=True, kw_only=True):
    """What was removed: texts of nodes, entries of memory, records of tool calls, and summaries made from them.

    `copies` are copies of the database that were made before and may still have the text; they are not changed.
    """

    nodes: int
    entries: int
    executions: int
    summaries: int
    recalls: int = 0
    copies: tuple[str, ...] = ()


class MemorySwitch(Wire, frozen=True, kw_only=True):
    """What memory does with a conversation, or with all that work in a folder and below it.

    Without `remembers`, nothing of it is kept in memory. Without `recalls`, its agents are given nothing from memory.
    Exactly one of `conversation_id` and `folder` is set.
    """

    conversation_id: str = ""
    folder: str = ""
    remembers: bool = True
    recalls: bool = True


class MemorySwitchesParams(Wire, frozen=True, kw_only=True):
    pass


class MemorySwitchesResult(Wire, frozen=True, kw_only=True):
    """All switches that differ from the default."""

    switches: tuple[MemorySwitch, ...]


class MemorySetSwitchParams(Wire, frozen=True, kw_only=True):
    switch: MemorySwitch


class MemoryLogEntry(Wire, frozen=True, kw_only=True):
    """One line of the audit: what was done with memory, by whom. It never holds what was forgotten."""

    number: int
    at: Timestamp
    action: MemoryAction
    by: str
    about: str


class MemoryLogParams(Wire, frozen=True, kw_only=True):
    """Newest first."""

    before_number: int | None = None
    limit: int = 50


class MemoryLogResult(Wire, frozen=True, kw_only=True):
    entries: tuple[MemoryLogEntry, ...]
    has_more: bool


MEMORY_LOG = Method("memory/log", MemoryLogParams, MemoryLogResult, False, "What was done with memory, by whom.")

METHODS = (MEMORY_LOG,)

"""Memory: what was said and done, found again across conversations, and the facts that every agent is told."""

from typing import Final, Literal

from errand.protocol.base import DerivedId, EmptyResult, Method, Timestamp, Wire
from errand.protocol.blocks import MemoryRole

FactScope = Literal["always", "me", "folder"]
FactStatus = Literal["proposed", "pinned"]

# `accepted` and `declined` are proposed facts.
MemoryAction = Literal[
    "forgotten", "pruned", "rebuilt", "pinned", "edited", "unpinned", "proposed", "accepted", "declined"
]

# Between two folders, between all, or not at all.
ShareChoice = Literal["share", "share_all", "apart"]
ShareMode = Literal["ask", "share", "apart"]

# Characters of one fact.
MAX_FACT_LENGTH: Final = 500


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
    or no longer after pruning. `score` compares the hits of one search, higher is better. `times`: so many entries have
    this text or nearly so, and this is the newest. `newer`: the number of a later entry that says something else about
    the same thing.
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
    times: int = 1
    newer: int = 0


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
    """`done` of `total` bytes have come from one of `hosts`; `reason` says why it failed or is not used.

    `is_offered`: a search had to do without it, and the person was not asked yet whether it may be downloaded.
    `has_simple`: until it is ready, meanings are searched by the simple model that comes with Errand.
    """

    status: Literal["missing", "downloading", "ready", "failed"]
    done: int = 0
    total: int = 0
    reason: str = ""
    folder: str = ""
    hosts: tuple[str, ...] = ()
    is_offered: bool = False
    has_simple: bool = False


class MemoryStatsParams(Wire, frozen=True, kw_only=True):
    pass


class MemoryStatsResult(Wire, frozen=True, kw_only=True):
    """Sizes are in bytes. `to_index` nodes are not indexed yet, `to_embed` entries have no vector yet.

    `pruned` entries have none any more. The vectors of `to_remove` entries that were forgotten, deleted or pruned may
    still be on the disk; after a restart of the engine this is 1 until that is known. `problem` says why memory does
    not work as it should; usually empty. `other_languages`: much of what the person wrote of late is not English,
    which the embedding model reads best.
    """

    entries: int
    vectors: int
    to_index: int
    to_embed: int
    pruned: int
    to_remove: int
    index_bytes: int
    vector_bytes: int
    model: EmbeddingModel
    problem: str = ""
    other_languages: bool = False


class MemoryRebuildParams(Wire, frozen=True, kw_only=True):
    """Throws the indexes away; they are made again in the background: see `to_index` and `to_embed`."""


class MemoryModelParams(Wire, frozen=True, kw_only=True):
    """Download the embedding model, cancel that, or do not offer it again: nothing else starts the download.

    What has arrived before a download is cancelled is kept for the next time.
    """

    action: Literal["download", "cancel", "decline"] = "download"


class MemoryPruneParams(Wire, frozen=True, kw_only=True):
    """Remove vectors: of entries from before a time, all but the newest `keep`, or those of a conversation.

    The entries stay, and can be found by their words. Several conditions remove what any of them names.
    """

    before: Timestamp | None = None
    keep: int | None = None
    conversation_id: str | None = None


class MemoryPruneResult(Wire, frozen=True, kw_only=True):
    """`removed` entries have no vector any more. `to_remove` of them may still be on the disk for a moment."""

    removed: int
    to_remove: int = 0


class MemoryForgetParams(Wire, frozen=True, kw_only=True):
    """Remove the text of these nodes for good. A call and its result are forgotten together.

    The nodes stay in their conversations without it. Refused while an agent works in one of the conversations
    concerned. Forgetting again what is forgotten removes nothing.
    """

    node_ids: tuple[str, ...]


class MemoryForgetResult(Wire, frozen=True, kw_only=True):
    """The counts of what was removed: texts of `nodes`, `entries` of memory, records of tool calls (`executions`), and
    `summaries` made from them; `recalls` are nodes in which an agent was given or found such a text; `asks` were
    about a call, `titles` and texts of `tasks` were derived, `files` are long outputs and pictures,
    `facts` were proposed there and not accepted. `rules` counts permission rules that a person made from a call: they
    stay, with its command.

    The vectors of `to_remove` entries may still be on the disk for a moment: `memory/stats` says when they are gone.
    `copies` are copies of the database that were made before and may still have the text; they are not changed.
    `problem` says what could not be cleared at once, and when it will be; usually empty.
    """

    nodes: int
    entries: int
    executions: int
    summaries: int
    recalls: int = 0
    asks: int = 0
    tasks: int = 0
    titles: int = 0
    files: int = 0
    facts: int = 0
    rules: int = 0
    to_remove: int = 0
    copies: tuple[str, ...] = ()
    problem: str = ""


class ForgettableNode(Wire, frozen=True, kw_only=True):
    """A node that would be forgotten; `text` is its beginning, in one line."""

    node_id: str
    conversation_id: str
    conversation_title: str
    role: MemoryRole
    at: Timestamp
    text: str


class MemoryPreviewForgetParams(Wire, frozen=True, kw_only=True):
    """Ask what `memory/forget` would remove."""

    node_ids: tuple[str, ...]


class MemoryPreviewForgetResult(Wire, frozen=True, kw_only=True):
    """`nodes` are those whose text is still there, including calls and results that go with the given ones.

    At most 100 are listed; `removes` counts all. Its `entries` is 0: entries are counted when they are removed.
    """

    nodes: tuple[ForgettableNode, ...]
    removes: MemoryForgetResult


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


class MemoryWarmUpParams(Wire, frozen=True, kw_only=True):
    """Answered at once; the model loads in the background, and rests a minute after its last use."""


class SharedFolders(Wire, frozen=True, kw_only=True):
    """Two folders. With `shares`, agents in each are given what was said in the other."""

    first: str
    second: str
    shares: bool


class MemoryFoldersParams(Wire, frozen=True, kw_only=True):
    pass


class MemoryFoldersResult(Wire, frozen=True, kw_only=True):
    """The decisions about two folders each; `mode` is the setting `other_folders`, which holds for all others.

    `not_given` are the ids of nodes that agents are not given again (`memory/give`).
    """

    mode: ShareMode
    pairs: tuple[SharedFolders, ...]
    not_given: tuple[str, ...] = ()


class MemoryShareParams(Wire, frozen=True, kw_only=True):
    """Decide whether two folders share what memory has of them. `share_all` is about all folders.

    The folders are absolute paths; empty with `share_all`.
    """

    choice: ShareChoice
    folder: str = ""
    other: str = ""


class MemoryGiveParams(Wire, frozen=True, kw_only=True):
    """Never give agents what a node says unasked again; with `again`, give it as before. Searches still find it."""

    node_id: str
    again: bool = False


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


MEMORY_SEARCH = Method("memory/search", MemorySearchParams, MemorySearchResult, False, "Find entries by a question.")

MEMORY_LIST = Method("memory/list", MemoryListParams, MemoryListResult, False, "Get a page of entries.")

MEMORY_GET = Method("memory/get", MemoryGetParams, MemoryGetResult, False, "Get one entry with its whole text.")

MEMORY_WARM_UP = Method(
    "memory/warm_up", MemoryWarmUpParams, EmptyResult, False, "A message is being written: load what recall needs."
)

MEMORY_STATS = Method("memory/stats", MemoryStatsParams, MemoryStatsResult, False, "Sizes, progress and the model.")

MEMORY_REBUILD = Method("memory/rebuild", MemoryRebuildParams, EmptyResult, True, "Make the indexes again.")

MEMORY_MODEL = Method("memory/model", MemoryModelParams, EmptyResult, True, "Download the embedding model, or not.")

MEMORY_PRUNE = Method("memory/prune", MemoryPruneParams, MemoryPruneResult, True, "Remove old vectors.")

MEMORY_LOG = Method("memory/log", MemoryLogParams, MemoryLogResult, False, "What was done with memory, by whom.")

MEMORY_PREVIEW_FORGET = Method(
    "memory/preview_forget",
    MemoryPreviewForgetParams,
    MemoryPreviewForgetResult,
    False,
    "What would be removed with the text of nodes.",
)

MEMORY_FORGET = Method(
    "memory/forget", MemoryForgetParams, MemoryForgetResult, True, "Remove the text of nodes for good."
)

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

MEMORY_FOLDERS = Method(
    "memory/folders", MemoryFoldersParams, MemoryFoldersResult, False, "List which folders share memory."
)

MEMORY_SHARE = Method("memory/share", MemoryShareParams, EmptyResult, True, "Share memory between folders, or not.")

MEMORY_GIVE = Method("memory/give", MemoryGiveParams, EmptyResult, True, "Give agents an entry never again, or again.")

METHODS = (
    MEMORY_SEARCH,
    MEMORY_LIST,
    MEMORY_GET,
    MEMORY_WARM_UP,
    MEMORY_STATS,
    MEMORY_REBUILD,
    MEMORY_MODEL,
    MEMORY_PRUNE,
    MEMORY_LOG,
    MEMORY_PREVIEW_FORGET,
    MEMORY_FORGET,
    MEMORY_FACTS,
    MEMORY_PIN,
    MEMORY_UNPIN,
    MEMORY_FOLDERS,
    MEMORY_SHARE,
    MEMORY_GIVE,
)

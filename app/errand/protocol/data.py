"""The data folder: sizes, export, import, removal."""

from typing import Literal

from errand.protocol.base import EmptyParams, EmptyResult, Method, Timestamp, Wire
from errand.protocol.conversations import Conversation

ExportFormat = Literal["json", "markdown", "html"]


class DataPart(Wire, frozen=True, kw_only=True):
    """`path` is absolute; `about` describes the content in plain words. `files` is 1 for a single file.

    `server` names the database and its host for what a PostgreSQL server keeps; `path` is empty then.
    """

    name: str
    path: str
    about: str
    bytes: int
    files: int
    server: str = ""


class DataSummaryResult(Wire, frozen=True, kw_only=True):
    folder: str
    parts: tuple[DataPart, ...]
    conversations: int
    archived: int
    free_bytes: int


class DataExportParams(Wire, frozen=True, kw_only=True):
    """Write conversations (null: all) to `path`, an absolute path.

    `json` is lossless, in one file. `markdown` and `html` write a folder with one file per conversation, or a file
    for a single one. `leaf_id` limits a single conversation to the branch that ends there. Existing files are
    overwritten only with `overwrite`. What looks like a key, a token or a password is removed unless `keep_secrets`.
    """

    path: str
    format: ExportFormat = "json"
    conversation_ids: tuple[str, ...] | None = None
    leaf_id: str | None = None
    overwrite: bool = False
    keep_secrets: bool = False


class DataExportResult(Wire, frozen=True, kw_only=True):
    """`removed` counts the texts that keys were removed from."""

    path: str
    conversations: int
    nodes: int
    bytes: int
    removed: int = 0


class DataImportParams(Wire, frozen=True, kw_only=True):
    """Read a file that was exported as `json`, or conversations of another program: a file, a zip or a folder.

    Existing conversations stay unchanged, but those of other programs get the messages written since.
    """

    path: str


class FoundSessions(Wire, frozen=True, kw_only=True):
    """Sessions of another program in the file or folder `path`, which `data/import` takes in.

    `new` are not here yet, `grown` have messages written since they were imported, `present` are here as they are.
    `not_looked_at` counts files beyond what can be looked at in time, oldest first. `problem` says in words why the
    folder could not be read.
    """

    program: str
    path: str
    sessions: int
    new: int
    grown: int
    present: int
    bytes: int
    newest_at: Timestamp | None = None
    not_looked_at: int = 0
    problem: str = ""


class DataFindResult(Wire, frozen=True, kw_only=True):
    """`searched` are the places that were looked into, those without sessions too."""

    found: tuple[FoundSessions, ...]
    searched: tuple[str, ...]


class LeftOut(Wire, frozen=True, kw_only=True):
    """Content that an import skipped. `kind` is in plain words, for example "voice messages"."""

    kind: str
    count: int


class DataImportResult(Wire, frozen=True, kw_only=True):
    """`source` names the program that wrote the file. `present` counts the conversations that existed already.

    `grown` counts those of other programs that existed and got the messages written since; `nodes` includes these.
    `calls` and `pictures` count imported tool calls and pictures; `left` lists skipped content, most frequent first.
    """

    source: str
    conversations: int
    nodes: int
    present: int
    calls: int = 0
    pictures: int = 0
    grown: int = 0
    left: tuple[LeftOut, ...] = ()


class OrphansParams(Wire, frozen=True, kw_only=True):
    """Conversations without agents, largest first."""

    limit: int = 50


class Orphan(Wire, frozen=True, kw_only=True):
    """`bytes` counts its records and its long output."""

    conversation: Conversation
    nodes: int
    bytes: int


class OrphansResult(Wire, frozen=True, kw_only=True):
    """`count` and `bytes` cover all orphans, not only the listed ones."""

    orphans: tuple[Orphan, ...]
    count: int
    bytes: int


class DataPruneParams(Wire, frozen=True, kw_only=True):
    """Delete archived conversations that have not changed for `days` days, with everything that belongs to them.

    `dry_run` only counts.
    """

    days: int
    dry_run: bool = True


class DataPruneResult(Wire, frozen=True, kw_only=True):
    conversations: int
    nodes: int
    bytes: int


class ConversationDeleteParams(Wire, frozen=True, kw_only=True):
    """Delete an archived conversation permanently, with its nodes, agents, tasks and their files. There is no undo."""

    conversation_id: str


CONVERSATION_DELETE = Method(
    "conversation/delete",
    ConversationDeleteParams,
    EmptyResult,
    True,
    "Delete an archived conversation permanently.",
)

DATA_SUMMARY = Method("data/summary", EmptyParams, DataSummaryResult, False, "Get the data directory and its sizes.")

DATA_EXPORT = Method("data/export", DataExportParams, DataExportResult, True, "Export conversations.")

DATA_IMPORT = Method("data/import", DataImportParams, DataImportResult, True, "Import conversations.")

DATA_FIND = Method(
    "data/find", EmptyParams, DataFindResult, False, "Find sessions of other programs on this machine, to import them."
)

DATA_ORPHANS = Method("data/orphans", OrphansParams, OrphansResult, False, "List conversations without agents.")

DATA_PRUNE = Method("data/prune", DataPruneParams, DataPruneResult, True, "Delete old archived conversations.")

METHODS = (
    CONVERSATION_DELETE,
    DATA_SUMMARY,
    DATA_EXPORT,
    DATA_IMPORT,
    DATA_FIND,
    DATA_ORPHANS,
    DATA_PRUNE,
)

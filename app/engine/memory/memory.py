"""Memory as the rest of the engine uses it: search, lists, sizes, pruning; it keeps itself up to date."""

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path

import msgspec

from app.engine.background import Background
from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import ConfigurationError, InvalidParams, NotFound, StorageError
from app.engine.core.secrets import KeyStore
from app.engine.core.settings import Settings, folders_of
from app.engine.event_log import EventLog
from app.engine.memory import vector_states
from app.engine.memory.embedding import DIMENSIONS, Embedder, is_installed
from app.engine.memory.entries import MemoryEntry
from app.engine.memory.index import IndexedEntry, WordIndex, sql_condition
from app.engine.memory.index_thread import IndexThread, IndexUnavailable
from app.engine.memory.indexer import Indexer
from app.engine.memory.model_download import ModelDownload
from app.engine.memory.passages import VECTORS_OF
from app.engine.memory.question import read_question
from app.engine.memory.ranking import Candidate
from app.engine.memory.relevance import bears_on, passage
from app.engine.memory.search import MemorySearch, Semantics
from app.engine.memory.vector_filler import VectorFiller
from app.engine.memory.vectors.base import VectorFilter, VectorStore
from app.engine.memory.vectors.embedded import EmbeddedVectors
from app.engine.memory.vectors.server import ServerVectors
from app.engine.models.http_pool import HttpPool
from app.engine.storage.database import Database
from app.engine.storage.records import memory_log
from app.paths import Paths
from app.protocol.conversations import Conversation
from app.protocol.memory import (
    EmbeddingModel,
    MemoryFilter,
    MemoryItem,
    MemoryListParams,
    MemoryListResult,
    MemoryPruneParams,
    MemorySearchParams,
    MemorySearchResult,
    MemoryStatsResult,
)

_RESTART_S = 60.0
_PRUNE_EVERY_S = 3_600.0
# Of an item in a list.
_LONGEST = 600
_LONGEST_QUESTION = 4_000
# The places among what an agent is given with a message, and how long it may wait for them.
_RECALLED = 10
_PATIENCE_S = 1.0
_CHARACTERS_A_TOKEN = 4
# Hits that `skip` drops are replaced by others.
_SPARE = 40
_MOST = 100
_NOT_INSTALLED = (
    "Memory finds words only: the package fastembed is not installed. Install it into Errand's own Python: "
    "pip install 'errand-desktop[memory]'"
)


class Memory:
    """One for the engine. `is_busy` is set once there are tasks; until then nothing runs."""

    def __init__(
        self,
        database: Database,
        log: EventLog,
        settings: Settings,
        paths: Paths,
        redact: Callable[[str], str],
        semantics: Semantics,
        download: ModelDownload,
        problem: str = "",
    ) -> None:
        self.is_busy: Callable[[], bool] = lambda: False
        self._database = database
        self._log = log
        self._settings = settings
        self._paths = paths
        self._download = download
        self._vectors = semantics.vectors
        self._problem = problem
        self._redact = redact
        self._index = IndexThread(paths.memory / "memory.db")
        self._words = MemorySearch(self._index)
        self._indexer = Indexer(database, self._index, self._remembers, redact, lambda: self.is_busy())
        self._filler = VectorFiller(self._index, semantics, self._has_model, lambda: self.is_busy())
        self._search = MemorySearch(self._index, semantics, self._filler)
        self._indexer.on_added = self._on_added
        self._indexer.on_removed = self._filler.remove

    def start(self, background: Background) -> None:
        """Follow the record from now on, and catch up with what is in it."""
        self._log.follow(self._indexer.follow)
        self._download.subscribe(lambda state: self._filler.wake() if state.status == "ready" else None)
        background.keep(self._indexer.run, "memory of words", _RESTART_S)
        background.keep(self._filler.run, "vectors of memory", _RESTART_S)
        background.keep(self._keep_pruning, "pruning of vectors", _PRUNE_EVERY_S)

    async def close(self) -> None:
        await self._download.cancel()
        await self._vectors.close()
        await self._index.close()

    async def search(
        self,
        params: MemorySearchParams,
        cancel: CancelSignal,
        skip: Callable[[MemoryItem], bool] = lambda item: False,
        patience_s: float | None = None,
    ) -> MemorySearchResult:
        """Without those that `skip` names. After `patience_s` for the model, words decide alone."""
        if not 1 <= params.limit <= _MOST:
            raise InvalidParams(f"limit: {params.limit}; from 1 to {_MOST}.")
        search, remark = self._best_search()
        found = await search.find(
            params.text[:_LONGEST_QUESTION], params.limit + _SPARE, cancel, vector_filter(params.where), patience_s
        )
        hits = await self._hits(found.candidates, params.text, skip)
        return MemorySearchResult(hits=tuple(hits[: params.limit]), remark=found.remark or remark)

    async def recall(
        self, question: str, cancel: CancelSignal, without: tuple[str, ...], skip: Callable[[MemoryItem], bool]
    ) -> tuple[MemoryItem, ...]:
        """What seems to bear on a question, best first, within the budget that the settings give.

        Nothing of the conversations `without`, nor what `skip` names. Waits a second for the model, and two in all.
        """
        budget = self._settings.values.recall_tokens * _CHARACTERS_A_TOKEN
        text = question[:_LONGEST_QUESTION]
        if not budget or not read_question(text).words:
            return ()
        where = VectorFilter(not_conversations=without) if without else None
        try:
            async with asyncio.timeout(2 * _PATIENCE_S):
                search, _ = self._best_search()
                found = await search.find(text, _RECALLED + _SPARE, cancel, where, _PATIENCE_S)
                bearing = [one for one in found.candidates if bears_on(text, one.found.entry, found.nearness)]
                hits = await self._hits(bearing, text, skip)
        except TimeoutError:  # the index is being made compact, or the machine is very busy
            return ()
        recalled: list[MemoryItem] = []
        for item in hits[:_RECALLED]:
            budget -= len(item.text)
            if budget < 0:
                break
            recalled.append(item)
        return tuple(recalled)

    async def page(self, params: MemoryListParams) -> MemoryListResult:
        condition, values = sql_condition(vector_filter(params.where))
        if params.before_number is not None:
            condition = f"{condition} AND number < ?" if condition else "number < ?"
            values = [*values, params.before_number]
        query = f"{condition or 'true'} ORDER BY number DESC LIMIT ?"
        found = await self._index.run(lambda index: index.select(query, (*values, params.limit + 1)))
        page = found[: params.limit]
        return MemoryListResult(items=tuple(await self._items(page)), has_more=len(found) > params.limit)

    async def get(self, number: int) -> MemoryItem:
        """With its whole text. Raises `NotFound`."""
        found = await self._index.run(lambda index: index.entries((number,)))
        items = await self._items(found, lambda text: text)
        if not items:
            raise NotFound(f"There is no entry {number} in memory. It may have been deleted, or indexed anew.")
        return items[0]

    async def stats(self) -> MemoryStatsResult:
        counts = await self._index.run(vector_states.counts)
        sizes = await asyncio.to_thread(_sizes, self._paths.memory)
        return MemoryStatsResult(
            entries=sum(counts.values()),
            vectors=counts.get("made", 0),
            to_index=await self._indexer.to_index(),
            to_embed=counts.get("wanted", 0),
            pruned=counts.get("pruned", 0),
            index_bytes=sizes[0],
            vector_bytes=sizes[1],
            model=self.model(),
            problem=self._indexer.problem or self._filler.problem or self._problem or _failure(counts),
        )

    async def is_current(self) -> bool:
        """True if all that is stored is in the index of words."""
        return await self._indexer.is_current()

    def model(self) -> EmbeddingModel:
        state = self._download.state
        if not is_installed():
            return EmbeddingModel(status="missing", reason=_NOT_INSTALLED, folder=str(self._paths.embedding))
        return EmbeddingModel(
            status=state.status,
            done=state.done,
            total=state.total,
            reason=state.reason,
            folder=self._settings.values.embedding_folder or str(self._paths.embedding),
        )

    def download_model(self) -> None:
        """Raises `InvalidParams` without the package that runs it."""
        if not is_installed():
            raise InvalidParams(_NOT_INSTALLED)
        self._download.start(by_person=True)

    async def cancel_download(self) -> None:
        await self._download.cancel()

    async def rebuild(self, by: str) -> None:
        """Throw the indexes away; they are made again in the background. The vectors follow: they are of another."""
        await self._index.clear()
        self._indexer.read_again()
        self._database.journal.put(memory_log.add("rebuilt", by, "all indexes"))
        await self._database.journal.flush()

    async def prune(self, params: MemoryPruneParams, by: str) -> int:
        """Remove vectors; returns how many entries lost theirs. Raises `InvalidParams` if nothing is named."""
        if params.before is None and params.keep is None and params.conversation_id is None:
            raise InvalidParams("Name a time, how many to keep, or a conversation.")
        if params.keep is not None and params.keep < 0:
            raise InvalidParams(f"keep: {params.keep}; from 0 up.")
        numbers = await self._index.run(partial(vector_states.prune, params))
        if numbers:
            self._filler.remove(numbers)
            self._database.journal.put(memory_log.add("pruned", by, f"{len(numbers)} vectors"))
            await self._database.journal.flush()
        return len(numbers)

    async def forget_entries(self, node_ids: Sequence[str]) -> int:
        """Remove the entries of these nodes, and what the file still has of them; returns how many there were.

        What the nodes still say is indexed anew. Raises `StorageError` if the index cannot be changed.
        """
        try:
            removed = await self._indexer.forget(node_ids)
            await self._index.run(WordIndex.compact_if_loose)
        except IndexUnavailable as error:
            raise StorageError(
                f"Forgotten, but not in memory: {error} To forget it again completes that, and so does the next start "
                "of the engine."
            ) from error
        return removed

    def rules_changed(self) -> None:
        """Other conversations or folders are to be remembered than before."""
        _folders.cache_clear()
        self._indexer.read_again()
        self._filler.wake()

    def may_recall(self, conversation: Conversation) -> bool:
        return conversation.recalls and not _is_below(
            conversation.workspace, self._settings.values.not_recalled_folders
        )

    def _remembers(self, conversation: Conversation) -> bool:
        return conversation.remembers and not _is_below(
            conversation.workspace, self._settings.values.not_remembered_folders
        )

    def _has_model(self) -> bool:
        """Starts the download at the first use."""
        if not is_installed():
            return False
        self._download.start()
        return self._download.state.status == "ready"

    def _best_search(self) -> tuple[MemorySearch, str]:
        model = self.model()
        if model.status == "ready" and not model.reason:
            return self._search, ""
        if model.status == "downloading":
            return self._words, f"Only words were searched: the embedding model is downloaded ({_share(model)})."
        missing = "The embedding model is not downloaded yet: errand memory download"
        return self._words, f"Only words were searched. {model.reason or missing}"

    def _on_added(self) -> None:
        self._filler.wake()

    async def _keep_pruning(self) -> None:
        while True:
            values = self._settings.values
            if values.keep_vectors_days or values.keep_vectors:
                before = datetime.now(UTC) - timedelta(days=values.keep_vectors_days)
                params = MemoryPruneParams(
                    before=before if values.keep_vectors_days else None, keep=values.keep_vectors or None
                )
                await self.prune(params, "the settings")
            await asyncio.sleep(_PRUNE_EVERY_S)

    async def _hits(
        self, candidates: Sequence[Candidate], question: str, skip: Callable[[MemoryItem], bool]
    ) -> list[MemoryItem]:
        """With the part of each text that fits the question best."""
        found = [one.found for one in candidates]
        scores = {one.found.entry.number: one.score for one in candidates}
        items = await self._items(found, lambda text: passage(text, question, _LONGEST))
        return [msgspec.structs.replace(item, score=round(scores[item.number], 4)) for item in items if not skip(item)]

    async def _items(
        self, found: Sequence[IndexedEntry], show: Callable[[str], str] = lambda text: text[:_LONGEST]
    ) -> list[MemoryItem]:
        """Those of conversations that are there and are remembered, without keys that became known meanwhile.

        `show` gives the part of a text that is wanted.
        """
        entries = [one.entry for one in found]
        titles: dict[str, str] = {}
        for conversation_id in {one.conversation_id for one in entries}:
            conversation = await self._database.conversations.get(conversation_id)
            if conversation is not None and self._remembers(conversation):
                titles[conversation_id] = conversation.title
        shown = [one for one in entries if one.conversation_id in titles]
        embedded = await self._index.run(_with_vector([one.number for one in shown]))

        def make() -> list[MemoryItem]:
            return [
                _item(one, titles[one.conversation_id], self._redact(show(one.text)), has_vector=one.number in embedded)
                for one in shown
            ]

        return await asyncio.to_thread(make) if shown else []


async def open_memory(
    database: Database,
    log: EventLog,
    settings: Settings,
    paths: Paths,
    keys: KeyStore,
    embedder: Embedder,
    stack: AsyncExitStack,
) -> Memory:
    """Memory as the settings want it; `stack` closes it. Nothing runs before `Memory.start`."""
    pool = HttpPool()
    stack.push_async_callback(pool.close)
    vectors, problem = await _store_of_vectors(database, settings, paths, keys, pool)
    download = ModelDownload(lambda: settings.values.embedding_folder, paths, pool)
    memory = Memory(database, log, settings, paths, keys.redactor, Semantics(embedder, vectors), download, problem)
    stack.push_async_callback(memory.close)
    return memory


async def _store_of_vectors(
    database: Database, settings: Settings, paths: Paths, keys: KeyStore, pool: HttpPool
) -> tuple[VectorStore, str]:
    """The store that the settings name, and why it is another one; each database has its own collection."""
    here = EmbeddedVectors(paths.memory / "vectors", DIMENSIONS, VECTORS_OF)
    server = settings.values.vector_server
    if not server:
        return here, ""
    key = await keys.get("qdrant", ("QDRANT_API_KEY",))
    secret, collection = key.value if key is not None else "", f"errand_{database.epoch}"
    try:
        store = ServerVectors(pool, server, DIMENSIONS, VECTORS_OF, api_key=secret, collection=collection)
    except ConfigurationError as error:
        return (
            here,
            f"The vectors are kept on this machine, because the setting “Vector server” cannot be used: {error}",
        )
    return store, ""


def vector_filter(where: MemoryFilter) -> VectorFilter | None:
    if where == MemoryFilter():
        return None
    return VectorFilter(
        conversations=where.conversation_ids,
        folders=where.folders,
        kinds=where.roles,
        after=where.after.timestamp() if where.after is not None else None,
        before=where.before.timestamp() if where.before is not None else None,
    )


def _with_vector(numbers: Sequence[int]) -> Callable[[WordIndex], frozenset[int]]:
    """Reads which of these entries have a vector."""
    return lambda index: frozenset(one.entry.number for one in index.entries(numbers, "vector = 'made'"))


def _failure(counts: Mapping[str, int]) -> str:
    if not (failed := counts.get("failed", 0)):
        return ""
    return (
        f"The embedding model failed on {failed:,} {'entries' if failed > 1 else 'entry'}, found by words alone now. "
        "Download the model again, then rebuild memory."
    )


def _is_below(workspace: str, folders: str) -> bool:
    return bool(workspace) and any(Path(workspace).is_relative_to(folder) for folder in _folders(folders))


@lru_cache(maxsize=8)
def _folders(setting: str) -> frozenset[Path]:
    """The folders of a setting, as they are written and without links: workspaces are stored without."""
    written = folders_of(setting)
    return frozenset((*written, *(Path(os.path.realpath(folder)) for folder in written)))


def _share(model: EmbeddingModel) -> str:
    return f"{100 * model.done / model.total:.0f} %" if model.total else "0 %"


def _sizes(folder: Path) -> tuple[int, int]:
    """Bytes of the index of words, and of the vectors."""
    words = sum(_size(file) for file in folder.glob("memory.db*"))
    inside = (Path(place, name) for place, _, names in os.walk(folder / "vectors") for name in names)
    return words, sum(map(_size, inside))


def _size(file: Path) -> int:
    """The bytes that it takes on the disk: files of the vectors are mostly holes."""
    try:
        found = file.lstat()
    except OSError:
        return 0
    if not stat.S_ISREG(found.st_mode):
        return 0
    return found.st_size if sys.platform == "win32" else found.st_blocks * 512


def _item(entry: MemoryEntry, title: str, text: str, *, has_vector: bool) -> MemoryItem:
    return MemoryItem(
        number=entry.number,
        node_id=entry.id,
        conversation_id=entry.conversation_id,
        conversation_title=title,
        role=entry.role,
        speaker=entry.speaker,
        at=entry.at,
        text=text,
        length=len(entry.text),
        folder=entry.folder,
        has_vector=has_vector,
    )

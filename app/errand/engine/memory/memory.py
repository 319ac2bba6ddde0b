"""Memory as the rest of the engine uses it: reading, and upkeep in the background."""

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from errand.engine.background import Background
from errand.engine.core.errors import ConfigurationError, InvalidParams, StorageError
from errand.engine.core.secrets import KeyStore
from errand.engine.core.settings import Settings
from errand.engine.event_log import EventLog
from errand.engine.memory import vector_states
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH, ModelKind, is_installed
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread, IndexUnavailable
from errand.engine.memory.indexer import Indexer
from errand.engine.memory.model_download import ModelDownload, ModelState, hub_source
from errand.engine.memory.model_package import pip_indexes
from errand.engine.memory.passages import vectors_of
from errand.engine.memory.reader import MemoryReader
from errand.engine.memory.recall.folders import FolderSharing
from errand.engine.memory.rules import MemoryRules
from errand.engine.memory.search import MemorySearch, Semantics
from errand.engine.memory.vector_filler import VectorFiller
from errand.engine.memory.vectors.base import VectorStore
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.memory.vectors.server import ServerVectors
from errand.engine.memory.words.stop_words import is_english
from errand.engine.models.http_pool import HttpPool
from errand.engine.storage.database import Database
from errand.engine.storage.records import memory_log
from errand.protocol.events import EmbeddingModelUpdate
from errand.protocol.memory import MemoryPruneParams, MemoryPruneResult, MemoryStatsResult
from errand.system.paths import Paths

_RESTART_S = 60.0
_PRUNE_EVERY_S = 3_600.0
# Entries that are not given again; of more, the oldest are given as before.
_MAX_NOT_GIVEN = 5_000
_NEWEST_TEXTS = 50
_REMOVAL_WAIT_S = 5.0


class Memory:
    """The memory of the engine; `reader` searches it. `is_busy` is set once there are tasks; until then none runs.

    The vectors of `semantics` are those of `kind`.
    """

    def __init__(
        self,
        database: Database,
        log: EventLog,
        settings: Settings,
        paths: Paths,
        redact: Callable[[str], str],
        semantics: Semantics,
        kind: ModelKind,
        download: ModelDownload,
        problem: str = "",
    ) -> None:
        self.is_busy: Callable[[], bool] = lambda: False
        self.download = download
        self._database = database
        self._log = log
        self._settings = settings
        self._paths = paths
        self._vectors = semantics.vectors
        self._embedder = semantics.embedder
        self._problem = problem
        self._rules = rules = MemoryRules(settings, paths.workspaces)
        self.sharing = FolderSharing(settings, paths.workspaces)
        self._index = index = IndexThread(paths.memory / "memory.db")
        self._indexer = Indexer(database, index, rules, redact, lambda: self.is_busy())
        self._filler = VectorFiller(index, semantics, kind, lambda: self.is_busy())
        self._indexer.on_added = self._filler.wake
        self._indexer.on_removed = self._filler.remove
        search = MemorySearch(index, semantics, self._filler)
        self.reader = MemoryReader(
            index, search, download, database.conversations, rules, settings, redact, self._progress, self.sharing
        )
        self._background: Background | None = None
        self._warming: asyncio.Task[None] | None = None

    def start(self, background: Background) -> None:
        """Follow the record from now on, and catch up with what is in it."""
        self._background = background
        self._log.follow(self._indexer.follow)
        self.download.subscribe(self._on_model_changed)
        background.keep(self._indexer.run, "memory of words", _RESTART_S)
        background.keep(self._filler.run, "vectors of memory", _RESTART_S)
        background.keep(self._keep_pruning, "pruning of vectors", _PRUNE_EVERY_S)

    async def close(self) -> None:
        await self.download.cancel()
        await self._vectors.close()
        await self._index.close()

    def warm_up(self) -> None:
        """Prepare, in the background, for the recall with the next message."""
        if self._background is not None and (self._warming is None or self._warming.done()):
            self._warming = self._background.start(self.reader.warm_up(), "loading of the embedding model")

    async def stats(self) -> MemoryStatsResult:
        """Return the numbers; with nothing left to index they are complete, as clients look again until then."""
        to_index = await self._indexer.to_index()  # also before the count: entries may come after that
        counts = await self._index.run(vector_states.counts)
        sizes = await asyncio.to_thread(_sizes, self._paths.memory)
        return MemoryStatsResult(
            entries=sum(counts.values()),
            vectors=counts.get("made", 0),
            to_index=max(to_index, await self._indexer.to_index()),
            to_embed=counts.get("wanted", 0),
            pruned=counts.get("pruned", 0),
            to_remove=await self._filler.count_to_remove(),
            index_bytes=sizes[0],
            vector_bytes=sizes[1],
            model=self.download.model(),
            problem=self._indexer.problem or self._filler.problem or self._problem or _failure(counts),
            other_languages=self._embedder.kind == ENGLISH and await self._index.run(_has_other_languages),
        )

    def download_model(self) -> None:
        """Start the download for a person. Raises `InvalidParams` without the package that runs the model."""
        if not is_installed():
            raise InvalidParams(self.download.model().reason)
        self.download.start()

    def decline_model(self) -> None:
        """Never offer the model again; it can still be downloaded."""
        self._settings.set("offer_embedding_model", False)
        self._on_model_changed(self.download.state)

    def set_given(self, node_id: str, *, again: bool) -> None:
        """Never give agents the entry of a node again without their asking, or give it as before."""
        others = tuple(other for other in self._settings.values.not_given_again if other != node_id)
        self._settings.set_not_given_again(others if again else (*others, node_id)[-_MAX_NOT_GIVEN:])

    async def rebuild(self, by: str) -> None:
        """Delete the indexes; they are made again in the background, and then the vectors, which belong to them."""
        await self._index.clear()
        self._indexer.read_again()
        self._database.journal.put(memory_log.add("rebuilt", by, "all indexes"))
        await self._database.journal.flush()

    async def prune(self, params: MemoryPruneParams, by: str) -> MemoryPruneResult:
        """Remove vectors, and wait a little until they are gone from the disk.

        Raises `InvalidParams` if nothing is named.
        """
        if params.before is None and params.keep is None and params.conversation_id is None:
            raise InvalidParams("Name a time, how many to keep, or a conversation.")
        if params.keep is not None and params.keep < 0:
            raise InvalidParams(f"keep: {params.keep}; from 0 up.")
        numbers = await self._index.run(partial(vector_states.prune, params))
        if numbers:
            self._filler.remove(numbers)
            self._database.journal.put(memory_log.add("pruned", by, f"{len(numbers)} vectors"))
            await self._database.journal.flush()
        return MemoryPruneResult(removed=len(numbers), to_remove=await self.wait_removed() if numbers else 0)

    async def wait_removed(self) -> int:
        """Wait a little until no file has a vector of what was removed; returns of how many entries there may be some.

        Those are removed as soon as possible, also after a restart.
        """
        return await self._filler.wait_removed(_REMOVAL_WAIT_S)

    async def forget_entries(self, node_ids: Sequence[str]) -> int:
        """Remove the entries of these nodes, and their traces in the file; return how many there were.

        Text that the nodes still have is indexed anew. Raises `StorageError` if the index cannot be changed.
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
        """Apply new rules about which conversations and folders are remembered."""
        self._rules.changed()
        self._indexer.read_again()
        self._filler.wake()

    async def _progress(self) -> str:
        """Return which part of the indexes is made, for a person who searches; empty once they are complete."""
        if self._indexer.is_behind and (share := await self._indexer.progress()) < 1:
            return f"Memory is being indexed again ({int(100 * share)} %): some of it cannot be found yet."
        if self._filler.is_behind:
            counts = await self._index.run(vector_states.counts)
            vector_count, wanted_count = counts.get("made", 0), counts.get("wanted", 0)
            if wanted_count:
                percent = 100 * vector_count // (vector_count + wanted_count)
                return f"The index of meanings is being made ({percent} %): the other entries are found by their words."
        return ""

    def _on_model_changed(self, state: ModelState) -> None:
        self._log.publish(EmbeddingModelUpdate(model=self.download.model()))
        if state.status == "ready":
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


async def open_memory(
    database: Database,
    log: EventLog,
    settings: Settings,
    paths: Paths,
    keys: KeyStore,
    embedder: Embedder,
    stack: AsyncExitStack,
) -> Memory:
    """Open memory as the settings say; `stack` closes it. Nothing runs before `Memory.start`."""
    pool = HttpPool(lambda: settings.values.ca_file)
    stack.push_async_callback(pool.close)
    kind = embedder.kind or ENGLISH
    vectors, problem = await _store_of_vectors(database, settings, paths, keys, kind)
    download = ModelDownload(
        lambda: settings.values.embedding_folder,
        paths,
        pool,
        lambda: hub_source(settings.values.model_hub, lambda: pip_indexes(keys.environments)),
        may_offer=lambda: settings.values.offer_embedding_model,
        has_simple_model=embedder.has_simple_model,
    )
    semantics = Semantics(embedder, vectors)
    memory = Memory(database, log, settings, paths, keys.redactor, semantics, kind, download, problem)
    stack.push_async_callback(memory.close)
    return memory


async def _store_of_vectors(
    database: Database, settings: Settings, paths: Paths, keys: KeyStore, kind: ModelKind
) -> tuple[VectorStore, str]:
    """Return the store that the settings name, and why it is another one; each database has its own collection."""
    made_by = vectors_of(kind)
    here = EmbeddedVectors(paths.memory / "vectors", kind.dimensions, made_by)
    server = settings.values.vector_server
    if not server:
        return here, ""
    key = await keys.get("qdrant", ("QDRANT_API_KEY",))
    secret, collection = key.value if key is not None else "", f"errand_{database.epoch}"
    try:
        store = ServerVectors(
            server,
            kind.dimensions,
            made_by,
            api_key=secret,
            collection=collection,
            ca_file=lambda: settings.values.ca_file,
        )
    except ConfigurationError as error:
        return (
            here,
            f"The vectors are kept on this machine, because the setting “Vector server” cannot be used: {error}",
        )
    # Nothing would remove forgotten entries from what this machine kept before.
    await asyncio.to_thread(shutil.rmtree, paths.memory / "vectors", ignore_errors=True)
    return store, ""


def _has_other_languages(index: WordIndex) -> bool:
    """Return True if a third of what the person wrote of late is not English."""
    texts = [row.entry.text for row in index.select("role = 'user' ORDER BY number DESC LIMIT ?", (_NEWEST_TEXTS,))]
    return len(texts) > 1 and 3 * sum(not is_english(text) for text in texts) >= len(texts)


def _failure(counts: Mapping[str, int]) -> str:
    if not (failed := counts.get("failed", 0)):
        return ""
    return (
        f"The embedding model failed on {failed:,} {'entries' if failed > 1 else 'entry'}, found by words alone now. "
        "Download the model again, then rebuild memory."
    )


def _sizes(folder: Path) -> tuple[int, int]:
    """Return the bytes of the index of words, and of the vectors."""
    index_bytes = sum(_size(file) for file in folder.glob("memory.db*"))
    inside = (Path(folder_path, name) for folder_path, _, names in os.walk(folder / "vectors") for name in names)
    return index_bytes, sum(map(_size, inside))


def _size(file: Path) -> int:
    """Return the bytes that a file takes on the disk: files of vectors are sparse."""
    try:
        status = file.lstat()
    except OSError:
        return 0
    if not stat.S_ISREG(status.st_mode):
        return 0
    return status.st_size if sys.platform == "win32" else status.st_blocks * 512

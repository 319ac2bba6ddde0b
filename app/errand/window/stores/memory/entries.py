"""Memory: its entries as they are found or listed, its state, and the folders that are left out of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from errand.client.memory_editing import replace_entries
from errand.client.memory_export import export_memory, form_of
from errand.client.texts.embedding_model import finds_meanings
from errand.client.texts.forgetting import NOTHING_CHANGED
from errand.protocol.memory import (
    MEMORY_FORGET,
    MEMORY_GET,
    MEMORY_LIST,
    MEMORY_LOG,
    MEMORY_MODEL,
    MEMORY_PREVIEW_FORGET,
    MEMORY_PRUNE,
    MEMORY_REBUILD,
    MEMORY_SEARCH,
    MEMORY_STATS,
    MemoryFilter,
    MemoryForgetParams,
    MemoryForgetResult,
    MemoryGetParams,
    MemoryItem,
    MemoryListParams,
    MemoryLogEntry,
    MemoryLogParams,
    MemoryModelParams,
    MemoryPinParams,
    MemoryPreviewForgetParams,
    MemoryPruneParams,
    MemoryRebuildParams,
    MemorySearchParams,
    MemoryStatsParams,
    MemoryStatsResult,
)
from errand.protocol.settings import SETTINGS_GET, SETTINGS_SET, Setting, SettingsGetParams, SettingsSetParams
from errand.protocol.tasks.task import Task
from errand.text.printable import reason
from errand.text.translation import tr
from errand.window.stores.session import EngineSession
from errand.window.stores.tasks import TaskStore

_PAGE = 100
_MAX_HITS = 100  # the engine's maximum
_LOG_PAGE = 20
_POLL_MS = 1000
_NOT_REMEMBERED, _NOT_RECALLED = "not_remembered_folders", "not_recalled_folders"
_AFTER_TASK_MS = 500


class ForgetStore(QObject):
    """Removes the texts of nodes for good. All but `failed` give their ids first.

    Emits `previewed` with a `MemoryPreviewForgetResult`, and `forgotten` with a `MemoryForgetResult`; `replaced` as
    well if a fact stands in their place.
    """

    previewed = Signal(object, object)
    forgotten = Signal(object, object)
    replaced = Signal(object, object)
    failed = Signal(str)

    def __init__(self, session: EngineSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session

    def preview(self, node_ids: tuple[str, ...]) -> None:
        """Ask what would go."""
        self._session.spawn(self._preview(node_ids), self.failed.emit)

    def forget(self, node_ids: tuple[str, ...]) -> None:
        self._session.spawn(self._forget(node_ids), self.failed.emit)

    def replace(self, node_ids: tuple[str, ...], draft: MemoryPinParams) -> None:
        """Pin a fact in the place of entries, and forget their nodes; both or nothing."""
        self._session.spawn(self._replace(node_ids, draft), self.failed.emit)

    async def _preview(self, node_ids: tuple[str, ...]) -> None:
        params = MemoryPreviewForgetParams(node_ids=node_ids)
        self.previewed.emit(node_ids, await self._session.call(MEMORY_PREVIEW_FORGET, params))

    async def _forget(self, node_ids: tuple[str, ...]) -> None:
        params = MemoryForgetParams(node_ids=node_ids)
        self.forgotten.emit(node_ids, await self._session.call(MEMORY_FORGET, params))

    async def _replace(self, node_ids: tuple[str, ...], draft: MemoryPinParams) -> None:
        replaced = await replace_entries(self._session, node_ids, draft)
        if replaced is None:
            self.failed.emit(NOTHING_CHANGED)
        else:
            self.forgotten.emit(node_ids, replaced[1])
            self.replaced.emit(node_ids, replaced[1])


class MemoryEntryStore(QObject):
    """Without words the newest entries, page by page; with words the best hits, best first.

    Emits `reset` when all entries are new, `inserted(first, count)` for another page, `removed(index)` for one that
    was forgotten with `forgetting`, and `opened` with whole entries.
    """

    reset = Signal()
    inserted = Signal(int, int)
    removed = Signal(int)
    opened = Signal(object)
    failed = Signal(str)

    def __init__(self, session: EngineSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.forgetting = ForgetStore(session, self)
        self.forgetting.forgotten.connect(self._on_forgotten)
        self._entries: list[MemoryItem] = []
        self._number = 0  # of the newest search: answers to older ones are dropped
        self._opening: tuple[int, ...] = ()
        self._is_fetching = False
        self.text = ""
        self.where = MemoryFilter()
        self.has_more = False
        self.is_searching = False
        self.remark = ""

    def count(self) -> int:
        return len(self._entries)

    def at(self, index: int) -> MemoryItem:
        return self._entries[index]

    @property
    def is_filtered(self) -> bool:
        return bool(self.text) or self.where != MemoryFilter()

    def search(self, text: str, where: MemoryFilter) -> None:
        """Show what fits the words and the filter. The entries before stay until the answer is here."""
        self.text, self.where = text, where
        self.reload()

    def reload(self) -> None:
        self._number += 1
        self.is_searching = True
        self._is_fetching = False
        self._session.spawn(self._load(self._number), self._on_failed)

    def fetch_more(self) -> None:
        """Load the next page of the list; hits have none."""
        if self.has_more and not self._is_fetching and not self.is_searching:
            self._is_fetching = True
            self._session.spawn(self._fetch(self._number), self._on_failed)

    def open(self, numbers: tuple[int, ...]) -> None:
        """Get the whole texts of entries."""
        self._opening = numbers
        self._session.spawn(self._get(numbers), self.failed.emit)

    async def _load(self, number: int) -> None:
        remark, has_more = "", False
        if self.text:
            params = MemorySearchParams(text=self.text, where=self.where, limit=_MAX_HITS)
            search = await self._session.call(MEMORY_SEARCH, params)
            entries, remark = search.hits, search.remark
        else:
            page = await self._session.call(MEMORY_LIST, MemoryListParams(where=self.where, limit=_PAGE))
            entries, has_more = page.items, page.has_more
        if number == self._number:
            self._entries, self.remark, self.has_more = list(entries), remark, has_more
            self.is_searching = False
            self.reset.emit()

    async def _fetch(self, number: int) -> None:
        last = self._entries[-1].number if self._entries else None
        params = MemoryListParams(where=self.where, limit=_PAGE, before_number=last)
        page = await self._session.call(MEMORY_LIST, params)
        if number != self._number:
            return
        self._is_fetching = False
        self.has_more = page.has_more
        first = len(self._entries)
        self._entries += page.items
        if page.items:
            self.inserted.emit(first, len(page.items))

    async def _get(self, numbers: tuple[int, ...]) -> None:
        items: list[MemoryItem] = []
        for number in numbers:
            items.append((await self._session.call(MEMORY_GET, MemoryGetParams(number=number))).item)
            if numbers != self._opening:
                return
        self.opened.emit(tuple(items))

    def _on_forgotten(self, node_ids: tuple[str, ...], gone: MemoryForgetResult) -> None:
        gone_here = [index for index, entry in enumerate(self._entries) if entry.node_id in node_ids]
        for index in reversed(gone_here):
            del self._entries[index]
            self.removed.emit(index)
        if gone.entries > len(gone_here):
            self.reload()  # others went with it

    def _on_failed(self, text: str) -> None:
        self.is_searching = False
        self._is_fetching = False
        self.failed.emit(text)


class MemoryStateStore(QObject):
    """Numbers, the model and the audit. While it is open it asks the engine each second as long as something moves.

    `stats` is None until the engine has answered. `pruned` gives the `MemoryPruneResult`, `exported` how many
    entries are in the file.
    """

    changed = Signal()
    log_changed = Signal()
    pruned = Signal(object)
    exported = Signal(int, str)
    rebuilding = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, tasks: TaskStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._is_open = False
        self.stats: MemoryStatsResult | None = None
        self.log: tuple[MemoryLogEntry, ...] = ()
        self.has_older_log = False
        self._poll = QTimer(self)
        self._poll.setSingleShot(True)
        self._poll.timeout.connect(self._load_stats)
        tasks.taskUpdate.connect(self._on_task)
        session.state_changed.connect(self._on_state_changed)

    @property
    def is_moving(self) -> bool:
        """True while entries are indexed, vectors are removed or the model is downloaded."""
        stats = self.stats
        if stats is None:
            return False
        is_embedding = stats.to_embed > 0 and finds_meanings(stats.model)
        return stats.to_index > 0 or stats.to_remove > 0 or is_embedding or stats.model.status == "downloading"

    def open(self) -> None:
        """Load now, while something moves, and after each reconnect."""
        self._is_open = True
        self.load()

    def close(self) -> None:
        self._is_open = False
        self._poll.stop()

    def load(self) -> None:
        self._load_stats()
        self._session.spawn(self._load_log(), self.failed.emit)

    def load_older_log(self) -> None:
        if self.log:
            self._session.spawn(self._load_log(self.log[-1].number), self.failed.emit)

    def download(self, wanted: bool) -> None:
        """Start or resume the download of the model, or cancel it."""
        self._session.spawn(self._download(wanted), self.failed.emit)

    def rebuild(self) -> None:
        self._session.spawn(self._rebuild(), self.failed.emit)

    def prune(self, params: MemoryPruneParams) -> None:
        self._session.spawn(self._prune(params), self.failed.emit)

    def export(self, path: str) -> None:
        """Write all of memory into a file: Markdown for `.md`, else JSON lines. Replaces an existing file."""
        self._session.spawn(self._export(path), self.failed.emit)

    def _load_stats(self) -> None:
        self._session.spawn(self._read_stats(), self.failed.emit)

    async def _read_stats(self) -> None:
        self.stats = await self._session.call(MEMORY_STATS, MemoryStatsParams())
        self.changed.emit()
        if self._is_open and self.is_moving:
            self._poll.start(_POLL_MS)

    async def _load_log(self, before: int | None = None) -> None:
        page = await self._session.call(MEMORY_LOG, MemoryLogParams(before_number=before, limit=_LOG_PAGE))
        self.log = page.entries if before is None else (*self.log, *page.entries)
        self.has_older_log = page.has_more
        self.log_changed.emit()

    async def _download(self, wanted: bool) -> None:
        await self._session.call(MEMORY_MODEL, MemoryModelParams(action="download" if wanted else "cancel"))
        await self._read_stats()

    async def _rebuild(self) -> None:
        await self._session.call(MEMORY_REBUILD, MemoryRebuildParams())
        self.rebuilding.emit()
        await self._read_stats()
        await self._load_log()

    async def _export(self, path: str) -> None:
        try:
            count = await export_memory(self._session, Path(path), form_of(path), overwrite=True)
        except OSError as error:
            self.failed.emit(tr("{file} cannot be written: {reason}").format(file=path, reason=reason(error)))
        else:
            self.exported.emit(count, path)

    async def _prune(self, params: MemoryPruneParams) -> None:
        gone = await self._session.call(MEMORY_PRUNE, params)
        self.pruned.emit(gone)
        await self._read_stats()
        await self._load_log()

    def _on_task(self, task: Task) -> None:
        if self._is_open and task.outcome.ended_at is not None and not self._poll.isActive():
            self._poll.start(_AFTER_TASK_MS)

    def _on_state_changed(self) -> None:
        if self._is_open and self._session.state == "ready":
            self.load()


@dataclass(frozen=True, slots=True)
class LeftOutFolder:
    """A folder as it is written in the settings, and whether its conversations are remembered and recalled to."""

    path: str
    remembers: bool
    recalls: bool


class LeftOutStore(QObject):
    """The folders that memory leaves out: two settings of the engine, each a list with semicolons.

    `changed` is emitted after every answer.
    """

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._lists: dict[str, tuple[str, ...]] = {}
        self._is_changing = False  # a second click while the engine works on the first does nothing

    @property
    def folders(self) -> tuple[LeftOutFolder, ...]:
        unknown, unserved = (self._lists.get(name, ()) for name in (_NOT_REMEMBERED, _NOT_RECALLED))
        paths = dict.fromkeys((*unknown, *unserved))
        return tuple(LeftOutFolder(path, path not in unknown, path not in unserved) for path in paths)

    def load(self) -> None:
        self._session.spawn(self._load(), self.failed.emit)

    def leave_out(self, path: str) -> None:
        """Nothing of it is remembered or recalled there."""
        self._change(lambda paths: (*paths, *(() if path in paths else (path,))))

    def take_back(self, path: str) -> None:
        self._change(lambda paths: tuple(kept_path for kept_path in paths if kept_path != path))

    def _change(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        if not self._is_changing:
            self._is_changing = True
            self._session.spawn(self._set(change), self.failed.emit)

    async def _load(self) -> None:
        self._put((await self._session.call(SETTINGS_GET, SettingsGetParams())).settings)

    async def _set(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        try:
            await self._load()
            for name in (_NOT_REMEMBERED, _NOT_RECALLED):
                before = self._lists.get(name, ())
                if (after := change(before)) != before:
                    params = SettingsSetParams(name=name, value="; ".join(after))
                    self._put((await self._session.call(SETTINGS_SET, params)).settings)
        finally:
            self._is_changing = False

    def _put(self, settings: tuple[Setting, ...]) -> None:
        for setting in settings:
            if setting.name in (_NOT_REMEMBERED, _NOT_RECALLED) and isinstance(setting.value, str):
                parts = re.split(r"[\n;]", setting.value)
                self._lists[setting.name] = tuple(part.strip() for part in parts if part.strip())
        self.changed.emit()

"""Answers requests to memory: a search, the recall for a message, a list, a single entry."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.settings import Settings
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import IndexedEntry, WordIndex, sql_condition
from errand.engine.memory.index_thread import IndexThread, IndexUnavailable
from errand.engine.memory.model_download import ModelDownload
from errand.engine.memory.passages import start_of
from errand.engine.memory.ranking.copies import newest_of_each
from errand.engine.memory.ranking.question import Question, read_question
from errand.engine.memory.recall.excerpts import excerpt, within
from errand.engine.memory.recall.folders import FolderSharing, FolderView
from errand.engine.memory.recall.message import ParsedMessage, parse_message
from errand.engine.memory.recall.relevance import Nearest, Relevant, quoted_last, relevant_entries
from errand.engine.memory.rules import MemoryRules
from errand.engine.memory.search import MemorySearch, SearchOutcome
from errand.engine.memory.vectors.base import VectorFilter
from errand.engine.storage.records.conversations import ConversationStore
from errand.protocol.blocks import RecalledEntry
from errand.protocol.memory import (
    MemoryFilter,
    MemoryItem,
    MemoryListParams,
    MemoryListResult,
    MemorySearchParams,
    MemorySearchResult,
)

# The text of an item in a list.
_MAX_EXCERPT_LENGTH = 600
# The text of an entry that an agent is given.
_MAX_RECALLED_LENGTH = 700
# How many entries an agent gets with a message, and how long it may wait for them.
RECALLED = 10
_PATIENCE_S = 1.0
_CHARACTERS_A_TOKEN = 4
# Hits that `skip` drops are replaced by others.
_SPARE = 40
_MAX_PAGE_ITEMS = 100


class MemoryReader:
    """The reader of entries of existing, remembered conversations, without keys that became known meanwhile."""

    def __init__(
        self,
        index: IndexThread,
        search: MemorySearch,
        download: ModelDownload,
        conversations: ConversationStore,
        rules: MemoryRules,
        settings: Settings,
        redact: Callable[[str], str],
        progress: Callable[[], Awaitable[str]],
        sharing: FolderSharing,
    ) -> None:
        """`progress` says in words which part of the indexes is made, empty once they are complete."""
        self._progress = progress
        self._index = index
        self._search = search
        self._download = download
        self._conversations = conversations
        self._rules = rules
        self._settings = settings
        self._redact = redact
        self._sharing = sharing
        self.may_recall = rules.may_recall
        self.remembers = rules.remembers
        self.note_asked = sharing.note_asked

    async def search(
        self,
        params: MemorySearchParams,
        cancel: CancelSignal,
        skip: Callable[[MemoryItem], bool] = lambda item: False,
        not_folders: tuple[str, ...] = (),
    ) -> MemorySearchResult:
        """Return the hits that are not in `not_folders` and that `skip` does not reject; it gets items without text."""
        if not 1 <= params.limit <= _MAX_PAGE_ITEMS:
            raise InvalidParams(f"limit: {params.limit}; from 1 to {_MAX_PAGE_ITEMS}.")
        question = read_question(params.text, _today())
        remark, by_meaning = self._model_remark(), self._has_meanings()
        await self._note_if_missed(None)
        where = vector_filter(params.where, self._redact)
        if not_folders:
            where = replace(where or VectorFilter(), not_folders=not_folders)
        outcome = await self._search.find(question, params.limit + _SPARE, cancel, where, by_meaning=by_meaning)
        hits = await self._hits(outcome, question, params.limit, skip, where)
        remarks = (remark, outcome.remark, await self._progress())
        return MemorySearchResult(hits=hits, remark=" ".join(filter(None, remarks)))

    async def recall(
        self,
        message: str,
        cancel: CancelSignal,
        without: tuple[str, ...],
        skip: Callable[[MemoryItem], bool],
        max_tokens: int | None = None,
        not_folders: tuple[str, ...] = (),
    ) -> tuple[RecalledEntry, ...]:
        """Return the entries that bear on a message, best first, within the budget of the settings.

        `max_tokens` may lower it. Entries of the conversations `without`, of `not_folders` and those that `skip`
        rejects are left out. Waits a second for the model, and two in all.
        """
        tokens = self._settings.values.recall_tokens
        budget = (tokens if max_tokens is None else min(tokens, max_tokens)) * _CHARACTERS_A_TOKEN
        parsed = parse_message(message)
        if not budget or not parsed.terms:
            return ()
        where = VectorFilter(not_conversations=without, not_folders=not_folders) if without or not_folders else None
        try:
            await self._note_if_missed(where)
            async with asyncio.timeout(2 * _PATIENCE_S):
                if not await self._index.read(WordIndex.last_number):
                    return ()  # a model that is not loaded yet would hold the message up
                nearest = await self._nearest(parsed, cancel, where)
                relevant = await self._index.read(partial(relevant_entries, parsed, nearest, where))
                once = newest_of_each(quoted_last(relevant), lambda entry: entry.indexed)
                entries = await self._recalled(once, parsed, skip)
        except TimeoutError:  # the index is being made compact, or the machine is very busy
            return ()
        return within(entries, budget)

    async def folders(self) -> tuple[str, ...]:
        """Return all folders of which there are entries, without keys."""
        return await self._index.read(WordIndex.folders)

    async def seen_from(self, workspace: str) -> FolderView:
        """Return what agents in a folder may be given of other folders. Folders of entries are without keys."""
        return await self._sharing.seen_from(self._redact(workspace))

    def is_given(self, node_id: str) -> bool:
        """Return False for the entry of a node that a person does not want agents to be given again."""
        return node_id not in self._settings.values.not_given_again

    async def _nearest(self, message: ParsedMessage, cancel: CancelSignal, where: VectorFilter | None) -> Nearest:
        if not self._has_meanings():
            return Nearest()
        of_message, *clauses = await self._search.nearest(message.parts, cancel, where, _PATIENCE_S)
        return Nearest(of_message, tuple(clauses), self._search.is_simple)

    async def _recalled(
        self, relevant: Sequence[Relevant], message: ParsedMessage, skip: Callable[[MemoryItem], bool]
    ) -> tuple[RecalledEntry, ...]:
        by_number = {entry.indexed.entry.number: entry for entry in relevant}

        def show(entry: MemoryEntry) -> str:
            return recalled_text(by_number[entry.number], entry.text, message)

        items = await self._items([entry.indexed for entry in relevant], RECALLED, show, skip)
        return tuple(_recalled_entry(item, by_number[item.number]) for item in items)

    async def warm_up(self) -> None:
        """Load the model and the vectors, if there is a model and recall is on. Both end after a while."""
        if self._settings.values.recall_tokens and self._has_meanings():
            with suppress(IndexUnavailable):
                if await self._index.read(WordIndex.last_number):
                    await self._search.find(read_question(""), 1, CancelSignal())

    async def page(self, params: MemoryListParams) -> MemoryListResult:
        """Return the newest entries before a number, at least one if there is any."""
        while True:
            page, last = await self._page(params)
            if page.items or last is None or not page.has_more:
                return page
            params = msgspec.structs.replace(params, before_number=last)  # all are about to leave the index

    async def _page(self, params: MemoryListParams) -> tuple[MemoryListResult, int | None]:
        """Return the next entries, without those that are about to leave the index, and the last number read."""
        condition, values = sql_condition(vector_filter(params.where, self._redact))
        if params.before_number is not None:
            condition = f"{condition} AND number < ?" if condition else "number < ?"
            values = [*values, params.before_number]
        query = f"{condition or 'true'} ORDER BY number DESC LIMIT ?"
        entries = await self._index.read(lambda index: index.select(query, (*values, params.limit + 1)))
        page = entries[: params.limit]
        items = await self._items(page, len(page), lambda entry: entry.text[:_MAX_EXCERPT_LENGTH])
        last = page[-1].entry.number if page else None
        return MemoryListResult(items=items, has_more=len(entries) > params.limit), last

    async def get(self, number: int) -> MemoryItem:
        """Return the entry with its full text. Raises `NotFound`."""
        entries = await self._index.read(lambda index: index.entries((number,)))
        items = await self._items(entries, 1, lambda entry: entry.text)
        if not items:
            raise NotFound(f"There is no entry {number} in memory. It may have been deleted, or indexed anew.")
        return items[0]

    def _has_meanings(self) -> bool:
        """Return True if there is a model, so that meanings can be searched too."""
        model = self._download.model()
        return model.has_simple or (model.status == "ready" and not model.reason)

    def _model_remark(self) -> str:
        """Return what a search lacks of the model; empty with it, and where a simple one serves before it is wanted."""
        model = self._download.model()
        if model.status == "ready" and not model.reason:
            return ""
        if model.has_simple:
            return f"Meanings were searched by the simple model. {model.reason}" if model.reason else ""
        if model.status == "downloading":
            share = f"{100 * model.done / model.total:.0f} %" if model.total else "0 %"
            return f"Only words were searched: the embedding model is downloaded ({share})."
        missing = "The embedding model is not downloaded yet (errand memory download)."
        return f"Only words were searched. {model.reason or missing}"

    async def _note_if_missed(self, where: VectorFilter | None) -> None:
        """Note that there was something to find by its meaning, if the person may be asked about the model."""
        if not self._download.may_be_offered:
            return
        condition, values = sql_condition(where)
        query = f"{condition or 'true'} LIMIT 1"
        if await self._index.read(lambda index: index.select(query, values)):
            self._download.miss()

    async def _hits(
        self,
        outcome: SearchOutcome,
        question: Question,
        limit: int,
        skip: Callable[[MemoryItem], bool],
        where: VectorFilter | None,
    ) -> tuple[MemoryItem, ...]:
        """Return the hits with the part of each text that fits the question best, and how often it is there."""

        def show(entry: MemoryEntry) -> str:
            nearest = outcome.passages.get(entry.number, 0)
            return excerpt(
                entry.text, question.terms, _MAX_EXCERPT_LENGTH, start_of(entry.text, nearest) if nearest else 0
            )

        candidates = {candidate.entry.entry.number: candidate for candidate in outcome.candidates}
        items = await self._items([candidate.entry for candidate in outcome.candidates], limit, show, skip)
        texts = {text for item in items for text in candidates[item.number].all_texts}
        counts = await self._index.read(lambda index: index.count_texts(texts, where)) if texts else {}
        return tuple(
            msgspec.structs.replace(
                item,
                score=round(candidates[item.number].score, 4),
                times=max(1, sum(counts.get(text, 0) for text in candidates[item.number].all_texts)),
                newer=candidates[item.number].newer,
            )
            for item in items
        )

    async def _items(
        self,
        entries: Sequence[IndexedEntry],
        limit: int,
        show: Callable[[MemoryEntry], str],
        skip: Callable[[MemoryItem], bool] = lambda item: False,
    ) -> tuple[MemoryItem, ...]:
        """Return the first entries that are not skipped. `show` returns the part of a text to show."""
        titles = await self._titles({indexed.entry.conversation_id for indexed in entries})
        visible: list[tuple[MemoryItem, MemoryEntry]] = []
        for indexed in entries:
            if len(visible) == limit:
                break
            entry = indexed.entry
            if entry.conversation_id not in titles or not self._rules.remembers_folder(entry.folder):
                continue
            item = _item(indexed, titles)
            if not skip(item):
                visible.append((item, entry))

        def complete() -> tuple[MemoryItem, ...]:
            return tuple(self._with_text(item, entry, show) for item, entry in visible)

        return await asyncio.to_thread(complete) if visible else ()

    def _with_text(self, item: MemoryItem, entry: MemoryEntry, show: Callable[[MemoryEntry], str]) -> MemoryItem:
        """Return the item without keys. They are removed before the text is cut: part of a key has no format."""
        text = show(replace(entry, text=self._redact(entry.text)))
        speaker, folder = self._redact(item.speaker), self._redact(item.folder)
        return msgspec.structs.replace(item, text=text, speaker=speaker, folder=folder)

    async def _titles(self, conversation_ids: Collection[str]) -> dict[str, str]:
        """Return the titles of the conversations that are remembered."""
        conversations = await self._conversations.named(conversation_ids)
        return {
            conversation.id: conversation.title for conversation in conversations if self._rules.remembers(conversation)
        }


def given_entries(relevant: Iterable[Relevant]) -> list[Relevant]:
    """Return the best, those last that quote pages, files and programs."""
    return quoted_last(list(relevant)[:RECALLED])


def recalled_text(relevant: Relevant, text: str, message: ParsedMessage) -> str:
    """Return the part of a long text that bears on the message: around its words, or the passage of near meaning."""
    if relevant.reason == "words":
        return excerpt(text, relevant.shared, _MAX_RECALLED_LENGTH)
    if relevant.passage is not None:
        return excerpt(text, (), _MAX_RECALLED_LENGTH, start_of(text, relevant.passage))
    return excerpt(text, (*message.terms, *relevant.shared), _MAX_RECALLED_LENGTH)


def _recalled_entry(item: MemoryItem, relevant: Relevant) -> RecalledEntry:
    return RecalledEntry(
        conversation_id=item.conversation_id,
        conversation_title=item.conversation_title,
        node_id=item.node_id,
        role=item.role,
        speaker=item.speaker,
        at=item.at,
        text=item.text,
        score=round(relevant.score, 4),
        folder=item.folder,
        reason=relevant.reason,
        words=relevant.shared,
    )


def vector_filter(where: MemoryFilter, redact: Callable[[str], str]) -> VectorFilter | None:
    """Return the filter with the names of folders as `entry_of` stores them, without keys."""
    if where == MemoryFilter():
        return None
    return VectorFilter(
        conversations=where.conversation_ids,
        folders=tuple(map(redact, where.folders)),
        kinds=where.roles,
        after=where.after.timestamp() if where.after is not None else None,
        before=where.before.timestamp() if where.before is not None else None,
    )


def _today() -> date:
    return datetime.now().astimezone().date()


def _item(indexed: IndexedEntry, titles: Mapping[str, str]) -> MemoryItem:
    """Return the item without its text."""
    entry = indexed.entry
    return MemoryItem(
        number=entry.number,
        node_id=entry.id,
        conversation_id=entry.conversation_id,
        conversation_title=titles[entry.conversation_id],
        role=entry.role,
        speaker=entry.speaker,
        at=entry.at,
        text="",
        length=len(entry.text),
        folder=entry.folder,
        has_vector=indexed.has_vector,
    )

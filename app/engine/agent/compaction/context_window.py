"""Keeps each request within the context window: warns, summarises, then truncates.

Learns the limit when a provider refuses a request.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.engine.agent.compaction.summary import CallRecord, Summarizer, SummaryFailed, SummaryInput, summary_input
from app.engine.agent.compaction.token_estimate import TokenEstimate, request_sizes
from app.engine.agent.compaction.truncation import Truncation, truncate
from app.engine.agent.history.attachments import load_images
from app.engine.agent.history.branch import BranchWriter
from app.engine.agent.history.visible_history import (
    SummaryMessage,
    ToModelMessages,
    VisibleHistory,
    length_of,
    recent_path,
    visible_history,
)
from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import EngineError
from app.engine.core.messages import ModelMessage
from app.engine.models.base import ModelRequest, ReplyEnd
from app.engine.models.failures import FailureKind
from app.engine.storage.database import Database

LEFT_OUT = "left out of what the model reads, because it is full"
# The warning comes this share of the window before the summary.
_WARNED_BEFORE = 0.1
# Shares of the window: kept verbatim, the least worth the cost of a summary, and the level that counts as full.
_NEWEST, _WORTH, _FULL = 0.25, 0.125, 0.95
# Target after truncation. Low, since each truncation invalidates the provider's cache.
_AFTER_LEAVING_OUT = 0.5
# Estimates can be wrong by half: refuse only requests that cannot fit; the provider, which counts exactly, decides the
# rest.
_CANNOT_FIT = 2.0
# If a provider refuses a request as too long, assume that it can read this share of it.
_LEARNT = 0.75


@dataclass(frozen=True, slots=True)
class ContextWindowOptions:
    """`window_of`: context window by model id. `share` of it triggers a summary (0: never). `heard`: the converter."""

    window_of: Callable[[str], int | None]
    share: float
    heard: ToModelMessages


class ContextWindow:
    """The context window of one task. `tell` adds a warning to the conversation."""

    def __init__(
        self,
        branch: BranchWriter,
        record: CallRecord,
        summaries: Summarizer,
        database: Database,
        known: ContextWindowOptions,
        tell: Callable[[str], None],
    ) -> None:
        self._branch = branch
        self._record = record
        self._summaries = summaries
        self._database = database
        self._known = known
        self._tell = tell
        self._measure: TokenEstimate | None = None
        self._learnt: int | None = None
        self._is_refused = False
        self._is_stale = False
        self._before = 0
        self._tries = True
        self._left_out: frozenset[str] = frozenset()
        self._kept: tuple[str, ...] = ()
        self._replaced = 0
        self._instead: tuple[ModelMessage, ...] = ()

    async def fit(self, whole: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """The request to send. Raises `EngineError` if it does not fit after leaving out everything that may be."""
        if self._measure is None:
            self._measure = await self._counted(whole.model)
            self._before = self._measure.tokens
            self._kept = await self._kept_now()
        self._is_refused = False
        if self._is_stale or await self._is_kept_otherwise(whole):
            self._is_stale = False
            await self._take(await self._reach(), whole)
        request, window = self._current(whole), self._window(whole.model)
        if window is None:
            return request
        tokens = self._tokens(request)
        if tokens >= (self._known.share or _FULL) * window:
            request = await self._smaller(whole, window, cancel)
            tokens = self._tokens(request)
        elif self._before < (self._known.share - _WARNED_BEFORE) * window <= tokens:
            share = f"{tokens / window:.0%}".replace("%", " %")
            self._tell(f"About {share} of what the model can read is used; soon the older part will be summarised.")
        self._before = tokens
        return request

    async def after_reply(
        self, whole: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ModelRequest | None:
        """Learn from how a call ended; returns a shorter request if the provider refused this one as too long."""
        assert self._measure is not None, "it was fitted"
        counted = end.message.usage.input_tokens
        if counted:
            self._measure = TokenEstimate(_characters(sent), counted)
            self._before = counted
        if end.failure is not FailureKind.TOO_LONG or self._is_refused or cancel.is_set:
            return None
        self._is_refused = True
        self._record.refused(end.message)
        shorter = await self._smaller(whole, self._learn(sent), cancel)
        return shorter if _characters(shorter) < _characters(sent) else None

    def _learn(self, refused: ModelRequest) -> int:
        """A new estimate of the window: smaller than this request, unless the token estimate was too low."""
        window = self._window(refused.model)
        if window is not None and self._measure == TokenEstimate():
            self._measure = TokenEstimate(_characters(refused), window)
            return window
        self._learnt = round(_LEARNT * min(self._tokens(refused), window or self._tokens(refused)))
        return self._learnt

    async def summarise(self, model: str, cancel: CancelSignal) -> str | None:
        """Summarise on a user's request. Returns the reason if no summary was made."""
        reach = await self._reach()
        older = await self._older(reach, None)
        if not older.nodes:
            return "There is nothing to summarise yet."
        self._measure = await self._counted(model)
        made = await self._summaries.make(older, model, self._window(model), self._measure, cancel)
        self._is_stale = True
        return f"No summary was made: {made.why}" if isinstance(made, SummaryFailed) else None

    async def _smaller(self, whole: ModelRequest, window: int, cancel: CancelSignal) -> ModelRequest:
        reach = await self._reach()
        if self._tries and self._known.share and await self._summarise(reach, whole, window, cancel):
            reach = await self._reach()
            await self._take(reach, whole)
        request = self._current(whole)
        if cancel.is_set or self._tokens(request) < _FULL * window:
            return request
        request = await self._without_oldest(reach, whole, window)
        tokens = self._tokens(request)
        if tokens > _CANNOT_FIT * window:
            release = "take entries out of those that are kept in context, " if self._kept else ""
            raise EngineError(
                f"What has to be sent has about {tokens:,} tokens, and {whole.model} reads {window:,}. "
                f"Nothing more can be left out: {release}choose a model that reads more, or send a shorter message."
            )
        return request

    async def _summarise(self, reach: VisibleHistory, whole: ModelRequest, window: int, cancel: CancelSignal) -> bool:
        """True if a new summary was made. After a permanent failure this task does not try again."""
        assert self._measure is not None, "it was fitted"
        older = await self._older(reach, self._measure.characters_of(_NEWEST * window))
        if not older.nodes or older.characters < self._measure.characters_of(_WORTH * window):
            return False
        made = await self._summaries.make(older, whole.model, window, self._measure, cancel)
        if not isinstance(made, SummaryFailed):
            return True
        self._tries = made.passes
        if not cancel.is_set:
            self._tell(f"The older part could not be summarised: {made.why}")
        return False

    async def _without_oldest(self, reach: VisibleHistory, whole: ModelRequest, window: int) -> ModelRequest:
        assert self._measure is not None, "it was fitted"
        fixed = _characters(replace(whole, messages=replace(reach, rest=()).messages(self._known.heard)))
        room, most = (self._measure.characters_of(share * window) - fixed for share in (_AFTER_LEAVING_OUT, _FULL))
        found = await asyncio.to_thread(truncate, reach, self._kept, room, most)
        if found.left_out - self._left_out or found.shortens:
            self._left_out = found.left_out
            self._tell(_told(sum(node.role != "system" and node.id in found.left_out for node in reach.rest), found))
        await self._take(found.reach, whole)
        return self._current(whole)

    async def _counted(self, model: str) -> TokenEstimate:
        return TokenEstimate(*await self._database.turns.counted(self._branch.position.conversation_id, model))

    async def _older(self, reach: VisibleHistory, most: int | None) -> SummaryInput:
        """All but the newest quarter of the history, or less if that exceeds `most` characters."""

        def part() -> SummaryInput:
            quarter = round(_NEWEST * length_of(reach.rest))
            return summary_input(reach, quarter if most is None else min(most, quarter))

        return await asyncio.to_thread(part)

    async def _reach(self) -> VisibleHistory:
        """The visible history of the branch as stored now."""
        await self._branch.save()
        at = self._branch.position
        assert at.node_id is not None, "a request follows something"
        self._kept = await self._kept_now()
        path = await recent_path(self._database.nodes, at.node_id, self._kept)
        return await asyncio.to_thread(visible_history, path, self._kept)

    async def _is_kept_otherwise(self, whole: ModelRequest) -> bool:
        """True if the kept entries changed and the request contains a summary or has been truncated."""
        sent = self._current(whole).messages
        is_part = bool(self._left_out) or (bool(sent) and isinstance(sent[0], SummaryMessage))
        return is_part and self._kept != await self._kept_now()

    async def _kept_now(self) -> tuple[str, ...]:
        conversation = await self._database.conversations.get(self._branch.position.conversation_id)
        return conversation.kept if conversation is not None else ()

    async def _take(self, reach: VisibleHistory, whole: ModelRequest) -> None:
        """Send this history instead of the messages in `whole` from now on."""
        messages = await asyncio.to_thread(reach.messages, self._known.heard)
        self._instead = tuple(await load_images(messages))
        self._replaced = len(whole.messages)

    def _current(self, whole: ModelRequest) -> ModelRequest:
        return replace(whole, messages=(*self._instead, *whole.messages[self._replaced :]))

    def _tokens(self, request: ModelRequest) -> int:
        assert self._measure is not None, "it was fitted"
        return self._measure.tokens_of(_characters(request))

    def _window(self, model: str) -> int | None:
        return self._learnt or self._known.window_of(model)


def _told(count: int, remainder: Truncation) -> str:
    entries = ["the oldest entry" if count == 1 else f"the oldest {count} entries"] if count else []
    what = [*entries, *(["the middle of the newest result"] if remainder.shortens else [])]
    told = f"{' and '.join(what)} {'is' if len(what) == 1 and count < 2 else 'are'} {LEFT_OUT}."
    return told[0].upper() + told[1:]


def _characters(request: ModelRequest) -> int:
    return sum(part.characters for part in request_sizes(request))

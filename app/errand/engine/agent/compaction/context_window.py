"""Keeps each request within the context window: warns, summarises, then truncates.

Learns the limit when a provider refuses a request.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from errand.engine.agent.compaction.summary import (
    Summarizer,
    SummaryCallRecorder,
    SummaryFailed,
    SummaryInput,
    summary_input,
)
from errand.engine.agent.compaction.token_estimate import TokenEstimate, request_sizes
from errand.engine.agent.compaction.truncation import truncate
from errand.engine.agent.history.attachments import load_images
from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.person_messages import DEFAULT_CHARACTERS, WINDOW_SHARE, is_order, kept_messages
from errand.engine.agent.history.visible_history import (
    SummaryMessage,
    ToModelMessages,
    VisibleHistory,
    length_of,
    recent_path,
    visible_history,
)
from errand.engine.agent.loop.features import Feature, RepeatRequest
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import ModelMessage
from errand.engine.models.base import ModelRequest, ReplyEnd
from errand.engine.models.catalog.providers import served_name
from errand.engine.models.failures import FailureKind
from errand.engine.models.servers.served_models import CUTTING_SERVERS, LARGER_WINDOW, ServerKind
from errand.engine.storage.database import Database
from errand.protocol.notices import ContextNearlyFull, ContextTruncated, NoSummary, NoticeData, TaskFailed

# The warning comes this share of the window before the summary.
_WARNED_BEFORE = 0.1
# Shares of the window: kept verbatim, the least worth the cost of a summary, and the level that counts as full.
_NEWEST, _WORTH, _FULL = 0.25, 0.125, 0.95
# Target after truncation. Low, since each truncation invalidates the provider's cache.
_AFTER_LEAVING_OUT = 0.5
# Estimates can be wrong by half: refuse only requests that cannot fit; the provider, which counts exactly, decides the
# rest.
_CANNOT_FIT = 2.0
# Of the window: instructions and tools that take more leave too little for a conversation.
_LITTLE_ROOM = 0.6
# If a provider refuses a request as too long, assume that it can read this share of it.
_REFUSED_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class ContextWindowOptions:
    """`window_of`: context window by model id. `share` of it triggers a summary (0: never).

    `server_kind` is the kind of server that serves a model, `other` if that is not known.
    """

    window_of: Callable[[str], int | None]
    share: float
    to_messages: ToModelMessages
    server_kind: Callable[[str], ServerKind] = lambda model: "other"


class ContextWindow(Feature):
    """The context window of one task. `tell` adds a warning to the conversation."""

    def __init__(
        self,
        branch: BranchWriter,
        record: SummaryCallRecorder,
        summaries: Summarizer,
        database: Database,
        options: ContextWindowOptions,
        publish: Callable[[NoticeData], None],
    ) -> None:
        self._branch = branch
        self._record = record
        self._summaries = summaries
        self._database = database
        self._options = options
        self._publish = publish
        self._estimate: TokenEstimate | None = None
        self._learnt_window: int | None = None
        self._is_refused = False
        self._shorter: ModelRequest | None = None
        self._is_stale = False
        self._tokens_before = 0
        self._may_summarise = True
        self._left_out: frozenset[str] = frozenset()
        self._kept: tuple[str, ...] = ()
        self._replaced_count = 0
        self._replacement: tuple[ModelMessage, ...] = ()

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """Return the request to send.

        Raises `EngineError` if it does not fit after leaving out everything that may be.
        """
        if self._shorter is not None:
            shorter, self._shorter = self._shorter, None
            return shorter
        return await self._fit(request, cancel)

    async def _fit(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        if self._estimate is None:
            self._estimate = await self._estimate_for(request.model)
            self._tokens_before = self._estimate.tokens
            self._kept = await self._kept_ids()
        self._is_refused = False
        if self._is_stale or await self._has_kept_changed(request):
            self._is_stale = False
            await self._replace_with(await self._visible_history(), request)
        request, window = self._current(request), self._window(request.model)
        if window is None:
            return request
        tokens = self._tokens(request)
        if tokens >= (self._options.share or _FULL) * window:
            request = await self._shrink(request, window, cancel)
            tokens = self._tokens(request)
        elif self._tokens_before < (self._options.share - _WARNED_BEFORE) * window <= tokens:
            self._publish(ContextNearlyFull(share=tokens / window))
        self._tokens_before = tokens
        return request

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd | RepeatRequest:
        """Learn from how a call ended; ask again, shorter, if the provider refused this request as too long."""
        assert self._estimate is not None, "it was fitted"
        counted = end.message.usage.input_tokens
        if counted:
            self._estimate = TokenEstimate(_characters(sent), counted)
            self._tokens_before = counted
        if end.failure is not FailureKind.TOO_LONG or self._is_refused or cancel.is_set:
            return end
        self._is_refused = True
        self._record.refused(end.message)
        window = self._learn(sent, end)
        shorter = await self._shrink(request, window, cancel)
        if _characters(shorter) >= _characters(sent):
            reason = self._lack_of_room(sent, window)
            return replace(end, message=replace(end.message, error=reason)) if reason else end
        self._shorter = shorter
        return RepeatRequest()

    def _learn(self, refused: ModelRequest, end: ReplyEnd) -> int:
        """Return the window that the server named, else a new estimate of it.

        An estimate is smaller than this request, unless the token estimate was too low.
        """
        assert self._estimate is not None, "it was fitted"
        if end.size is not None and self._estimate.tokens <= end.size.window:  # else a longer one was read
            self._learnt_window = end.size.window
            counted = end.size.request or max(end.size.window, self._tokens(refused))
            self._estimate = TokenEstimate(_characters(refused), counted)
            return end.size.window
        window = self._window(refused.model)
        if window is not None and self._estimate == TokenEstimate():
            self._estimate = TokenEstimate(_characters(refused), window)
            return window
        self._learnt_window = round(_REFUSED_SHARE * min(self._tokens(refused), window or self._tokens(refused)))
        return self._learnt_window

    async def summarise(self, model: str, cancel: CancelSignal) -> TaskFailed | None:
        """Summarise on a user's request. Returns the failure if no summary was made."""
        history = await self._visible_history()
        self._estimate = await self._estimate_for(model)
        older = await self._summary_input(history, None, self._person_room(self._window(model)))
        if not older.nodes:
            return TaskFailed(text="There is nothing to summarise yet.", cause="nothing_to_summarise")
        summary = await self._summaries.make(older, model, self._window(model), self._estimate, cancel)
        self._is_stale = True
        return TaskFailed(text=summary.why, cause="summary") if isinstance(summary, SummaryFailed) else None

    async def _shrink(self, request: ModelRequest, window: int, cancel: CancelSignal) -> ModelRequest:
        history = await self._visible_history()
        if self._may_summarise and self._options.share and await self._summarise(history, request, window, cancel):
            history = await self._visible_history()
            await self._replace_with(history, request)
        request = self._current(request)
        if cancel.is_set or self._tokens(request) < _FULL * window:
            return request
        request = await self._truncate(history, request, window)
        tokens = self._tokens(request)
        cannot_fit = 1.0 if self._options.server_kind(request.model) in CUTTING_SERVERS else _CANNOT_FIT
        if tokens > cannot_fit * window:
            raise EngineError(self._lack_of_room(request, window) or self._too_long(request, tokens, window))
        return request

    def _too_long(self, request: ModelRequest, tokens: int, window: int) -> str:
        """Return what to do about a request that does not fit even though everything that may be is left out."""
        release = "take entries out of those that are kept in context, " if self._kept else ""
        return (
            f"What has to be sent has about {tokens:,} tokens, and {request.model} reads {window:,}. "
            f"Nothing more can be left out: {release}choose a model that reads more, or send a shorter message."
        )

    def _lack_of_room(self, request: ModelRequest, window: int) -> str:
        """Return what to do if the instructions and the tools alone take most of the window; empty if they do not."""
        assert self._estimate is not None, "it was fitted"
        sizes = {part.part: part.characters for part in request_sizes(request)}
        fixed = self._estimate.tokens_of(sum(sizes.get(part, 0) for part in ("system", "tools", "services")))
        if fixed < _LITTLE_ROOM * window:
            return ""
        name, larger = served_name(request.model), LARGER_WINDOW[self._options.server_kind(request.model)]
        return (
            f"Instructions and tools take about {fixed:,} of the {window:,} tokens that {name} reads, so no "
            f"conversation fits beside them. Use the minimal set of tools, or {larger}."
        )

    async def _summarise(
        self, history: VisibleHistory, request: ModelRequest, window: int, cancel: CancelSignal
    ) -> bool:
        """Return True if a new summary was made. After a permanent failure this task does not try again."""
        assert self._estimate is not None, "it was fitted"
        most = self._estimate.characters_of(_NEWEST * window)
        older = await self._summary_input(history, most, self._person_room(window))
        if not older.nodes or older.characters < self._estimate.characters_of(_WORTH * window):
            return False
        summary = await self._summaries.make(older, request.model, window, self._estimate, cancel)
        if not isinstance(summary, SummaryFailed):
            return True
        self._may_summarise = summary.is_temporary
        if not cancel.is_set:
            self._publish(NoSummary(reason=summary.why))
        return False

    async def _truncate(self, history: VisibleHistory, request: ModelRequest, window: int) -> ModelRequest:
        assert self._estimate is not None, "it was fitted"
        person_room = self._person_room(window)
        history, person_room = await asyncio.to_thread(_with_person_room, history, self._kept, person_room)
        fixed = _characters(replace(request, messages=replace(history, rest=()).messages(self._options.to_messages)))
        room, most = (self._estimate.characters_of(share * window) - fixed for share in (_AFTER_LEAVING_OUT, _FULL))
        truncation = await asyncio.to_thread(truncate, history, self._kept, room, most, person_room)
        if truncation.left_out - self._left_out or truncation.shortens:
            self._left_out = truncation.left_out
            count = sum(node.role != "system" and node.id in truncation.left_out for node in history.rest)
            self._publish(ContextTruncated(entries=count, shortens_result=truncation.shortens))
        await self._replace_with(truncation.history, request)
        return self._current(request)

    async def _estimate_for(self, model: str) -> TokenEstimate:
        return TokenEstimate(*await self._database.turns.newest_counted(self._branch.position.conversation_id, model))

    def _person_room(self, window: int | None) -> int:
        """Return the characters that the person's older messages may have."""
        assert self._estimate is not None, "it was fitted"
        return DEFAULT_CHARACTERS if window is None else self._estimate.characters_of(WINDOW_SHARE * window)

    async def _summary_input(self, history: VisibleHistory, most: int | None, person_room: int) -> SummaryInput:
        """Return all but the newest quarter of the history, or less if that exceeds `most` characters."""

        def part() -> SummaryInput:
            quarter = round(_NEWEST * length_of(history.rest))
            return summary_input(history, quarter if most is None else min(most, quarter), person_room)

        return await asyncio.to_thread(part)

    async def _visible_history(self) -> VisibleHistory:
        """Return the visible history of the branch as stored now."""
        await self._branch.save()
        at = self._branch.position
        assert at.node_id is not None, "a request follows something"
        self._kept = await self._kept_ids()
        path = await recent_path(self._database.nodes, at.node_id, self._kept)
        return await asyncio.to_thread(visible_history, path, self._kept)

    async def _has_kept_changed(self, request: ModelRequest) -> bool:
        """Return True if the kept entries changed and the request contains a summary or has been truncated."""
        sent = self._current(request).messages
        is_part = bool(self._left_out) or (bool(sent) and isinstance(sent[0], SummaryMessage))
        return is_part and self._kept != await self._kept_ids()

    async def _kept_ids(self) -> tuple[str, ...]:
        conversation = await self._database.conversations.get(self._branch.position.conversation_id)
        return conversation.kept if conversation is not None else ()

    async def _replace_with(self, history: VisibleHistory, request: ModelRequest) -> None:
        """Send this history instead of the messages in `request` from now on."""
        messages = await asyncio.to_thread(history.messages, self._options.to_messages)
        self._replacement = tuple(await load_images(messages))
        self._replaced_count = len(request.messages)

    def _current(self, request: ModelRequest) -> ModelRequest:
        if not self._replaced_count:
            return request
        return replace(request, messages=(*self._replacement, *request.messages[self._replaced_count :]))

    def _tokens(self, request: ModelRequest) -> int:
        assert self._estimate is not None, "it was fitted"
        return self._estimate.tokens_of(_characters(request))

    def _window(self, model: str) -> int | None:
        return self._learnt_window or self._options.window_of(model)


def _with_person_room(history: VisibleHistory, kept: Collection[str], room: int) -> tuple[VisibleHistory, int]:
    """Return the history with the older messages of the person within `room` characters, and what is left of these.

    The summary may have been made for a model that reads more.
    """
    others = [node for node in history.kept_nodes if is_order(node) and node.id not in kept]
    messages = kept_messages(others, room)
    dropped = {node.id for node in others} - messages.keys()
    entries = tuple(messages.get(node.id, node) for node in history.kept_nodes if node.id not in dropped)
    return replace(history, kept_nodes=entries), max(0, room - length_of(messages.values()))


def _characters(request: ModelRequest) -> int:
    return sum(part.characters for part in request_sizes(request))

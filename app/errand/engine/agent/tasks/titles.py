"""Short titles of conversations, made by the model of the setting `title_model` after a task has ended."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from errand.engine.agent.history.shortening import shorten
from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.run.limits import DailyBudget, reached_limit
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.task_target import title_of
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError, NotFound
from errand.engine.core.messages import AssistantMessage, user_text
from errand.engine.core.settings import Settings
from errand.engine.event_log import EventLog
from errand.engine.models.base import BlockDelta, ModelOptions, ModelRequest, ReplyEnd
from errand.engine.models.reply.usage import usage_or_estimate, with_usage
from errand.engine.models.router import ModelRouter
from errand.engine.storage.database import Database
from errand.engine.storage.records import turns
from errand.protocol.conversations import Conversation
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage

_logger = logging.getLogger(__name__)

_LONG_TITLE = 32  # characters; the sidebar shows about as many
_TITLE_TIMEOUT_S = 30.0
_MAX_PROMPT_LENGTH, _MAX_SUMMARY_LENGTH = 4_000, 2_000
_MAX_TOKENS = 2_000  # models that think need more than the title
_BEFORE, _AFTER = "\"'“”„‚‘’«»`*# ", "\"'“”‘’«»`* ."


@dataclass(frozen=True, slots=True)
class _Unnamed:
    """A conversation whose title is still the long beginning of its first message."""

    title: str
    prompt: str


class ConversationTitles:
    """A title that a person or a model gave stays. If anything fails, the first words stay."""

    def __init__(
        self,
        log: EventLog,
        database: Database,
        settings: Settings,
        models: ModelRouter,
        changes: ConversationChanges,
        daily_budget: DailyBudget,
    ) -> None:
        self._log = log
        self._database = database
        self._settings = settings
        self._models = models
        self._changes = changes
        self._daily_budget = daily_budget

    def is_wanted(self, ended: Task) -> bool:
        """False without the setting: then no request is made."""
        is_of_person = ended.origin.parent_id is None and not ended.request.summarises
        return bool(self._model()) and ended.outcome.ended_at is not None and is_of_person

    def _model(self) -> str:
        return self._settings.values.title_model.strip()

    async def shorten(self, ended: Task) -> None:
        """Give the conversation of a task that has ended a short title, if it has a long one."""
        name = self._model()
        conversation = await self._unnamed(ended.conversation_id)
        if conversation is None or reached_limit(await self._daily_budget.uses()) is not None:
            return
        try:
            async with asyncio.timeout(_TITLE_TIMEOUT_S):
                title = await self._ask(name, conversation, ended)
        except (EngineError, TimeoutError) as error:
            _logger.info("no title from %s: %s", name, str(error) or type(error).__name__)
            return
        if title and title != conversation.title:
            await self._rename(ended.conversation_id, conversation, title)

    async def _unnamed(self, conversation_id: str) -> _Unnamed | None:
        await self._log.flush()
        conversation = await self._database.conversations.get(conversation_id)
        if conversation is None or len(conversation.title) <= _LONG_TITLE:
            return None
        every = [
            task
            for task in await self._database.tasks.of_conversation(conversation_id)
            if task.origin.parent_id is None
        ]
        first = min(every, key=lambda task: task.started_at, default=None)
        if first is None or title_of(first.request.prompt, self._database.redact) != conversation.title:
            return None
        return _Unnamed(conversation.title, first.request.prompt)

    async def _rename(self, conversation_id: str, found: _Unnamed, title: str) -> None:
        """Unless somebody renamed it, or removed a text, meanwhile."""
        if await self._unnamed(conversation_id) != found:
            return

        def rename(conversation: Conversation) -> Conversation:
            is_unnamed = conversation.title == found.title
            return msgspec.structs.replace(conversation, title=title) if is_unnamed else conversation

        with suppress(NotFound):
            await self._changes.change(conversation_id, rename)
            await self._log.flush()

    async def _ask(self, name: str, found: _Unnamed, ended: Task) -> str:
        """Return the title; empty if the model gave none."""
        model = self._models.open_alone(name)
        redact = self._database.redact
        outline = f"# First message\n\n{shorten(redact(found.prompt), _MAX_PROMPT_LENGTH)}"
        if ended.outcome.summary:
            outline += f"\n\n# How the work ended\n\n{shorten(redact(ended.outcome.summary), _MAX_SUMMARY_LENGTH)}"
        options = ModelOptions(max_tokens=_MAX_TOKENS)
        request = ModelRequest(name, prompt_text("title"), (user_text(outline),), options=options, purpose="title")
        number = turns.number_beside_turns()
        self._database.journal.put(turns.started(ended.conversation_id, ended.id, number, name, datetime.now(UTC)))
        await self._log.flush()
        reply, is_ended, began = AssistantMessage(stop_reason="aborted"), False, time.monotonic()
        try:
            async with aclosing(model.stream(request, CancelSignal())) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd):
                        reply, is_ended = event.message, True
                    elif isinstance(event, BlockDelta):
                        reply = AssistantMessage(event.partial.content, "aborted")
        finally:
            if not is_ended:
                reply = with_usage(reply, usage_or_estimate(request, reply))
            self._count(ended.id, number, name, reply, time.monotonic() - began)
        if reply.error is not None or reply.stop_reason != "stop":
            _logger.info("no title from %s: %s", name, reply.error or reply.stop_reason)
            return ""
        return _title_in(reply.text, self._database.redact)

    def _count(self, task_id: str, number: int, name: str, reply: AssistantMessage, seconds: float) -> None:
        """The call counts in the usage of its conversation and of its day, not in its task, which has ended."""
        used, outcome = reply.usage, "complete" if reply.error is None else "failed"
        usage = Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_read_tokens=used.cache_read_tokens,
            cache_write_tokens=used.cache_write_tokens,
            cost_usd=used.cost_usd if self._models.has_price(name) else None,
            seconds=seconds,
            estimated=used.estimated,
        )
        self._database.journal.put(turns.finished(task_id, number, outcome, usage, datetime.now(UTC)))


def _title_in(reply: str, redact: Callable[[str], str]) -> str:
    """Return the first line with words, without quotes, markup and full stop; empty if that is no title."""
    lines = (" ".join(line.split()).lstrip(_BEFORE).rstrip(_AFTER) for line in reply.splitlines())
    line = next((line for line in lines if any(map(str.isalnum, line))), "")
    return title_of(line, redact) if line else ""

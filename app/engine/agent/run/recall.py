"""What a task is given from memory: with its message, and when its agent searches."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from app.engine.agent.history.conversion import with_recalled
from app.engine.agent.run.task_context import TaskContext
from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import EngineError
from app.engine.core.messages import UserMessage, text_of
from app.engine.tools.base import ToolError
from app.protocol.blocks import RecallBlock, RecalledEntry
from app.protocol.conversations import Conversation
from app.protocol.memory import MemoryItem, MemorySearchParams, MemorySearchResult

_logger = logging.getLogger(__name__)

# Of a summarised conversation, what the agent still reads as it is.
_NEWEST = 20
_NOT_HERE = "Memory is switched off for this conversation or its folder, by the person."


class MemorySource(Protocol):
    """Memory, as a task needs it."""

    def may_recall(self, conversation: Conversation) -> bool: ...

    async def search(
        self, params: MemorySearchParams, cancel: CancelSignal, skip: Callable[[MemoryItem], bool]
    ) -> MemorySearchResult: ...

    async def recall(
        self, message: str, cancel: CancelSignal, without: tuple[str, ...], skip: Callable[[MemoryItem], bool]
    ) -> tuple[MemoryItem, ...]:
        """What seems to bear on a message, best first, within the budget that the settings give.

        Nothing of the conversations `without`, nor what `skip` names.
        """
        ...


class TaskRecall:
    """Without a `source` nothing is found. `is_summarised`: the agent reads a summary of the older messages."""

    def __init__(self, context: TaskContext, source: MemorySource | None, *, is_summarised: bool) -> None:
        self._context = context
        self._source = source
        self._is_summarised = is_summarised

    async def find(self, params: MemorySearchParams, cancel: CancelSignal) -> MemorySearchResult:
        """For the tool: all but what this task itself said. Raises `ToolError` where recall is switched off."""
        task = self._context.state.task
        source = await self._allowed_source()
        if source is None:
            raise ToolError(_NOT_HERE)

        def is_of_task(item: MemoryItem) -> bool:
            return item.conversation_id == task.conversation_id and item.at >= task.started_at

        return await source.search(params, cancel, is_of_task)

    async def add_to(self, message: UserMessage, cancel: CancelSignal) -> UserMessage:
        """The message with what memory has on it, which is noted in the conversation below the message.

        Sub-agents get none: their task says what they need, and they can search.
        """
        work = asyncio.create_task(self._recalled(message, cancel), name="recall")
        unsubscribe = cancel.subscribe(lambda: _cancel(work))
        try:
            entries = await work
        except (EngineError, ToolError):
            _logger.warning("nothing was recalled for %s", self._context.state.task.id, exc_info=True)
            return message
        except asyncio.CancelledError:
            if not cancel.is_set:
                raise
            return message
        finally:
            unsubscribe()
        if not entries or cancel.is_set:
            return message
        block = RecallBlock(entries=entries)
        branch = self._context.branch
        branch.append(branch.draft("system", "engine", (block,), task_id=self._context.state.task.id))
        return with_recalled(message, block)

    async def _recalled(self, message: UserMessage, cancel: CancelSignal) -> tuple[RecalledEntry, ...]:
        task = self._context.state.task
        source = await self._allowed_source() if not task.depth else None
        if source is None:
            return ()
        present = await self._present() if self._is_summarised else frozenset[str]()
        without = () if self._is_summarised else (task.conversation_id,)
        items = await source.recall(text_of(message), cancel, without, lambda item: item.node_id in present)
        return tuple(_recalled_entry(item) for item in items)

    async def _present(self) -> frozenset[str]:
        """The newest messages, which the agent reads whether they fit or not."""
        position = self._context.branch.position
        nodes, _ = await self._context.database.nodes.branch(position.node_id or "", _NEWEST)
        return frozenset(node.id for node in nodes)

    async def _allowed_source(self) -> MemorySource | None:
        if self._source is None:
            return None
        conversation = await self._context.database.conversations.get(self._context.state.task.conversation_id)
        return self._source if conversation is not None and self._source.may_recall(conversation) else None


def _cancel(work: "asyncio.Task[tuple[RecalledEntry, ...]]") -> None:
    work.cancel()


def _recalled_entry(item: MemoryItem) -> RecalledEntry:
    return RecalledEntry(
        conversation_id=item.conversation_id,
        conversation_title=item.conversation_title,
        node_id=item.node_id,
        role=item.role,
        speaker=item.speaker,
        at=item.at,
        text=item.text,
        score=item.score,
    )

"""What a task is given from memory: with its message, and when its agent searches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar
from weakref import WeakSet

import msgspec

from errand.engine.agent.history.conversion import with_recalled
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import UserMessage, text_of
from errand.engine.tools.base import ToolError
from errand.protocol.blocks import RecallBlock, RecalledEntry
from errand.protocol.conversations import Conversation
from errand.protocol.memory import MemoryItem, MemorySearchParams, MemorySearchResult

_logger = logging.getLogger(__name__)

# Of a summarised conversation, what the agent still reads as it is.
_NEWEST = 20
_NOT_HERE = "Memory is switched off for this conversation or its folder, by the person."


T = TypeVar("T")


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


class RunningRecalls:
    """What running tasks found in memory, so that nothing is forgotten while one has it, and none gets it meanwhile.

    The result of a search is stored when all calls of its turn have ended; until then only its task has it.
    """

    def __init__(self) -> None:
        self._tasks: WeakSet[TaskRecall] = WeakSet()
        self._forgotten: set[str] = set()
        self._under_way: frozenset[str] = frozenset()
        self._changes = 0

    def add(self, task: "TaskRecall") -> None:
        self._tasks.add(task)

    async def look(self, search: Callable[[], Awaitable[T]]) -> T:
        """Search until no forgetting began or ended meanwhile: what was read may be gone, or be in a title."""
        while True:
            before = self._changes
            result = await search()
            if self._changes == before:
                return result

    def may_give(self, item: MemoryItem) -> bool:
        """False for what is being forgotten, or may still be in the index."""
        return item.node_id not in self._forgotten and item.conversation_id not in self._under_way

    def conversations_with(self, is_meant: Callable[[MemoryItem], bool]) -> frozenset[str]:
        """Those in which a running task has found such an entry."""
        return frozenset(one.conversation_id for one in self._tasks if one.is_running and any(map(is_meant, one.found)))

    @contextmanager
    def forgetting(self, conversation_ids: frozenset[str], node_ids: frozenset[str]) -> Generator[None]:
        """From now on no task gets these nodes; inside, none gets anything of their conversations, nor their titles."""
        self._forgotten |= node_ids
        self._under_way = conversation_ids
        self._changes += 1
        try:
            yield
        finally:
            self._under_way = frozenset()
            self._changes += 1


class TaskRecall:
    """Without a `source` nothing is found. `is_summarised`: the agent reads a summary of the older messages.

    `found` is what the agent's own searches found.
    """

    def __init__(
        self, context: TaskContext, source: MemorySource | None, recalls: RunningRecalls, *, is_summarised: bool
    ) -> None:
        self._context = context
        self._source = source
        self._recalls = recalls
        self._is_summarised = is_summarised
        self.found: list[MemoryItem] = []
        recalls.add(self)

    @property
    def conversation_id(self) -> str:
        return self._context.state.task.conversation_id

    @property
    def is_running(self) -> bool:
        return self._context.state.task.ended_at is None

    async def find(self, params: MemorySearchParams, cancel: CancelSignal) -> MemorySearchResult:
        """For the tool: all but what this task itself said. Raises `ToolError` where recall is switched off."""
        task = self._context.state.task
        source = await self._allowed_source()
        if source is None:
            raise ToolError(_NOT_HERE)

        def is_of_task(item: MemoryItem) -> bool:
            return item.conversation_id == task.conversation_id and item.at >= task.started_at

        result = await self._recalls.look(lambda: source.search(params, cancel, is_of_task))
        hits = tuple(filter(self._recalls.may_give, result.hits))
        self.found += hits
        return msgspec.structs.replace(result, hits=hits)

    async def add_to(self, message: UserMessage, cancel: CancelSignal) -> UserMessage:
        """The message with what memory has on it, which is noted in the conversation below the message.

        Sub-agents get none: their task says what they need, and they can search.
        """
        work = asyncio.create_task(self._recalled(message, cancel), name="recall")
        unsubscribe = cancel.subscribe(lambda: _cancel(work))
        try:
            entries = tuple(map(_recalled_entry, filter(self._recalls.may_give, await work)))
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

    async def _recalled(self, message: UserMessage, cancel: CancelSignal) -> tuple[MemoryItem, ...]:
        task = self._context.state.task
        source = await self._allowed_source() if not task.depth else None
        if source is None:
            return ()
        present = await self._present() if self._is_summarised else frozenset[str]()
        without = () if self._is_summarised else (task.conversation_id,)
        question = text_of(message)
        return await self._recalls.look(
            lambda: source.recall(question, cancel, without, lambda item: item.node_id in present)
        )

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


def _cancel(work: "asyncio.Task[tuple[MemoryItem, ...]]") -> None:
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

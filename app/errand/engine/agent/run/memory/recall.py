"""What a task is given from memory: with each message of a person, and when its agent searches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol, TypeVar
from weakref import WeakSet

import msgspec

from errand.engine.agent.history.conversion import recall_of, with_recalled
from errand.engine.agent.loop.features import Feature
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import AssistantMessage, ModelMessage, ToolResultMessage, UserMessage, own_text_of
from errand.engine.memory.recall.folders import FolderView
from errand.engine.models.base import ModelRequest
from errand.engine.tools.control.task_messages import AskUser
from errand.engine.tools.results import ToolError
from errand.protocol.blocks import RecallBlock, RecalledEntry, WithheldEntries
from errand.protocol.conversations import Conversation
from errand.protocol.memory import MemoryItem, MemorySearchParams, MemorySearchResult

_logger = logging.getLogger(__name__)

# Of the context window: what is recalled for one message. A small model answers to what it reads most of.
_WINDOW_SHARE = 0.05
# Folders that a person is asked about at once; the others with a later message.
_MAX_ASKED = 3
# Of a summarised conversation, what the agent still reads as it is.
_NEWEST = 20
_NOT_HERE = "Memory is switched off for this conversation or its folder, by the person."


T = TypeVar("T")


class MemorySource(Protocol):
    """Memory, as a task needs it."""

    def may_recall(self, conversation: Conversation) -> bool: ...

    def remembers(self, conversation: Conversation) -> bool: ...

    def is_given(self, node_id: str) -> bool:
        """Return False for an entry that a person does not want agents to be given again."""
        ...

    async def seen_from(self, workspace: str) -> FolderView:
        """Return what agents in a folder may be given of other folders."""
        ...

    def note_asked(self, folder: str, others: tuple[str, ...]) -> None:
        """Note that the person is asked about these folders now."""
        ...

    async def folders(self) -> tuple[str, ...]:
        """Return all folders of which there are entries."""
        ...

    async def search(
        self,
        params: MemorySearchParams,
        cancel: CancelSignal,
        skip: Callable[[MemoryItem], bool],
        not_folders: tuple[str, ...],
    ) -> MemorySearchResult: ...

    async def recall(
        self,
        message: str,
        cancel: CancelSignal,
        without: tuple[str, ...],
        skip: Callable[[MemoryItem], bool],
        max_tokens: int | None,
        not_folders: tuple[str, ...],
    ) -> tuple[RecalledEntry, ...]:
        """Return the entries that bear on a message, best first, within `max_tokens` and the budget of the settings.

        Nothing of the conversations `without` or of `not_folders`, nor what `skip` names.
        """
        ...


class Withheld:
    """Counts the entries of one search that are not given, because their folders do not share with this one.

    What was said in the conversation itself is given, also if that was in another folder then.
    """

    def __init__(self, view: FolderView, conversation_id: str) -> None:
        self._view = view
        self._conversation_id = conversation_id
        self._counts = dict[str, int]()

    async def look(self, source: MemorySource, search: Callable[[tuple[str, ...]], Awaitable[T]]) -> T:
        """Search in all folders, and again without those that are not given if something of them was found.

        It may have taken the places of others, or stood for an equal text of this folder.
        """
        self._counts.clear()
        result = await search(())
        if not self._counts:
            return result
        return await search(tuple(folder for folder in await source.folders() if not self._view.may_give(folder)))

    def holds(self, item: MemoryItem) -> bool:
        """Return True, and count it, for an entry that is not given."""
        if item.conversation_id == self._conversation_id or self._view.may_give(item.folder):
            return False
        folder = self._view.name_of(item.folder)
        self._counts[folder] = self._counts.get(folder, 0) + 1
        return True

    def undecided(self) -> tuple[WithheldEntries, ...]:
        """Return the folders about which the person has to be asked now, those with most entries first."""
        undecided = (
            WithheldEntries(folder=folder, count=count)
            for folder, count in self._counts.items()
            if self._view.is_undecided(folder)
        )
        return tuple(sorted(undecided, key=lambda each: -each.count)[:_MAX_ASKED])

    def remark(self) -> str:
        """Return where there is more, for the model."""
        if not self._counts:
            return ""
        folders = (
            f"{count} {'entry' if count == 1 else 'entries'} in {folder or 'conversations without a folder'}"
            for folder, count in self._counts.items()
        )
        return f"{', '.join(folders)}, not shared with this folder: only the person can decide to share that."


class RunningRecalls:
    """The recalls of running tasks: no task gets what is being forgotten.

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

    def may_give(self, item: MemoryItem | RecalledEntry) -> bool:
        """Return False for what is being forgotten, or may still be in the index."""
        return item.node_id not in self._forgotten and item.conversation_id not in self._under_way

    def conversations_with(self, is_meant: Callable[[MemoryItem], bool]) -> frozenset[str]:
        """Return the conversations in which a running task has found such an entry."""
        return frozenset(
            recall.conversation_id for recall in self._tasks if recall.is_running and any(map(is_meant, recall.found))
        )

    @contextmanager
    def forgetting(self, conversation_ids: frozenset[str], node_ids: frozenset[str]) -> Generator[None]:
        """Give no task these nodes any more and, inside, nothing of their conversations, nor their titles."""
        self._forgotten |= node_ids
        self._under_way = conversation_ids
        self._changes += 1
        try:
            yield
        finally:
            self._under_way = frozenset()
            self._changes += 1


class TaskRecall(Feature):
    """Gives the agent what bears on each message of a person that it reads. Without a `source` nothing is found.

    `history_length`: so many messages were there before the task. `is_summarised`: the agent reads a summary of the
    older messages. `window_of` returns the context window of a model, if it is known. `found` is what the agent's own
    searches found.
    """

    def __init__(
        self,
        context: TaskContext,
        source: MemorySource | None,
        recalls: RunningRecalls,
        window_of: Callable[[str], int | None],
        *,
        history_length: int,
        is_summarised: bool,
    ) -> None:
        self._state = context.state
        self._branch = context.branch
        self._database = context.database
        self._source = source
        self._recalls = recalls
        self._window_of = window_of
        self._is_summarised = is_summarised
        # Of a sub-agent, the first message is its order: that says what it needs, and it can search.
        self._looked_up = max(history_length, 1 if context.state.task.origin.depth else 0)
        self._blocks: dict[int, RecallBlock] = {}
        self._recalled_ids: set[str] | None = None
        self.found: list[MemoryItem] = []
        recalls.add(self)

    @property
    def conversation_id(self) -> str:
        return self._state.task.conversation_id

    @property
    def is_running(self) -> bool:
        return self._state.task.outcome.ended_at is None

    async def find(self, params: MemorySearchParams, cancel: CancelSignal) -> MemorySearchResult:
        """Search for the tool, without what this task itself said, and say what other folders have that do not share.

        Raises `ToolError` where recall is switched off.
        """
        task = self._state.task
        source = await self._allowed_source()
        if source is None:
            raise ToolError(_NOT_HERE)
        view = await source.seen_from(task.request.workspace)
        withheld = Withheld(view, task.conversation_id)

        def is_left_out(item: MemoryItem) -> bool:
            is_of_task = item.conversation_id == task.conversation_id and item.at >= task.started_at
            return is_of_task or withheld.holds(item)

        def search(not_folders: tuple[str, ...]) -> Awaitable[MemorySearchResult]:
            return source.search(params, cancel, is_left_out, not_folders)

        result = await self._recalls.look(lambda: withheld.look(source, search))
        hits = tuple(filter(self._recalls.may_give, result.hits))
        self.found += hits
        remark = " ".join(filter(None, (result.remark, withheld.remark())))
        return msgspec.structs.replace(result, hits=hits, remark=remark)

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """Look once for what bears on what people said since the last request.

        It is noted in the conversation, below the last message, and is part of that message in all requests from now
        on, so that the provider's cache holds.
        """
        new = request.messages[self._looked_up :]
        self._looked_up = max(self._looked_up, len(request.messages))
        text = "\n".join(words_of_people(new))
        if text and (block := await self._look(text, cancel)) is not None:
            self._blocks[len(request.messages) - 1] = block
            branch, task = self._branch, self._state.task
            branch.append(branch.draft("system", "engine", (block,), task_id=task.id, turn=task.progress.step_count))
            if block.withheld and self._source is not None:  # only now is it asked
                self._source.note_asked(block.folder, tuple(each.folder for each in block.withheld))
        return self._with_blocks(request)

    def _with_blocks(self, request: ModelRequest) -> ModelRequest:
        messages = list(request.messages)
        for index, block in self._blocks.items():
            message = messages[index]
            assert not isinstance(message, AssistantMessage), "people spoke after it"
            messages[index] = with_recalled(message, block) if block.entries else message
        return replace(request, messages=tuple(messages)) if self._blocks else request

    async def _look(self, text: str, cancel: CancelSignal) -> RecallBlock | None:
        work = asyncio.create_task(self._entries(text, cancel), name="recall")
        unsubscribe = cancel.subscribe(lambda: _cancel(work))
        try:
            block = await work
            entries = tuple(filter(self._recalls.may_give, block.entries))
        except (EngineError, ToolError):
            _logger.warning("nothing was recalled for %s", self._state.task.id, exc_info=True)
            return None
        except asyncio.CancelledError:
            if not cancel.is_set:
                raise
            return None
        finally:
            unsubscribe()
        if not (entries or block.withheld) or cancel.is_set:
            return None
        assert self._recalled_ids is not None, "it was read for the search"
        self._recalled_ids.update(entry.node_id for entry in entries)
        return msgspec.structs.replace(block, entries=entries)

    async def _entries(self, text: str, cancel: CancelSignal) -> RecallBlock:
        """Return what to give, without what the branch has been given already, and what other folders have."""
        source = await self._allowed_source()
        if source is None:
            return RecallBlock(entries=())
        request = self._state.task.request
        view = await source.seen_from(request.workspace)
        withheld = Withheld(view, self.conversation_id)
        is_summarised = self._is_summarised
        present = await self._present() if is_summarised else frozenset[str]()
        without = () if is_summarised else (self.conversation_id,)
        recalled = await self._ids_recalled_before()
        window = self._window_of(request.model)

        def is_left_out(item: MemoryItem) -> bool:
            is_known = item.node_id in present or item.node_id in recalled or not source.is_given(item.node_id)
            return is_known or withheld.holds(item)

        def recall(not_folders: tuple[str, ...]) -> Awaitable[tuple[RecalledEntry, ...]]:
            max_tokens = None if window is None else int(_WINDOW_SHARE * window)
            return source.recall(text, cancel, without, is_left_out, max_tokens, not_folders)

        entries = await self._recalls.look(lambda: withheld.look(source, recall))
        options = self._state.task.options
        undecided = withheld.undecided() if options.attended else ()
        return RecallBlock(entries=entries, withheld=undecided, folder=view.folder if undecided else "")

    async def _ids_recalled_before(self) -> set[str]:
        """Return the entries that the branch has been given, by this task or earlier ones."""
        if self._recalled_ids is None:
            await self._branch.save(durable=False)
            nodes = await self._database.nodes.recent_of_engine(self._branch.position.node_id or "")
            blocks = filter(None, map(recall_of, nodes))
            self._recalled_ids = {entry.node_id for block in blocks for entry in block.entries}
        return self._recalled_ids

    async def _present(self) -> frozenset[str]:
        """Return the newest messages, which the agent reads whether they fit or not."""
        position = self._branch.position
        nodes, _ = await self._database.nodes.branch(position.node_id or "", _NEWEST)
        return frozenset(node.id for node in nodes)

    async def _allowed_source(self) -> MemorySource | None:
        if self._source is None:
            return None
        conversation = await self._database.conversations.get(self.conversation_id)
        return self._source if conversation is not None and self._source.may_recall(conversation) else None


def words_of_people(messages: Sequence[ModelMessage]) -> Iterable[str]:
    """Return what people wrote: messages and answers to questions."""
    for message in messages:
        match message:
            case UserMessage(kind=None):
                yield own_text_of(message)
            case ToolResultMessage(tool_name=AskUser.name, is_error=False):
                yield own_text_of(message)
            case _:
                pass


def _cancel(work: "asyncio.Task[RecallBlock]") -> None:
    work.cancel()

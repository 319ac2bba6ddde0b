"""The recorded model, memory, tools and person of a replay."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from errand.engine.agent.history.conversion import messages_of, result_of
from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import AssistantMessage, StopReason, Text, Usage
from errand.engine.event_log import Frame
from errand.engine.memory.recall.folders import FolderView
from errand.engine.models.base import ModelEvent, ModelNotice, ModelRequest, ReplyEnd, ReplyStart, RetryLater
from errand.engine.models.failures import FailureKind
from errand.engine.record.diff import is_about_server
from errand.engine.record.format import TaskRecord
from errand.engine.record.make_record import message_text
from errand.engine.record.replay_script import ReplayScript
from errand.engine.tools.base import Access, ExecutionMode, GuardedTool, ParallelWhere
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult
from errand.protocol.asks import Approval, Ask, AskAnswerParams
from errand.protocol.base import JsonObject
from errand.protocol.blocks import RecalledEntry
from errand.protocol.conversations import Conversation, Node
from errand.protocol.events import AskUpdate, Delta, EventRecord
from errand.protocol.memory import MemoryItem, MemorySearchParams, MemorySearchResult

AFTER_LAST_REPLY = "The record has no reply for this model call: the loop goes on today where it ended then."


class RecordedModel:
    """A `ChatModel` that returns the replies of a record in order."""

    def __init__(self, script: ReplayScript) -> None:
        self.sent: list[list[str]] = []
        self._script = script

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        if request.purpose == "summary":
            yield await self._summary(request, cancel)
            return
        if self._script.is_refused():
            yield ReplyEnd(AssistantMessage((), "error", "Too long.", request.model), failure=FailureKind.TOO_LONG)
            return
        turn = self._script.next_turn()
        if turn is None and self._script.ends_early and not cancel.is_set:
            self._script.end_task()
            await cancel.wait()
            yield ReplyEnd(AssistantMessage((), "aborted", "Request was aborted", request.model))
            return
        self.sent.append([message_text(message) for message in request.messages])
        if turn is None:
            yield ReplyEnd(AssistantMessage((), "error", AFTER_LAST_REPLY, request.model))
            return
        yield ReplyStart(AssistantMessage(model=request.model))
        for remark in turn.remarks:
            yield ModelNotice(remark, AssistantMessage(model=request.model))
        self._script.reply_ends()
        reply = _reply(turn.reply, is_aborted=self._script.ends_early and self._script.is_last)
        if reply.stop_reason == "aborted":
            self._script.end_task()
            await cancel.wait()
        # What was a call is recorded as one; other text looked like one only if the reply was taken for no answer.
        yield ReplyEnd(reply, call_text=None if turn.is_no_answer else "")

    async def close(self) -> None:
        """Nothing to close."""

    async def _summary(self, request: ModelRequest, cancel: CancelSignal) -> ReplyEnd:
        """Return the recorded summary, or its recorded failure."""
        outcome = self._script.next_summary()
        if isinstance(outcome, str):
            return ReplyEnd(AssistantMessage((Text(outcome),), model=request.model))
        if outcome.ended:
            self._script.end_task()
            await cancel.wait()
            return ReplyEnd(AssistantMessage((), "aborted", "Request was aborted", request.model))
        later = RetryLater(outcome.why) if outcome.is_temporary else None
        return ReplyEnd(AssistantMessage((), "error", outcome.why, request.model), later)


def _reply(node: Node, *, is_aborted: bool) -> AssistantMessage:
    completed = msgspec.structs.replace(node, status="complete")
    recorded = next(
        (message for message in messages_of((completed,)) if isinstance(message, AssistantMessage)), AssistantMessage()
    )
    return replace(
        recorded, stop_reason=_reason(node, recorded.stop_reason, is_aborted), error=node.error, usage=_usage(node)
    )


def _reason(node: Node, known: StopReason, is_aborted: bool) -> StopReason:
    match node.status:
        case "failed":
            return "error"
        case "cut" | "streaming":
            return "aborted" if is_aborted else "length"
        case "complete":
            return known


def _usage(node: Node) -> Usage:
    used = node.usage
    if used is None:
        return Usage()
    return Usage(
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens,
        used.cache_write_tokens,
        used.cost_usd if used.cost_usd is not None else 0.0,
    )


class ServerTool:
    """A tool of an MCP server that a recorded task has called: a replay has no servers. Takes any arguments."""

    execution_mode: ExecutionMode = "sequential"
    description = "A tool of a server."

    def __init__(self, name: str) -> None:
        self.name = name
        self.label = name
        self.parameters: JsonObject = {"type": "object"}

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    def access(self, arguments: JsonObject) -> Access:
        return Access("free", f"Use {self.name}.")

    def allow(self, call_id: str, access: Access) -> None:
        """Does nothing: the call never runs."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        raise ToolError("The record has no result of this call.")


class RecordedTool:
    """Replaces a tool, with its current name and schema. `is_real` tools, those of the loop itself, do run."""

    def __init__(self, tool: GuardedTool, script: ReplayScript, *, is_real: bool) -> None:
        self._tool = tool
        self._script = script
        self._is_real = is_real
        self._known_access: tuple[JsonObject, Access] | None = None

    @property
    def name(self) -> str:
        return self._tool.name

    @property
    def label(self) -> str:
        return self._tool.label

    @property
    def description(self) -> str:
        return self._tool.description

    @property
    def parameters(self) -> JsonObject:
        return self._tool.parameters

    @property
    def execution_mode(self) -> ExecutionMode | ParallelWhere:
        return self._tool.execution_mode

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return self._tool.prepare_arguments(arguments)

    def access(self, arguments: JsonObject) -> Access:
        """Return the recorded approval; without one an access that needs none. Does not read the disk."""
        if self._known_access is None or self._known_access[0] is not arguments:  # a second check returns the same
            self._known_access = (arguments, self._access(arguments))
        return self._known_access[1]

    def allow(self, call_id: str, access: Access) -> None:
        if self._is_real:
            self._tool.allow(call_id, access)

    def _access(self, arguments: JsonObject) -> Access:
        call_id, approval = self._script.check_call(self.name)
        if self._is_real:
            return self._tool.access(arguments)
        if approval is not None:
            return _access(approval)
        result = self._script.turn.results.get(call_id)
        if result is not None and not result.execution_id:  # it did not run, for example because the policy denied it
            return Access("free", f"Use {self.name}.")
        return Access("read", f"Use {self.name}.", (self._script.some_file,))

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        if self._is_real:
            return await self._tool.execute(call_id, arguments, cancel, on_update)
        if self._script.is_stopped_in(call_id):
            self._script.end_task()
            await cancel.wait()
        result = self._script.turn.results.get(call_id)
        if result is None:
            raise ToolError("The record has no result of this call.")
        return result_of(result)


class RecordedMemory:
    """A `MemorySource` that returns what was recalled in the record, before the same turns."""

    def __init__(self, script: ReplayScript) -> None:
        self._script = script

    def may_recall(self, conversation: Conversation) -> bool:
        return True

    def remembers(self, conversation: Conversation) -> bool:
        """Return False: a replay proposes nothing to remember."""
        return False

    def is_given(self, node_id: str) -> bool:
        return True

    async def folders(self) -> tuple[str, ...]:
        return ()

    async def seen_from(self, workspace: str) -> FolderView:
        return FolderView(workspace, None, Path.home(), Path(workspace), shares_all=True, asks=False, pairs=())

    def note_asked(self, folder: str, others: tuple[str, ...]) -> None:
        raise AssertionError("a replay shares all")

    async def search(
        self,
        params: MemorySearchParams,
        cancel: CancelSignal,
        skip: Callable[[MemoryItem], bool],
        not_folders: tuple[str, ...],
    ) -> MemorySearchResult:
        raise AssertionError("the recorded tool has the results of searches")

    async def recall(
        self,
        message: str,
        cancel: CancelSignal,
        without: tuple[str, ...],
        skip: Callable[[MemoryItem], bool],
        max_tokens: int | None,
        not_folders: tuple[str, ...],
    ) -> tuple[RecalledEntry, ...]:
        return self._script.recalled()


def _access(approval: Approval) -> Access:
    return Access(
        "run" if approval.command is not None else "write" if approval.writes else "read",
        approval.text,
        tuple(Path(path) for path in approval.reads),
        tuple(Path(path) for path in approval.writes),
        approval.command,
        approval.preview,
    )


class RecordedPerson:
    """A listener of the event log; `answer_all` runs until it is cancelled."""

    def __init__(self, record: TaskRecord, script: ReplayScript, asks: PendingAsks) -> None:
        self._recorded = deque(ask for ask in record.asks if not is_about_server(ask))
        self._script = script
        self._asks = asks
        self._asked: asyncio.Queue[Ask] = asyncio.Queue()
        self._seen: set[str] = set()

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        event = record.event
        if isinstance(event, AskUpdate) and event.ask.status == "waiting" and event.ask.id not in self._seen:
            self._seen.add(event.ask.id)
            self._asked.put_nowait(event.ask)

    def on_delta(self, delta: Delta, data: bytes) -> None:
        """Streamed text needs no answer."""

    async def answer_all(self) -> None:
        while True:
            await self._answer(await self._asked.get())

    async def _answer(self, ask: Ask) -> None:
        """An ask that is not in the record, or was not answered then, ends the task."""
        then = self._take(ask)
        if then is None or then.status != "answered":
            self._script.end_task()
            return
        # What it allowed from then on decides nothing here: each recorded call has its own answer.
        params = AskAnswerParams(ask_id=ask.id, text=then.answer or "", allow=then.allowed, amount=then.amount)
        # The mode or rule that allowed a call does not hold here.
        by = "person" if then.allowed else then.settled_by
        try:
            await self._asks.answer(params, then.answered_by or "", by)
        except EngineError:  # the recorded answer is invalid now: the diff shows the changed ask
            self._script.end_task()

    def _take(self, ask: Ask) -> Ask | None:
        """Return the first remaining ask of the same kind."""
        recorded = next((candidate for candidate in self._recorded if _kind(candidate) == _kind(ask)), None)
        if recorded is not None:
            self._recorded.remove(recorded)
        return recorded


def _kind(ask: Ask) -> tuple[str, str | None]:
    return ask.kind, ask.limit.kind if ask.limit is not None else None

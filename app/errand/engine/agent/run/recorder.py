"""Records what an agent does: nodes, plans, turns and tool executions, intent before result."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from errand.engine.agent.compaction.token_estimate import request_sizes, with_findable
from errand.engine.agent.history.conversion import blocks_of, plan_of
from errand.engine.agent.loop.events import (
    AgentEvent,
    MessageEnd,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
)
from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import PendingCall
from errand.engine.agent.run.queued_messages import queued_node_id
from errand.engine.agent.run.replies.streaming_reply import StreamingReply
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import Busy
from errand.engine.core.ids import new_id
from errand.engine.core.messages import AssistantMessage, Message, StopReason, Text, ToolCall, ToolResultMessage
from errand.engine.models.base import BlockDelta, ModelNotice, ModelRequest, PromptProgress, Retry, ToolDefinition
from errand.engine.models.reply.usage import usage_or_estimate, with_usage
from errand.engine.storage.records import executions, tasks, turns
from errand.engine.storage.sql.journal import Journal
from errand.engine.tools.base import Access
from errand.engine.tools.control.task_messages import AskUser, SendUpdate, TaskComplete
from errand.engine.tools.memory.search import SearchMemory
from errand.engine.tools.registry import CONTROL_NAMES
from errand.protocol.blocks import Block, NoticeBlock, NoticeKind, SummaryBlock, TextBlock, ToolCallBlock
from errand.protocol.events import PromptReading, TaskPlan, ToolOutput
from errand.protocol.notices import NoticeData, ReplyCut, UnknownPrice
from errand.protocol.usage import Usage

_MAX_HOST_LENGTH, _MAX_REFUSED_HOSTS = 253, 200
_Outcome = Literal["complete", "failed", "cut"]
_OUTCOME: dict[StopReason, _Outcome] = {"error": "failed", "aborted": "cut", "length": "cut"}


class ToolExecutionLog:
    """Writes the audit of one task: a record for each call, also for one that never ran, which was refused.

    A connection of a command that was refused has a record as a call of `network`.
    """

    def __init__(self, task_id: str, journal: Journal) -> None:
        self._refused: set[tuple[str, int]] = set()
        self._task_id = task_id
        self._journal = journal
        self._requested: dict[str, executions.ExecutionStart] = {}
        self._open: dict[str, executions.ExecutionStart] = {}
        self._continued: dict[str, executions.ExecutionStart] = {}
        self._known: dict[str, str] = {}
        self._replayed: dict[str, str] = {}
        self._ended: dict[str, tuple[str, str]] = {}

    def requested(self, event: ToolExecutionStart, turn: int, node_id: str) -> None:
        """Note a call of the model; it is written when it starts, or when it ends without a start."""
        self._requested[event.call_id] = executions.ExecutionStart(
            execution_id=new_id("exec"),
            task_id=self._task_id,
            turn=turn,
            node_id=node_id,
            call_id=event.call_id,
            tool=event.tool,
            arguments=event.arguments,
            at=datetime.now(UTC),
            tier="refused",
        )

    def started(self, call: ToolCall, access: Access) -> None:
        """Write the intent; the caller awaits the commit."""
        requested = self._requested.pop(call.id)
        if call.id in self._known:
            return
        if (continued := self._continued.pop(call.id, None)) is not None:
            self._open[call.id] = continued
            return
        row = self._open[call.id] = replace(
            requested,
            at=datetime.now(UTC),
            tier=access.tier,
            text=access.text,
            address=access.address,
            service=access.service,
            language=access.language,
            operation=access.operation,
            working_dir=str(access.reads[0]) if access.command is not None and access.reads else "",
        )
        self._journal.put(executions.started(row))

    def known(self, call_id: str, execution_id: str) -> None:
        """The call ran in an earlier engine: its result is already stored."""
        self._known[call_id] = execution_id

    def continued(self, started: executions.ExecutionStart) -> None:
        """The call, which changes nothing, runs again: its record goes on."""
        self._continued[started.call_id] = started

    def replays(self, execution_ids: Mapping[str, str]) -> None:
        """Take over the records of an earlier engine, by call; those that were refused come to an end again."""
        self._replayed = dict(execution_ids)

    def ended(self, event: ToolExecutionEnd, *, is_detached: bool) -> None:
        """Write the result of a call, and its summary for its node.

        If the engine shuts down (`is_detached`), calls that did not run and that can be repeated stay open.
        """
        requested, start = self._requested.pop(event.call_id, None), self._open.pop(event.call_id, None)
        execution_id = self._known.pop(event.call_id, None)
        if execution_id is None and start is None:
            execution_id = self._replayed.get(event.call_id)
        if execution_id is None and start is None and requested is not None and not is_detached:
            start = requested
            self._journal.put(executions.started(start))
        if start is not None and start.tier == "free" and is_detached and event.result.is_error:
            start = None
        self._ended[event.call_id] = (
            start.execution_id if start is not None else execution_id or "",
            event.result.summary,
        )
        if start is None:
            return
        # What memory found quotes other conversations, whose texts can be forgotten: the node alone has it.
        is_quoting = start.tool == SearchMemory.name
        row = executions.ExecutionEnd(
            execution_id=start.execution_id,
            task_id=self._task_id,
            text="" if is_quoting else "".join(block.text for block in event.result.content if isinstance(block, Text)),
            summary=event.result.summary,
            details=None if is_quoting else event.result.details,
            is_error=event.result.is_error,
            at=datetime.now(UTC),
            marks=event.result.marks,
        )
        self._journal.put(executions.finished(row))

    def connection_refused(self, host: str, port: int, reason: str) -> None:
        """Write it once for each host and port, for so many of them."""
        address = (host[:_MAX_HOST_LENGTH], port)
        if address in self._refused or len(self._refused) >= _MAX_REFUSED_HOSTS:
            return
        self._refused.add(address)
        execution_id, at = new_id("exec"), datetime.now(UTC)
        start = executions.ExecutionStart(
            execution_id=execution_id,
            task_id=self._task_id,
            turn=0,
            node_id="",
            call_id="",
            tool="network",
            arguments={"host": address[0], "port": port},
            at=at,
            text=f"Connect to {address[0]}:{port}",
            tier="refused",
        )
        end = executions.ExecutionEnd(
            execution_id=execution_id,
            task_id=self._task_id,
            text=reason,
            summary="refused",
            details=None,
            is_error=True,
            at=at,
        )
        with suppress(Busy):  # the connection is refused in any case
            self._journal.put(executions.started(start), executions.finished(end))

    def finish(self, call_id: str) -> tuple[str, str]:
        """Execution id and summary of an ended call, for its node; empty for a call that stays open."""
        return self._ended.pop(call_id, ("", ""))


class TaskRecorder(Feature):
    """Records one agent's events for one task. `skip` counts the prompts that are already stored."""

    def __init__(
        self, context: TaskContext, executions: ToolExecutionLog, has_price: Callable[[str], bool], skip: int
    ) -> None:
        self._state = context.state
        self._branch = context.branch
        self._log = context.log
        self._journal = context.database.journal
        self._queue = context.queue
        self._executions = executions
        self._has_price = has_price
        self._skip = skip
        self._reply = StreamingReply(self._state, self._branch, self._log, self._journal)
        self._call_started = time.monotonic()
        self._in_call = False
        self._call_number = 0
        self._request: ModelRequest | None = None
        self._is_detached = False
        self.findable_tools: Callable[[], Sequence[ToolDefinition]] = tuple  # not sent, but found by the model
        self._withholds_results = False
        self._accesses: dict[str, Access] = {}
        self._remarks: list[NoticeData] = []
        self._remarks_made: set[NoticeData] = set()

    async def on_event(self, event: AgentEvent) -> None:
        match event:
            case MessageUpdate(event=BlockDelta() as delta):
                if self._state.task.activity.detail:
                    self._state.set_activity("")
                self._reply.delta(delta)
            case MessageUpdate(event=PromptProgress() as progress):
                self._reading(progress)
            case MessageUpdate(event=Retry() as retry):
                self._reply.restart()
                if self._state.task.activity.retry_at is not None:
                    self._in_call = False  # a rate limit: the call is made again as the same turn
                elif self._in_call:
                    self._state.set_activity(f"retrying in {retry.delay_s:.0f} s: {retry.reason}", retry.attempt)
            case MessageUpdate(event=ModelNotice(data=data)):
                self._remark_once(data)
            case MessageEnd(message=message):
                self._message(message)
            case ToolExecutionUpdate():
                self._output(event)
            case ToolExecutionStart():
                task = self._state.task
                self._executions.requested(event, task.progress.step_count, self._branch.position.node_id or "")
            case ToolExecutionEnd():
                self._executions.ended(event, is_detached=self._is_detached)
                self._tool_ended(event, self._accesses.pop(event.call_id, None))
            case TurnEnd():
                self._branch.announce_head()
            case _:
                pass

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """Commit the intent. If a power cut loses it, the call is repeated as if it had not started."""
        self.turn_started(request)
        await self._branch.save(durable=False)
        return request

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall:
        """Commit the intent. A call without access is written with what follows: repeating it does no harm."""
        call, access = pending.call, pending.access
        assert access is not None, "it was approved"
        self._accesses[call.id] = access
        self._state.tool_started(call.id, call.name, acts=access.has_effects, changes=access.may_change)
        self._executions.started(call, access)
        if access.tier != "free":
            # What changes something waits for the disk: after a power cut it must be known that it may have run.
            await self._branch.save(durable=access.tier != "read")
        return pending

    def turn_started(self, request: ModelRequest) -> None:
        """Write the intent of a model call and its size; the caller awaits the commit."""
        self._state.turn_started()
        sizes = with_findable(request_sizes(request), self.findable_tools())
        self._call_began(request, self._state.task.progress.step_count, sizes)

    def summary_started(self, request: ModelRequest) -> None:
        """Write the intent of a call that summarises, which is not a turn; the caller awaits the commit."""
        self._state.thinks()
        self._call_began(request, turns.number_beside_turns(), ())

    def _call_began(self, request: ModelRequest, number: int, sizes: tuple[turns.PartSize, ...]) -> None:
        self._call_number = number
        self._call_started = time.monotonic()
        self._in_call = True
        self._request = request
        task = self._state.task
        self._journal.put(turns.started(task.conversation_id, task.id, number, request.model, datetime.now(UTC), sizes))

    def refused(self, message: AssistantMessage) -> None:
        """The provider refused the request as too long. Counts as a turn without a node; a shorter request follows."""
        self._counted(message, "failed")

    def summarised(self, message: AssistantMessage, block: SummaryBlock | None) -> None:
        """The end of a summary call, with the stored node if it succeeded."""
        usage = self._counted(message, "failed" if block is None else "complete")
        if block is None:
            return
        self._state.summarised()
        task = self._state.task
        model = message.model or task.request.model
        node = self._branch.draft("system", "engine", (block,), task_id=task.id, model=model, usage=usage)
        self._branch.append(node, tasks.save(task))
        self._state.publish_again()

    def notice(self, kind: NoticeKind, data: NoticeData) -> None:
        """Append a system node with a notice of the engine."""
        block = NoticeBlock(kind=kind, data=data)
        task_id = self._state.task.id
        self._branch.append(self._branch.draft("system", "engine", (block,), task_id=task_id))

    def remark(self, *remarks: NoticeData) -> None:
        """Add notices to append after the next reply."""
        self._remarks += remarks

    def detach(self) -> None:
        """The engine shuts down: calls that did not run stay open, for the engine that resumes the task."""
        self._is_detached = True

    def close(self) -> None:
        """Store the partial reply of an aborted model call, or of one that will not be retried."""
        if self._in_call or self._reply.is_shown:
            message = AssistantMessage(self._reply.content, "aborted", model=self._state.task.request.model)
            if self._request is not None and message.content:
                message = with_usage(message, usage_or_estimate(self._request, message))
            self._assistant(message)

    def _remark_once(self, data: NoticeData) -> None:
        """Add a notice once per task, even if each turn repeats it, and clear an outdated activity."""
        if data not in self._remarks_made:
            self._remarks_made.add(data)
            self._remarks.append(data)
        if self._in_call and self._state.task.activity.detail:
            self._state.set_activity("")

    def _publish_remarks(self) -> None:
        """Append the notices after their reply: before it they would separate the reply from its siblings."""
        for data in self._remarks:
            self.notice("model", data)
        self._remarks.clear()

    def _message(self, message: Message) -> None:
        if self._skip > 0:
            self._skip -= 1
        elif isinstance(message, AssistantMessage):
            self._assistant(message)
            if message.cut:
                self.notice("warning", ReplyCut(reason=message.cut))
            self._publish_remarks()
        elif isinstance(message, ToolResultMessage):
            self._result(message)
        else:
            self._user_message(message)

    def _user_message(self, message: Message) -> None:
        """Move a message from the queue into the tree in one commit, so that it is never read twice.

        A message that was not queued comes from the engine.
        """
        entry = self._queue.read(message)
        task = self._state.task
        if entry is None:
            node = self._branch.draft(
                "user", "engine", blocks_of(message), task_id=task.id, turn=task.progress.step_count
            )
            self._branch.append(node)
            return
        node = self._branch.draft(
            "user",
            "user",
            self._queue.blocks_of(entry),
            task_id=task.id,
            turn=task.progress.step_count,
            node_id=queued_node_id(task.id, entry.id),
        )
        self._branch.append(node, tasks.save(task))
        self._state.publish_again()

    def _assistant(self, message: AssistantMessage) -> None:
        node_id = self._reply.finish()
        task = self._state.task
        status: _Outcome = _OUTCOME.get(message.stop_reason, "complete")
        usage = self._counted(message, status)
        if message.stop_reason == "aborted" and not message.content and node_id is None:
            return
        node = self._branch.draft(
            "assistant",
            task.agent_id,
            blocks_of(message),
            task_id=task.id,
            turn=task.progress.step_count,
            status=status,
            model=message.model or task.request.model,
            usage=usage,
            error=message.error,
            node_id=node_id,
        )
        self._branch.append(node)
        if any(map(_is_for_people, node.blocks)):
            self._state.count_message()
        plan = plan_of(task.id, task.progress.step_count, message)
        self._log.publish(TaskPlan(conversation_id=task.conversation_id, plan=plan))

    def _result(self, message: ToolResultMessage) -> None:
        execution_id, summary = self._executions.finish(message.tool_call_id)
        if self._is_detached and not execution_id:
            self._withholds_results = True
        if self._withholds_results:
            return  # results are stored in the order of their calls
        task = self._state.task
        blocks = blocks_of(message, execution_id, summary)
        self._branch.append(
            self._branch.draft("tool_result", message.tool_name, blocks, task_id=task.id, turn=task.progress.step_count)
        )

    def _counted(self, message: AssistantMessage, status: _Outcome) -> Usage:
        """Return the usage of a call; ends the turn's record if the turn is still open."""
        usage = self._usage(message)
        if self._in_call:
            self._in_call = False
            self._state.count(usage)
            task = self._state.task
            self._journal.put(turns.finished(task.id, self._call_number, status, usage, datetime.now(UTC)))
            if message.model not in ("", task.request.model):
                self._journal.put(turns.answered_by(task.id, self._call_number, message.model))
                if task.budget.budget_usd is not None and usage.cost_usd is None:
                    self._remark_once(UnknownPrice(model=message.model))
        return usage

    def _usage(self, message: AssistantMessage) -> Usage:
        used = message.usage
        return Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_read_tokens=used.cache_read_tokens,
            cache_write_tokens=used.cache_write_tokens,
            cost_usd=used.cost_usd if self._has_price(message.model or self._state.task.request.model) else None,
            seconds=time.monotonic() - self._call_started,
            estimated=used.estimated,
        )

    def _reading(self, progress: PromptProgress) -> None:
        """Show how much of the request the server has read; that is not stored."""
        task = self._state.task
        reading = PromptReading(
            conversation_id=task.conversation_id,
            task_id=task.id,
            processed=progress.processed,
            total=progress.total,
        )
        self._log.deltas.add(reading, after=self._log.head)

    def _tool_ended(self, event: ToolExecutionEnd, access: Access | None) -> None:
        """Note how a call ended; `access` is None for one that did not run."""
        self._state.tool_ended(
            event.call_id,
            failed=_has_failed(event, looks=access is not None and access.only_looks),
            changes=access is not None and access.may_change,
            # A change of a file is made whole or not at all.
            unchanged=access is not None and bool(access.writes) and event.result.is_error,
        )

    def _output(self, event: ToolExecutionUpdate) -> None:
        task = self._state.task
        text = "".join(block.text for block in event.result.content if isinstance(block, Text))
        output = ToolOutput(
            conversation_id=task.conversation_id, task_id=task.id, call_id=event.call_id, tool=event.tool, text=text
        )
        self._log.deltas.add(output, after=self._log.head)


def _has_failed(event: ToolExecutionEnd, *, looks: bool) -> bool | None:
    """Return None for a call that says nothing about the work. `looks`: its command changes nothing."""
    result, details = event.result, event.result.details or {}
    if event.tool in CONTROL_NAMES or not {"skipped", "stopped"}.isdisjoint(result.marks):
        return None
    # grep, diff and test end in this way when they find nothing, or a difference.
    has_no_match = looks and details.get("exit_code") == 1 and not details.get("stderr")
    return result.is_error and not has_no_match


def _is_for_people(block: Block) -> bool:
    match block:
        case TextBlock(text=text):
            return bool(text.strip())
        case ToolCallBlock(tool=name):
            return name in (AskUser.name, SendUpdate.name, TaskComplete.name)
        case _:
            return False

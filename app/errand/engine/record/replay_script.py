"""The position in a record during its replay."""

import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from errand.engine.agent.history.conversion import recall_of, user_message
from errand.engine.agent.history.visible_history import summary_of
from errand.engine.agent.prompt.system_prompt import remarks_of
from errand.engine.agent.run.task_run import TaskRun
from errand.engine.core.errors import IllegalMove
from errand.engine.core.ids import new_id
from errand.engine.core.messages import UserMessage, text_of
from errand.engine.record.diff import is_timed
from errand.engine.record.format import TaskRecord
from errand.protocol.asks import Approval
from errand.protocol.blocks import NoticeBlock, RecalledEntry, SummaryBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.notices import NoAnswer, NoSummary, NoticeData, TaskFailed
from errand.protocol.tasks.groups import Queued

NO_SUMMARY = "The record has no summary here: the loop makes one today where it did not then."


@dataclass(frozen=True, slots=True)
class FailedSummary:
    """Why a summary call failed. `is_temporary`: it was not tried again; `ended`: the task ended meanwhile."""

    why: str
    is_temporary: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class _SummaryOutcome:
    """The text of a summary, or the reason of its failure, and the number of replies before it."""

    replies: int
    text: str
    is_failure: bool = False


class RecordedTurn:
    """A recorded reply, the results of its calls, remarks of the model layer, and messages sent meanwhile.

    `is_no_answer`: the reply was taken for none.
    """

    def __init__(self, reply: Node) -> None:
        self.reply = reply
        self.results: dict[str, ToolResultBlock] = {}
        self.remarks: list[NoticeData] = []
        self.messages: list[UserMessage] = []
        self.is_no_answer = False

    @property
    def calls(self) -> tuple[ToolCallBlock, ...]:
        return tuple(block for block in self.reply.blocks if isinstance(block, ToolCallBlock))

    def interrupted_call(self) -> str | None:
        """Return the call during which people sent messages: the last one before the calls that were skipped for
        them.
        """
        ran = [call.call_id for call in self.calls if not self._was_skipped(call.call_id)]
        return ran[-1] if ran else None

    def stopped_call(self) -> str | None:
        """Return the call during which the task was stopped: the first that started and failed, else the last that
        started.
        """
        executed = [call_id for call_id, result in self.results.items() if result.execution_id]
        failed = [call_id for call_id in executed if self.results[call_id].is_error]
        return next(iter((*failed, *reversed(executed), *(call.call_id for call in self.calls))), None)

    def _was_skipped(self, call_id: str) -> bool:
        result = self.results.get(call_id)
        return result is not None and "skipped" in result.marks


class ReplayScript:
    """Tracks one replay. `run` is set before the replay starts."""

    def __init__(self, record: TaskRecord) -> None:
        task = record.head.task
        self.run: TaskRun | None = None
        known_remarks = frozenset(remarks_of(record.head.prompt))
        self.turns = _turns(record.nodes, known_remarks)
        self._summaries = deque(_summary_outcomes(record.nodes))
        self._has_failed = False
        # In records of older versions a summary is a turn of its own.
        summaries = {node.turn for node in record.nodes if summary_of(node) is not None}
        self._answered = {turn.reply.turn for turn in self.turns} | summaries
        self._recalls = {node.turn: block for node in record.nodes if (block := recall_of(node)) is not None}
        self._first_messages = _first_messages(record)
        self.approvals = {
            (_turn_of(ask.approval, self.turns), ask.approval.call_id): ask.approval
            for ask in record.asks
            if ask.approval is not None
        }
        # Inside the workspace, so that the policy allows reading it.
        self.some_file = Path(os.path.realpath(task.request.workspace)) / "recorded"
        self._stops_in_a_step = task.outcome.stop_reason == "manual_stop" or task.activity.status == "interrupted"
        self.ends_early = self._stops_in_a_step or is_timed(task)
        self._was_interrupted = task.activity.status == "interrupted"
        self._turn_index = -1
        self._unchecked: deque[ToolCallBlock] = deque()

    @property
    def turn(self) -> RecordedTurn:
        return self.turns[self._turn_index]

    @property
    def is_last(self) -> bool:
        return self._turn_index >= len(self.turns) - 1

    def next_turn(self) -> RecordedTurn | None:
        """Return the turn of the next model call; None past the end of the record."""
        self._turn_index += 1
        if self._turn_index >= len(self.turns):
            return None
        self._unchecked = deque(self.turn.calls)
        return self.turn

    def is_refused(self) -> bool:
        """Return True if the current call had no reply in the record because its request was too long."""
        assert self.run is not None
        number, coming = self.run.task.progress.step_count, self.turns[self._turn_index + 1 : self._turn_index + 2]
        return number not in self._answered and any(turn.reply.turn > number for turn in coming)

    def next_summary(self) -> str | FailedSummary:
        """Return the outcome of the current summary call."""
        replies = self._turn_index + 1
        if not self._summaries or self._summaries[0].replies != replies:
            is_end = not self._summaries and replies >= len(self.turns)
            return FailedSummary(NO_SUMMARY, is_temporary=False, ended=self._stops_in_a_step and is_end)
        outcome = self._summaries[0]
        # After a permanent failure, the second in a row, a task does not try again.
        is_temporary = len(self._summaries) > 1
        self._has_failed = outcome.is_failure and not is_temporary and not self._has_failed
        if not self._has_failed:
            self._summaries.popleft()
        if outcome.is_failure:
            return FailedSummary(outcome.text, is_temporary, ended=False)
        texts, self._first_messages = self._first_messages, ()
        for text in texts:
            self._send(text)
        return outcome.text

    def recalled(self) -> tuple[RecalledEntry, ...]:
        """Return what was recalled before the coming turn."""
        assert self.run is not None
        block = self._recalls.get(self.run.task.progress.step_count)
        return block.entries if block is not None else ()

    def reply_ends(self) -> None:
        """Deliver messages sent during a reply without calls; they are read after it."""
        if self.turn.interrupted_call() is None:
            self._send_messages()

    def check_call(self, tool: str) -> tuple[str, Approval | None]:
        """Return the next recorded call to be checked, and its approval request."""
        call = next((call for call in self._unchecked if call.tool == tool), None)
        if call is None:
            return "", None
        while self._unchecked.popleft() is not call:
            pass  # calls that were never checked: unknown tool, or wrong arguments
        if call.call_id == self.turn.interrupted_call():
            self._send_messages()
        return call.call_id, self.approvals.get((self._turn_index, call.call_id))

    def is_stopped_in(self, call_id: str) -> bool:
        return self._stops_in_a_step and self.is_last and call_id == self.turn.stopped_call()

    def end_task(self) -> None:
        """Stop or interrupt the task, as recorded."""
        assert self.run is not None
        if self._was_interrupted:
            self.run.interrupt(resumes=False)
            return
        with suppress(IllegalMove):  # it is ending already
            self.run.stop("the record")

    def _send_messages(self) -> None:
        assert self.run is not None
        messages, self.turn.messages = self.turn.messages, []
        for message in messages:
            if message.kind == "as_chat":
                self.run.set_mode("chat")
            elif message.kind in ("as_plan", "plan_over"):
                self.run.announce_plan_mode(is_on=message.kind == "as_plan")
            else:
                self._send(text_of(message))

    def _send(self, text: str) -> None:
        assert self.run is not None
        self.run.queue_message(Queued(id=new_id("queued"), kind="steer", text=text, queued_at=datetime.now(UTC)))


def begins_with_a_message(record: TaskRecord) -> bool:
    """Return False for the turn of one of several agents, and for a summary by hand."""
    return bool(record.nodes) and record.nodes[0].role == "user"


def _turns(nodes: Sequence[Node], known_remarks: Collection[NoticeData]) -> list[RecordedTurn]:
    """Split nodes into turns, without the prompt before the first reply and the loop's own nudges and remarks."""
    turns: list[RecordedTurn] = []
    for node in nodes:
        if node.role == "assistant":
            turns.append(RecordedTurn(node))
        elif turns and node.role == "user":
            message = user_message(node.blocks)
            turns[-1].is_no_answer |= message.kind == "no_answer"
            if message.kind not in ("nudge", "no_work", "cut", "no_answer"):
                turns[-1].messages.append(message)
        elif turns:
            data = (block.data for block in node.blocks if isinstance(block, NoticeBlock))
            turns[-1].is_no_answer |= any(isinstance(each, NoAnswer) for each in data)
            turns[-1].results |= {block.call_id: block for block in node.blocks if isinstance(block, ToolResultBlock)}
            notices = (block for block in node.blocks if isinstance(block, NoticeBlock) and block.kind == "model")
            remarks = (notice.data for notice in notices if notice.data is not None)
            turns[-1].remarks += [data for data in remarks if data not in known_remarks]
    return turns


def _first_messages(record: TaskRecord) -> tuple[str, ...]:
    """Messages that people sent while the first summary of a task was made."""
    if begins_with_a_message(record):
        return ()
    before = takewhile(lambda node: node.role != "assistant", record.nodes)
    return tuple(text_of(user_message(node.blocks)) for node in before if node.role == "user")


def _summary_outcomes(nodes: Sequence[Node]) -> Iterator[_SummaryOutcome]:
    """Yield the summaries of a record, and the reasons of those that failed, from the notices to people."""
    replies = 0
    for node in nodes:
        replies += node.role == "assistant"
        for block in node.blocks:
            match block:
                case SummaryBlock(text=text):
                    yield _SummaryOutcome(replies, text)
                case NoticeBlock(data=NoSummary(reason=why) | TaskFailed(text=why, cause="summary")):
                    yield _SummaryOutcome(replies, why, is_failure=True)
                case _:
                    pass


def _turn_of(approval: Approval, turns: Sequence[RecordedTurn]) -> int:
    """Call ids may repeat in later turns: the first turn whose call has the same command."""
    with_id = [
        index for index, turn in enumerate(turns) if any(call.call_id == approval.call_id for call in turn.calls)
    ]
    exact = [
        index
        for index in with_id
        for call in turns[index].calls
        if call.call_id == approval.call_id and approval.command in (None, call.arguments.get("command"))
    ]
    return next(iter((*exact, *with_id)), -1)

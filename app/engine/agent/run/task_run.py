"""One running task: prompt, stop, end. tasks/running_tasks.py manages all running tasks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.engine.agent.compaction.context_window import ContextWindow
from app.engine.agent.history.visible_history import shorten
from app.engine.agent.loop.agent import Agent
from app.engine.agent.prompt.system_prompt import TaskSystemPrompt, join_parts
from app.engine.agent.run.pause_gate import PauseGate
from app.engine.agent.run.queued_messages import QueuedEntries
from app.engine.agent.run.recorder import TaskRecorder
from app.engine.agent.run.resume import InterruptedTurn
from app.engine.agent.run.stop_policy import StopPolicy
from app.engine.agent.run.task_context import TaskContext
from app.engine.agent.run.task_state import ended_task, is_working, status_text, with_status
from app.engine.core.cancel import CancelSignal, StopCause, stopped_by
from app.engine.core.errors import CannotSave, IllegalMove, StorageError
from app.engine.core.messages import AssistantMessage, UserMessage
from app.engine.tools.control_tools import TaskComplete
from app.engine.tools.processes.termination import ProcessSweep
from app.notice_text import data_text
from app.protocol.blocks import NoticeKind
from app.protocol.notices import (
    EndNotSaved,
    EngineEnded,
    LimitReached,
    Remark,
    TaskCompleted,
    TaskEndNotice,
    TaskFailed,
    TaskStopped,
)
from app.protocol.tasks import Completion, DecidedMode, Queued, Task, TaskStatus, TaskStopReason

_logger = logging.getLogger(__name__)

NO_ANSWER = "The model ended its work without an answer that follows the schema. Try again, or choose another model."

# Only runaway replies are longer; the node keeps the full text.
_LONGEST_SUMMARY = 100_000
_SUMMARISED = "What was said before is summarised for the model."

# Tools stop on the signal; after this time they are cancelled.
_CANCEL_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class _End:
    """How a task ends: its status and reason, its error, and the notice in the conversation."""

    status: TaskStatus
    reason: TaskStopReason | None
    kind: NoticeKind
    notice: TaskEndNotice
    error: str | None = None


class TaskRun:
    """Runs one task from prompt to end. Await `run` once; the other methods may be called meanwhile."""

    def __init__(
        self,
        context: TaskContext,
        gate: PauseGate,
        recorder: TaskRecorder,
        course: StopPolicy,
        completion: TaskComplete,
        agent: Agent,
        briefing: TaskSystemPrompt,
        room: ContextWindow,
        processes: ProcessSweep,
    ) -> None:
        self.branch = context.branch
        self._live = context.state
        self._log = context.log
        self._queue = context.queue
        self._gate = gate
        self._recorder = recorder
        self._course = course
        self._completion = completion
        self._agent = agent
        self._briefing = briefing
        self._room = room
        self._processes = processes
        self._cancel = CancelSignal()
        self._summary_failure: TaskFailed | None = None
        self._has_replied = True
        self._engine_ends = asyncio.Event()
        self._accepts_messages = True
        self._resumes = False

    @property
    def task(self) -> Task:
        return self._live.task

    @property
    def shown(self) -> Task:
        return self._live.shown

    def hold(self, why: str) -> None:
        self._live.hold(why)

    async def run(self, opening: UserMessage | InterruptedTurn | None) -> None:
        """Run the task to its end, from a message, an interrupted turn or the existing history. Never raises."""
        try:
            await self._work(opening)
            end = self._end()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # the end of a task: the error is recorded, the engine continues
            _logger.exception("task %s failed", self.task.id)
            text = str(error)
            failed = TaskFailed(text=text, cause="internal")
            end = _End("error", "error", "error", failed, text or type(error).__name__)
        try:
            await self._processes.end()
        except Exception:  # the end of a task: a failed process search must not prevent recording the end
            _logger.exception("the processes of task %s were not ended", self.task.id)
        try:
            await self._conclude(end)
        except Exception:  # the end of a task: other tasks continue; the next start shows this one as interrupted
            _logger.exception("the end of task %s is not on record", self.task.id)

    def stop(self, by: str) -> None:
        """Begin to stop; repeated calls have no effect."""
        if not is_working(self.task):
            raise IllegalMove(f"The task is {status_text(self.task.status)} already.")
        if self.task.stopping or self._cancel.is_set:
            return
        self._live.set(msgspec.structs.replace(self.task, stopping=True, activity="stopping"))
        self._cancel.set(stopped_by(by))

    @property
    def is_between_steps(self) -> bool:
        """No step is running: ending now loses nothing."""
        return self._gate.has_waiting or self.task.status == "waiting_user" or self.shown.status == "paused"

    def finish_step(self) -> None:
        """Let the current step finish and start no other: the engine shuts down."""
        if not self._gate.is_closed:
            self._gate.close("ending this step: the engine ends")

    def interrupt(self, *, resumes: bool = False) -> None:
        """Stop for an engine shutdown; the task can be resumed, and the next engine does so if `resumes`."""
        self._resumes = resumes
        self._recorder.detach()
        self._engine_ends.set()
        self._cancel.set(StopCause("engine_end"))

    def pause(self) -> None:
        self._check_open()
        if self._gate.is_closed:
            raise IllegalMove("The task is paused already.")
        self._gate.close("paused" if self._gate.limit.is_on else "pausing after this step")

    def resume(self) -> None:
        self._check_open()
        if self._gate.is_closed:
            self._gate.open()
        elif self._gate.limit.is_on:
            self._gate.limit.end()
        else:
            raise IllegalMove("The task is not paused.")

    def try_now(self) -> None:
        """Retry the model call now instead of waiting for a rate limit."""
        self._check_open()
        if not self._gate.limit.is_on:
            raise IllegalMove("The task does not wait for a limit.")
        self._gate.limit.end()

    def set_mode(self, mode: DecidedMode) -> None:
        """Change the mode from the end of this turn on."""
        self._check_open()
        if mode == "task" and not any(tool.name == TaskComplete.name for tool in self._agent.state.tools):
            raise IllegalMove("It was started as a chat. When it has answered, it can go on as a task.")
        if mode != self.task.mode:
            self._course.take_for(mode)

    def queue_message(self, entry: Queued) -> None:
        """Queue a message for the agent."""
        self._check_open()
        self._queue.add(entry)

    def edit_queue(self, change: Callable[[QueuedEntries], QueuedEntries]) -> None:
        """Change the queue of unread messages. Raises `Conflict` for a message that was read."""
        self._check_open()
        self._queue.edit(change)

    def _check_open(self) -> None:
        if self._cancel.is_set or not self._accepts_messages:
            raise IllegalMove("The task is ending. Start a new one in this conversation.")

    async def _work(self, opening: UserMessage | InterruptedTurn | None) -> None:
        work = asyncio.create_task(self._prompt(opening), name=f"agent {self.task.id}")
        stop = asyncio.create_task(self._watch_stop(work), name=f"stop {self.task.id}")
        try:
            await work
        except asyncio.CancelledError:
            if not self._cancel.is_set:
                raise
        finally:
            if not self._cancel.is_set:
                stop.cancel()
            await asyncio.wait([stop])
            if not stop.cancelled() and (error := stop.exception()) is not None:
                _logger.error("task %s was stopped without its processes", self.task.id, exc_info=error)

    async def _prompt(self, opening: UserMessage | InterruptedTurn | None) -> None:
        try:
            await self._set_system_prompt()
            if self.task.summarises:
                self._summary_failure = await self._room.summarise(self.task.model, self._cancel)
                self._has_replied = False
            elif isinstance(opening, UserMessage):
                await self._agent.prompt(opening, self._cancel)
            else:
                await self._agent.continue_(self._cancel, skip_first_poll=opening is not None)
            while self._has_unread():
                self._has_replied = True
                self._completion.completed = None
                await self._agent.continue_(self._cancel)
        finally:
            self._accepts_messages = False

    async def _set_system_prompt(self) -> None:
        """Set the system prompt; notices about omitted parts appear once per conversation."""
        parts = await self._briefing.parts()
        self._agent.set_system_prompt(join_parts(parts))
        if not self._agent.state.messages:
            self._recorder.remark(*(Remark(text=remark) for part in parts for remark in part.remarks))

    def _has_unread(self) -> bool:
        """True if messages arrived while the last turn ended: they are read although it ended the task."""
        ended_well = not self._cancel.is_set and self._agent.state.error is None and not self._course.has_ended_it
        return ended_well and self._summary_failure is None and bool(self.task.queue)

    async def _watch_stop(self, work: "asyncio.Task[None]") -> None:
        """After the signal: end the processes, showing how many are left, then wait for the work to end."""
        await self._cancel.wait()
        try:
            await self._processes.end()
        finally:
            await asyncio.wait([work], timeout=_CANCEL_AFTER_S)
            work.cancel()

    def _end(self) -> _End:
        if self._engine_ends.is_set():
            goes_on = self._gate.limit.is_on and not self.task.own_key
            return _End("interrupted", None, "interrupted", EngineEnded(resumes=goes_on))
        if (over := self._course.limit_end) is not None:
            return _End("cancelled", over.reason, "limit", LimitReached(limit=over.kind, value=over.limit))
        if self._course.stuck is not None:
            return _End("cancelled", "iteration_limit", "limit", self._course.stuck)
        if (cause := self._cancel.cause) is not None:
            return _End("cancelled", "manual_stop", "stopped", TaskStopped(by=cause.by))
        if self._agent.state.error is not None:
            return _failed(TaskFailed(text=self._agent.state.error, cause="reply"))
        if self._summary_failure is not None:
            return _failed(self._summary_failure)
        if self.task.answer_schema is not None and self._completion.completed is None:
            return _failed(TaskFailed(text=NO_ANSWER, cause="no_answer"))
        return _End("completed", "completed", "info", TaskCompleted())

    async def _conclude(self, end: _End) -> None:
        """Write the final record, then publish the end; the task's processes have ended by now."""
        self._recorder.close()
        self._announce_end(end.kind, self._with_leftovers(end.notice))
        lost = await self._try_save(self.branch.save)
        if lost:
            self.branch.take_back()
            end = _End("error", "error", "error", EndNotSaved(text=lost), lost)
            self._announce_end(end.kind, end.notice)
            await self._try_save(self.branch.save)
        if end.reason is None:
            task = msgspec.structs.replace(
                with_status(self.task, end.status),
                stopping=False,
                current_tool=None,
                activity="",
                resumes=self._resumes,
            )
        else:
            task = ended_task(self.task, end.status, end.reason, end.error)
        answer = self._completion.answer if end.status == "completed" else None
        completion = self._completion_kind() if end.status == "completed" else None
        self._live.set(msgspec.structs.replace(task, summary=self._summary(), answer=answer, completion=completion))
        await self._try_save(self._log.flush)

    def _announce_end(self, kind: NoticeKind, notice: TaskEndNotice) -> None:
        """Add a notice about the end of the task. A good end has none, unless something was left over."""
        if notice != TaskCompleted():
            self._recorder.notice(kind, notice)
        self.branch.announce_head()

    async def _try_save(self, save: Callable[[], Awaitable[None]]) -> str:
        """Save; returns the error text. Empty also for `CannotSave`: then the whole engine shuts down."""
        try:
            await save()
        except StorageError as error:
            _logger.error("the end of task %s is not saved: %s", self.task.id, error)
            return "" if isinstance(error, CannotSave) else str(error)
        return ""

    def _completion_kind(self) -> Completion:
        """How the completion was determined (docs/decisions/0003)."""
        if self.task.refused_calls and not self.task.acting_calls:
            return "refused"
        if self._completion.completed is not None:
            return "declared"
        if not self._has_replied:
            return "replied"
        replies = (m for m in reversed(self._agent.state.messages) if isinstance(m, AssistantMessage))
        last = next(replies, None)
        if last is not None and last.stop_reason == "length":
            return "cut"
        return "undeclared" if self.task.mode == "task" else "replied"

    def _with_leftovers(self, notice: TaskEndNotice) -> TaskEndNotice:
        """The notice with the processes that were ended and the messages that were not read."""
        ended = tuple(self._processes.ended.values())
        match notice:
            case EndNotSaved():
                return notice
            case EngineEnded():  # the resumed task will read the messages
                return msgspec.structs.replace(notice, ended=ended)
            case _:
                return msgspec.structs.replace(notice, ended=ended, unread=tuple(map(_shown, self.task.queue)))

    def _summary(self) -> str:
        if self._completion.completed is not None:
            return self._completion.completed
        if not self._has_replied:
            return _SUMMARISED if self._summary_failure is None and not self._cancel.is_set else ""
        replies = (m.text for m in reversed(self._agent.state.messages) if isinstance(m, AssistantMessage) and m.text)
        return shorten(next(replies, ""), _LONGEST_SUMMARY)


def _failed(notice: TaskFailed) -> _End:
    return _End("error", "error", "error", notice, data_text(notice))


def _shown(entry: Queued) -> str:
    """The text, or the names of the attachments if it is empty."""
    return entry.text.strip() or ", ".join(Path(path).name for path in entry.attachments)

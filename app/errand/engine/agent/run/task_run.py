"""One running task: prompt, stop, end. tasks/running_tasks.py manages all running tasks."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from errand.engine.agent.compaction.context_window import ContextWindow
from errand.engine.agent.loop.loop import run_loop
from errand.engine.agent.loop.run_state import LoopRun
from errand.engine.agent.prompt.system_prompt import TaskSystemPrompt, join_parts, remarks_of
from errand.engine.agent.run.delegation import Delegation
from errand.engine.agent.run.pause_gate import PauseGate
from errand.engine.agent.run.queued_messages import QueuedEntries
from errand.engine.agent.run.recorder import TaskRecorder
from errand.engine.agent.run.replies.untouched_names import CallNames
from errand.engine.agent.run.resume import InterruptedTurn
from errand.engine.agent.run.stop_policy import StopPolicy
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.agent.run.task_end import TaskConclusion, TaskEnd, failed
from errand.engine.agent.run.task_state import is_working, status_text
from errand.engine.agent.run.tools.service_tools import ServiceTools
from errand.engine.core.cancel import StopCause, stopped_by
from errand.engine.core.errors import IllegalMove
from errand.engine.core.messages import Message, UserMessage
from errand.engine.models.base import ChatModel
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.control.task_messages import TaskComplete
from errand.engine.tools.processes.termination import ProcessSweep
from errand.protocol.notices import (
    EngineEnded,
    LimitReached,
    TaskCompleted,
    TaskFailed,
    TaskStopped,
)
from errand.protocol.tasks.groups import ApproveMode, DecidedMode, Queued
from errand.protocol.tasks.task import Task, replace_fields

_logger = logging.getLogger(__name__)

NO_ANSWER = "The model ended its work without an answer that follows the schema. Try again, or choose another model."

# Tools stop on the signal; after this time they are cancelled.
_CANCEL_AFTER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParts:
    """The parts of one task, joined by `TaskBuilder`."""

    context: TaskContext
    gate: PauseGate
    recorder: TaskRecorder
    names: CallNames
    policy: StopPolicy
    completion: TaskComplete
    loop: LoopRun
    system_prompt: TaskSystemPrompt
    window: ContextWindow
    processes: ProcessSweep
    sandbox: CommandSandbox | None
    delegation: Delegation | None
    model: ChatModel
    services: ServiceTools | None


class _Step:
    """A step in the life of a task whose failure is logged: the next step follows, and other tasks continue."""

    def __init__(self, task_id: str, failure: str) -> None:
        self._task_id = task_id
        self._failure = failure
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        _logger.error("task %s %s", self._task_id, self._failure, exc_info=error)
        self.error = error
        return True


class TaskRun:
    """Runs one task from prompt to end. Await `run` once; the other methods may be called meanwhile."""

    def __init__(self, parts: TaskParts) -> None:
        self.branch = parts.context.branch
        self.delegation = parts.delegation
        self.model = parts.model
        self._parts = parts
        self.state = parts.context.state
        self._queue = parts.context.queue
        self._gate = parts.gate
        self._policy = parts.policy
        self._processes = parts.processes
        self._loop = parts.loop
        self._conclusion = TaskConclusion(
            parts.context,
            parts.recorder,
            parts.completion,
            parts.loop,
            parts.names,
            lambda: parts.policy.missing is None,
        )
        self._cancel = parts.loop.cancel
        self._summary_failure: TaskFailed | None = None
        self._engine_ends = asyncio.Event()
        self._accepts_messages = True
        self._resumes = False

    @property
    def task(self) -> Task:
        return self.state.task

    @property
    def shown(self) -> Task:
        return self.state.shown

    async def run(self, opening: UserMessage | InterruptedTurn | None) -> None:
        """Run the task to its end, from a message, an interrupted turn or the existing history. Never raises."""
        end: TaskEnd | None = None
        with _Step(self.task.id, "failed") as work:
            end = await self._work(opening)
        if end is None:
            text = str(work.error) or type(work.error).__name__
            end = TaskEnd("error", "error", "error", TaskFailed(text=text, cause="internal"), text)
        if self.delegation is not None:
            self.delegation.close()
        with _Step(self.task.id, "did not end its processes"):
            await self._end_processes()
        with _Step(self.task.id, "has no end on record"):  # the next start shows it as interrupted then
            await self._conclusion.write(end, tuple(self._processes.ended.values()))

    async def _end_processes(self) -> None:
        await self._processes.end()
        sandbox = self._parts.sandbox
        if sandbox is None:
            return
        await sandbox.close()
        if moved := await sandbox.after(has_background=False):
            _logger.warning("task %s left files that are not kept: %s", self.task.id, ", ".join(moved))

    def stop(self, by: str) -> None:
        """Begin to stop; repeated calls have no effect."""
        if not is_working(self.task):
            raise IllegalMove(f"The task is {status_text(self.task.activity.status)} already.")
        if self.task.activity.stopping or self._cancel.is_set:
            return
        self.state.set(replace_fields(self.task, stopping=True, detail="stopping"))
        self._cancel.set(stopped_by(by))

    @property
    def is_between_steps(self) -> bool:
        """No step is running: ending now loses nothing."""
        if self.state.only_delegates:  # its sub-agents have steps of their own
            return True
        return (
            self._gate.has_waiting
            or self.task.activity.status == "waiting_user"
            or self.shown.activity.status == "paused"
        )

    def finish_step(self) -> None:
        """Let the current step finish and start no other: the engine shuts down."""
        if not self._gate.is_closed:
            self._gate.close("ending this step: the engine ends")

    def interrupt(self, *, resumes: bool = False) -> None:
        """Stop for an engine shutdown; the task can be resumed, and the next engine does so if `resumes`."""
        self._resumes = resumes
        self._parts.recorder.detach()
        self._engine_ends.set()
        self._cancel.set(StopCause("engine_end"))

    def pause(self) -> None:
        self._check_open()
        if self._gate.is_closed:
            raise IllegalMove("The task is paused already.")
        self.state.set_pausing(True)
        self._gate.close("paused" if self._gate.limit.is_active else "pausing after this step")

    def resume(self) -> None:
        self._check_open()
        if self._gate.is_closed:
            self.state.set_pausing(False)
            self._gate.open()
        elif self._gate.limit.is_active:
            self._gate.limit.end()
        else:
            raise IllegalMove("The task is not paused.")

    def try_now(self) -> None:
        """Retry the model call now instead of waiting for a rate limit."""
        self._check_open()
        if not self._gate.limit.is_active:
            raise IllegalMove("The task does not wait for a limit.")
        self._gate.limit.end()

    def set_mode(self, mode: DecidedMode) -> None:
        """Change the mode from the end of this turn on."""
        self._check_open()
        if mode == "task" and TaskComplete.name not in self._loop.tools:
            raise IllegalMove("It was started as a chat. When it has answered, it can go on as a task.")
        if mode != self.task.options.mode:
            self._policy.apply_mode(mode)

    def set_approve(self, mode: ApproveMode, *, attended: bool) -> None:
        """Change the approval mode from the next check on; the agent reads after this turn that plan mode changed.

        `attended`: a person chose it, who can be asked from now on.
        """
        before = self.task.options.approve
        self.state.set(replace_fields(self.task, approve=mode, attended=attended or self.task.options.attended))
        if mode != before and "plan" in (before, mode):
            self.announce_plan_mode(is_on=mode == "plan")

    def announce_plan_mode(self, *, is_on: bool) -> None:
        """Tell the agent after this turn that plan mode begins or has ended."""
        self._policy.plan_message = "as_plan" if is_on else "plan_over"

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

    async def _work(self, opening: UserMessage | InterruptedTurn | None) -> TaskEnd:
        """Work until nothing is left to read, and return how that ended.

        Once the task is stopped, the work is cancelled if it does not end.
        """
        worker, is_over = asyncio.current_task(), asyncio.Event()
        assert worker is not None
        stop = asyncio.create_task(self._watch_stop(worker, is_over), name=f"stop {self.task.id}")
        try:
            await self._set_system_prompt()
            if self._parts.services is not None:
                self._loop.set_tools(await self._parts.services.connect(self._cancel))
            if self.task.request.summarises and not self.task.progress.summarised:
                self._summary_failure = await self._parts.window.summarise(self.task.request.model, self._cancel)
                self._conclusion.has_replied = False
            else:
                prompts = (opening,) if isinstance(opening, UserMessage) else ()
                await run_loop(self._loop, prompts, skip_first_poll=isinstance(opening, InterruptedTurn))
            while self._has_unread():
                self._conclusion.has_replied = True
                self._parts.completion.completed = None
                await run_loop(self._loop, self._take_follow_up())
        except asyncio.CancelledError:
            if self._cancel.is_set:
                worker.uncancel()
            else:
                self._cancel.set(StopCause("cancelled"))  # also stops work in threads and processes
        finally:
            self._accepts_messages = False
            is_over.set()
            if not self._cancel.is_set:
                stop.cancel()
            await asyncio.wait([stop])
            if not stop.cancelled() and (error := stop.exception()) is not None:
                _logger.error("task %s was stopped without its processes", self.task.id, exc_info=error)
        return self._end()

    async def _set_system_prompt(self) -> None:
        """Set the system prompt; notices about omitted parts appear once per conversation."""
        parts = await self._parts.system_prompt.parts(self._cancel)
        self._loop.config = replace(self._loop.config, system_prompt=join_parts(parts))
        if not self._loop.messages:
            self._parts.recorder.remark(*remarks_of(parts))

    def _has_unread(self) -> bool:
        """Return True if messages arrived while the last turn ended: they are read although it ended the task."""
        ended_well = not self._cancel.is_set and self._loop.error is None and not self._policy.has_ended_task
        return ended_well and self._summary_failure is None and bool(self.task.queue)

    def _take_follow_up(self) -> tuple[Message, ...]:
        """Take the message to continue from, unless there is another; the loop itself takes messages that steer."""
        must_prompt = self._loop.messages[-1].role == "assistant" and not self._loop.steering.waiting
        return self._loop.follow_ups.take() if must_prompt else ()

    async def _watch_stop(self, worker: "asyncio.Task[object]", is_over: asyncio.Event) -> None:
        """After the signal: end the processes, showing how many are left, then wait for the work to end."""
        await self._cancel.wait()
        try:
            await self._processes.end()
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CANCEL_AFTER_S):
                    await is_over.wait()
            if not is_over.is_set():
                worker.cancel()

    def _end(self) -> TaskEnd:
        if self._engine_ends.is_set():
            goes_on = self._gate.limit.is_active and not self.task.request.own_key
            return TaskEnd("interrupted", None, "interrupted", EngineEnded(resumes=goes_on), resumes=self._resumes)
        if (over := self._policy.limit_end) is not None:
            return TaskEnd("cancelled", over.reason, "limit", LimitReached(limit=over.kind, value=over.limit))
        if self._policy.stuck is not None:
            return TaskEnd("cancelled", "iteration_limit", "limit", self._policy.stuck)
        if (cause := self._cancel.cause) is not None:
            return TaskEnd("cancelled", "manual_stop", "stopped", TaskStopped(by=cause.by))
        if self._loop.error is not None:
            return failed(TaskFailed(text=self._loop.error, cause="reply"))
        if self._summary_failure is not None:
            return failed(self._summary_failure)
        if self.task.request.answer_schema is not None and self._parts.completion.completed is None:
            return failed(TaskFailed(text=NO_ANSWER, cause="no_answer"))
        return TaskEnd("completed", "completed", "info", TaskCompleted())

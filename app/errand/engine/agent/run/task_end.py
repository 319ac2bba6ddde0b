"""The end of a task: how it ends, and its final record."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.engine.agent.history.shortening import shorten
from errand.engine.agent.loop.run_state import LoopRun
from errand.engine.agent.run.recorder import TaskRecorder
from errand.engine.agent.run.replies.untouched_names import CallNames
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.agent.run.task_state import ended_task, must_work, with_status
from errand.engine.core.errors import CannotSave, StorageError
from errand.engine.core.messages import AssistantMessage
from errand.engine.tools.control.task_messages import TaskComplete
from errand.protocol.blocks import NoticeKind
from errand.protocol.notices import EndedProcess, EndNotSaved, EngineEnded, TaskCompleted, TaskEndNotice, TaskFailed
from errand.protocol.tasks.groups import Completion, Queued, TaskStatus, TaskStopReason
from errand.protocol.tasks.task import replace_fields
from errand.text.notice_text import data_text

_logger = logging.getLogger(__name__)

# Only runaway replies are longer; the node keeps the full text.
_MAX_SUMMARY_LENGTH = 100_000
_SUMMARISED = "What was said before is summarised for the model."


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The end of a task: its status and reason, its error, and the notice in the conversation.

    `resumes`: the next engine resumes the interrupted task by itself.
    """

    status: TaskStatus
    reason: TaskStopReason | None
    kind: NoticeKind
    notice: TaskEndNotice
    error: str | None = None
    resumes: bool = False


def failed(notice: TaskFailed) -> TaskEnd:
    return TaskEnd("error", "error", "error", notice, data_text(notice))


class TaskConclusion:
    """Writes the final record of one task. `has_replied` is False for a task that only made a summary.

    `has_answer` is False if its last reply is no answer.
    """

    def __init__(
        self,
        context: TaskContext,
        recorder: TaskRecorder,
        completion: TaskComplete,
        loop: LoopRun,
        names: CallNames,
        has_answer: Callable[[], bool],
    ) -> None:
        self.has_replied = True
        self._has_answer = has_answer
        self._state = context.state
        self._branch = context.branch
        self._log = context.log
        self._recorder = recorder
        self._completion = completion
        self._loop = loop
        self._names = names

    async def write(self, end: TaskEnd, ended: tuple[EndedProcess, ...]) -> None:
        """Write the final record, then publish the end. `ended` are the processes that ended with the task."""
        self._recorder.close()
        self._announce_end(end.kind, self._with_leftovers(end.notice, ended))
        lost = await self._try_save(self._branch.save)
        if lost:
            self._branch.take_back()
            end = TaskEnd("error", "error", "error", EndNotSaved(text=lost), lost)
            self._announce_end(end.kind, end.notice)
            await self._try_save(self._branch.save)
        if end.reason is None:
            task = replace_fields(
                with_status(self._state.task, end.status),
                stopping=False,
                pausing=False,
                current_tool=None,
                calls=(),
                detail="",
                resumes=end.resumes,
            )
        else:
            task = ended_task(self._state.task, end.status, end.reason, end.error)
        answer = self._completion.answer if end.status == "completed" else None
        completion = self._completion_kind() if end.status == "completed" else None
        summary = self._summary(end)
        untouched = await self._untouched(summary, completion)
        self._state.set(
            replace_fields(
                task,
                summary=summary,
                untouched=untouched,
                changed_nothing=end.reason is not None and not self._state.may_have_changed,
                answer=answer,
                completion=completion,
            )
        )
        await self._try_save(self._log.flush)

    def _announce_end(self, kind: NoticeKind, notice: TaskEndNotice) -> None:
        """Add a notice about the end of the task. A successful end has one only if something was left over."""
        if notice != TaskCompleted():
            self._recorder.notice(kind, notice)
        self._branch.announce_head()

    async def _try_save(self, save: Callable[[], Awaitable[None]]) -> str:
        """Save; returns the error text. Empty also for `CannotSave`: then the whole engine shuts down."""
        try:
            await save()
        except StorageError as error:
            _logger.error("the end of task %s is not saved: %s", self._state.task.id, error)
            return "" if isinstance(error, CannotSave) else str(error)
        return ""

    def _completion_kind(self) -> Completion:
        """Return how the task was completed (docs/decisions/0003)."""
        task = self._state.task
        if (
            task.progress.refused_calls and not task.progress.acting_calls and task.options.approve != "plan"
        ):  # there it ends with a plan
            return "refused"
        has_declared = self._completion.completed is not None
        if not has_declared and not self.has_replied:
            return "replied"
        if not has_declared and (broken := self._broken_end()) is not None:
            return broken
        if not task.progress.tool_runs:
            return "no_work" if must_work(task) else "answered"
        if has_declared:
            return "declared"
        return "undeclared" if task.options.mode == "task" else "replied"

    def _broken_end(self) -> Completion | None:
        """Return why the last reply is no end of a task; None if it is one."""
        replies = (m for m in reversed(self._loop.messages) if isinstance(m, AssistantMessage))
        last = next(replies, None)
        if last is not None and last.stop_reason == "length":
            return "cut"
        return None if self._has_answer() else "no_answer"

    async def _untouched(self, summary: str, completion: Completion | None) -> tuple[str, ...]:
        if completion not in ("declared", "replied"):
            return ()
        task, is_declared = self._state.task, completion == "declared"
        workspace = Path(task.request.workspace)
        return await self._names.untouched(summary, workspace, task.started_at, is_declared=is_declared)

    def _with_leftovers(self, notice: TaskEndNotice, ended: tuple[EndedProcess, ...]) -> TaskEndNotice:
        """Return the notice with the processes that were ended and the messages that were not read."""
        match notice:
            case EndNotSaved():
                return notice
            case EngineEnded():  # the resumed task will read the messages
                return msgspec.structs.replace(notice, ended=ended)
            case _:
                return msgspec.structs.replace(notice, ended=ended, unread=tuple(map(_shown, self._state.task.queue)))

    def _summary(self, end: TaskEnd) -> str:
        if self._completion.completed is not None:
            return self._completion.completed
        if not self.has_replied:
            return _SUMMARISED if end.status == "completed" else ""
        replies = (m.text for m in reversed(self._loop.messages) if isinstance(m, AssistantMessage) and m.text)
        return shorten(next(replies, ""), _MAX_SUMMARY_LENGTH)


def _shown(entry: Queued) -> str:
    """Return the text, or the names of the attachments if it is empty."""
    return entry.text.strip() or ", ".join(Path(path).name for path in entry.attachments)

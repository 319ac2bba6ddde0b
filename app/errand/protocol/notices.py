"""Notices as data: what happened during a task. `errand.text.notice_text` has the sentences of clients and exports."""

from typing import Literal, TypeAlias

from errand.protocol.base import Wire
from errand.protocol.tasks.groups import LimitKind

# `reply`: the model's last reply failed; `summary`: no summary was made; `nothing_to_summarise`: nor was one tried;
# `no_answer`: no answer follows the schema; `internal`: an error of the engine.
FailureCause = Literal["reply", "summary", "nothing_to_summarise", "no_answer", "internal"]
PromptRemarkCode = Literal[
    "too_long", "no_text", "unreadable", "no_front_matter", "too_many_skills", "too_many_facts", "untrusted_skills"
]
ThinkingObstacle = Literal["no_thinking", "no_way", "always"]
MissingAnswer = Literal["empty", "unfinished", "call_as_text"]
RoundEndReason = Literal["limit", "budget", "failed", "not_started"]


class EndedProcess(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A process that was ended.

    `started`, in the clock of the process table, distinguishes processes with a reused pid.

    `still_there`: it could not be ended, since it belongs to another user or hangs in the kernel.
    """

    pid: int
    started: float
    name: str
    still_there: bool = False


class TaskCompleted(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="taskCompleted"):
    """`ended` are the processes that ended with the task, `unread` the messages that it did not read.

    Sent only if there are any. Other ends of a task have these fields too, where they apply.
    """

    ended: tuple[EndedProcess, ...] = ()
    unread: tuple[str, ...] = ()


class TaskStopped(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="taskStopped"):
    by: str
    ended: tuple[EndedProcess, ...] = ()
    unread: tuple[str, ...] = ()


class LimitReached(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="limitReached"):
    """A limit ended the task. `value` is the limit in its unit: turns, minutes, dollars, or tokens."""

    limit: LimitKind
    value: float
    ended: tuple[EndedProcess, ...] = ()
    unread: tuple[str, ...] = ()


class TaskStuck(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="taskStuck"):
    """The task ended because it made the same call `count` times, with the same result, and nobody could be asked.

    `others` are the calls that came between, which were the same too.
    """

    count: int
    call: str
    others: tuple[str, ...] = ()
    ended: tuple[EndedProcess, ...] = ()
    unread: tuple[str, ...] = ()


class TaskFailed(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="taskFailed"):
    """`text` is the error that was the cause."""

    text: str
    cause: FailureCause
    ended: tuple[EndedProcess, ...] = ()
    unread: tuple[str, ...] = ()


class EndNotSaved(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="endNotSaved"):
    """The end of the task could not be stored. `text` is the storage error, which is the error of the task."""

    text: str


class EngineEnded(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="engineEnded"):
    """The engine ended and interrupted the task. `resumes`: it continues by itself when a rate limit has passed."""

    resumes: bool = False
    ended: tuple[EndedProcess, ...] = ()


TaskEndNotice: TypeAlias = (
    TaskCompleted | TaskStopped | LimitReached | TaskStuck | TaskFailed | EndNotSaved | EngineEnded
)


class LimitShare(Wire, frozen=True, kw_only=True):
    """The used part of a limit, in the unit of the limit."""

    limit: LimitKind
    used: float
    value: float


class LimitsNear(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="limitsNear"):
    """A warning before a limit, at which the task `asks` or else stops."""

    shares: tuple[LimitShare, ...]
    asks: bool = False


class RepeatedCall(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="repeatedCall"):
    """The same call was made `count` times with the same result; `others` are the calls that came between."""

    count: int
    call: str
    others: tuple[str, ...] = ()


class ContextNearlyFull(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="contextNearlyFull"):
    """`share` of the context window is used, 0 to 1; a summary follows soon."""

    share: float


class ContextTruncated(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="contextTruncated"):
    """The number of oldest entries left out of requests from now on, and whether the newest result is shortened."""

    entries: int = 0
    shortens_result: bool = False


class NoSummary(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="noSummary"):
    reason: str


class ReplyCut(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="replyCut"):
    """The engine ended a reply; `reason` completes "because it …"."""

    reason: str


class NoAnswer(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="noAnswer"):
    """The task ended with a reply that is no answer, also after the model was told so.

    `empty`: no text and no call, thoughts at most; `unfinished`: the model ended it as if a call or more text followed;
    `call_as_text`: a tool call that was written as text and did not run.
    """

    why: MissingAnswer


class ModelChanged(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="modelChanged"):
    """Another model was used. `reason` is the previous model's error, empty if it failed in the last minute.

    `serves_other`: the server of the previous model serves this one now.
    """

    from_model: str
    to_model: str
    reason: str = ""
    serves_other: bool = False


class ToolsAsText(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="toolsAsText"):
    """The model does not support tool calls: it writes them as text."""

    model: str


class SmallWindow(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="smallWindow"):
    """Ollama gives the model a context window of `window` tokens, of the `trained` ones that it could have."""

    model: str
    window: int
    trained: int


class TemperatureLeftOut(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="temperatureLeftOut"):
    """The model refuses this temperature, or `thinks` and so has a fixed one."""

    model: str
    temperature: float
    thinks: bool = False


class ThinkingNotSent(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="thinkingNotSent"):
    """The chosen thinking level does not reach the model.

    `no_thinking`: it does not think; `no_way`: how it is told is not known; `always`: it cannot be told not to think.
    """

    model: str
    level: str
    why: ThinkingObstacle


class UnknownPrice(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="unknownPrice"):
    """The budget of the task cannot be enforced for this model."""

    model: str


class RoundEnded(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="roundEnded"):
    """A round of several agents ended before `next_agent`. `speaker` is the agent that failed.

    `replies` is the reached limit of replies in a row, `error` why the next agent could not start.
    """

    reason: RoundEndReason
    next_agent: str
    speaker: str = ""
    replies: int = 0
    error: str = ""


class AnsweredBeside(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="answeredBeside"):
    """`agent` was busy or its head had moved, so `other` answers on a separate branch."""

    agent: str
    other: str


class PromptRemark(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="promptRemark"):
    """A remark that a system prompt leaves out some or all of `path`, a file or a skill.

    `too_long`: only the first `count` bytes are read, since `most` are read of all files; `no_text` and `unreadable`:
    it is not read; `no_front_matter`: the skill and `count` more are left out; `too_many_skills`: it and all after it
    are left out, since `most` are named; `too_many_facts`: the `count` oldest are left out, since all together may take
    `most` tokens; there is no path; `untrusted_skills`: the skill and `count` more are left out, since nobody has
    trusted the skills of this workspace as they are.
    """

    code: PromptRemarkCode
    path: str
    count: int = 0
    most: int = 0


class Remark(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="remark"):
    """A sentence: from a program that shares its models, or about the system prompt in an older version."""

    text: str


class SummaryForgotten(Wire, frozen=True, kw_only=True, omit_defaults=True, tag="summaryForgotten"):
    """A summary was here. It was removed, since a person had a text removed from which it was made."""


ContextNotice: TypeAlias = ContextNearlyFull | ContextTruncated | NoSummary
ReplyNotice: TypeAlias = (
    ReplyCut | NoAnswer | ModelChanged | ToolsAsText | SmallWindow | TemperatureLeftOut | ThinkingNotSent | UnknownPrice
)
NoticeData: TypeAlias = (
    TaskEndNotice
    | LimitsNear
    | RepeatedCall
    | ContextNotice
    | ReplyNotice
    | RoundEnded
    | AnsweredBeside
    | PromptRemark
    | Remark
    | SummaryForgotten
)

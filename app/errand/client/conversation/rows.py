"""The rows of a transcript as plain data."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.protocol.agents import Color
from errand.protocol.asks import Ask
from errand.protocol.blocks import (
    FileBlock,
    ImageBlock,
    NoticeBlock,
    RecallBlock,
    SummaryBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Node
from errand.protocol.tasks.groups import CallProgress
from errand.protocol.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Speaker:
    """An agent as shown in the transcript; `model` is empty unless the agent has its own model."""

    name: str
    color: Color
    model: str = ""


@dataclass(frozen=True, slots=True)
class UserRow:
    """A person's message: the bubble on the right. `mentions` are the agents that it names with @."""

    key: str
    node: Node
    text: str
    mentions: tuple[Speaker, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """A part of an agent's text in Markdown: whole paragraphs, one list, one table or one fenced block.

    A reply is split into parts so that only the last one changes while it streams. `step` is the turn, set on the
    first part of a reply, else 0.
    """

    key: str
    node: Node
    markdown: str
    streaming: bool
    step: int


@dataclass(frozen=True, slots=True)
class ThinkingRow:
    key: str
    node: Node
    text: str
    streaming: bool


# `pending`: it has not begun, for it waits for the calls before it; `asks`: it needs approval and has not begun;
# `ended`: its result follows with those of the calls beside it; `unknown`: the engine was killed while it ran, and a
# person must decide how to continue; `interrupted`: its task was; `dropped`: its task ended before it began.
CallState = Literal["pending", "asks", "running", "ended", "unknown", "interrupted", "dropped"]


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """A tool call and its result, if there is one; `output` is the output so far.

    `state` is that of a call without a result, `progress` when it began and ended. `settled` are the settled asks of
    the call, oldest first. `sub_agent` is the task that the call has started, `result_id` the node with the result.
    """

    key: str
    node: Node
    call: ToolCallBlock
    result: ToolResultBlock | None
    output: str
    state: CallState = "running"
    progress: CallProgress | None = None
    settled: tuple[Ask, ...] = ()
    sub_agent: Task | None = None
    result_id: str = ""


@dataclass(frozen=True, slots=True)
class ImageRow:
    key: str
    node: Node
    image: ImageBlock


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file attached to a message: its name, not its content."""

    key: str
    node: Node
    file: FileBlock


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """A notice of the engine, or a reply that failed or was truncated."""

    key: str
    node: Node
    notice: NoticeBlock


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The summary that replaces the earlier messages for the model, up to some entries above."""

    key: str
    node: Node
    summary: SummaryBlock


@dataclass(frozen=True, slots=True)
class RecallRow:
    """The entries that an agent was given from memory for the message above."""

    key: str
    node: Node
    recall: RecallBlock


@dataclass(frozen=True, slots=True)
class AskRow:
    """A question, an approval or a reached limit, at its position in the conversation.

    A settled approval is part of the row of its call. `others` are identical asks that wait, here or in other
    conversations.
    """

    key: str
    ask: Ask
    others: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskEndRow:
    """The end of a task: complete with its summary, stopped, failed or at a limit.

    `reply` is the last reply in Markdown. `stopped_by` is the client that stopped the task, empty if none did.
    `remarks` say what was truncated, ended or not read. `retry_id` is the reply that a retry generates again, `fork_id`
    the node where another branch can start; None if there is none. `is_model_failure`: the model or its provider did
    not answer, which its settings may mend.
    """

    key: str
    task: Task
    reply: str = ""
    stopped_by: str = ""
    remarks: tuple[str, ...] = ()
    retry_id: str | None = None
    fork_id: str | None = None
    is_model_failure: bool = False


@dataclass(frozen=True, slots=True)
class EditMessageRow:
    """A person's message while it is edited; `text` is the original text.

    While `locked` it cannot be sent, because an agent is writing here.
    """

    key: str
    node: Node
    text: str
    locked: bool = False


@dataclass(frozen=True, slots=True)
class BranchSwitchRow:
    """The switch at a node with siblings: `number` of `count`, with the previous and the next sibling.

    `node_ids` are all siblings, oldest first. `is_user`: the switch is below a person's message, otherwise above a
    reply. While `locked` it is disabled, because an agent is writing here.
    """

    key: str
    number: int
    count: int
    previous_id: str | None
    next_id: str | None
    is_user: bool
    locked: bool
    node_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BranchEndRow:
    """The end of the shown branch if the conversation continues elsewhere: `child_ids` are the first nodes there."""

    key: str
    child_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpeakerRow:
    """The author of the replies below, in a conversation with several agents."""

    key: str
    node: Node
    speaker: Speaker


@dataclass(frozen=True, slots=True)
class StepRow:
    """The heading of a turn, in a task of several turns. `number` counts from 1."""

    key: str
    number: int


Row: TypeAlias = (
    UserRow
    | ReplyRow
    | ThinkingRow
    | ToolCallRow
    | ImageRow
    | FileRow
    | NoticeRow
    | SummaryRow
    | RecallRow
    | AskRow
    | TaskEndRow
    | EditMessageRow
    | BranchSwitchRow
    | BranchEndRow
    | SpeakerRow
    | StepRow
)

"""The items of a conversation that is shown as it grows, in the order in which they come (`ConversationFeed`)."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.protocol.asks import Ask
from errand.protocol.blocks import NoticeBlock, RecallBlock, SummaryBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.groups import TodoItem
from errand.protocol.tasks.task import Task

TextKind: TypeAlias = Literal["text", "thinking"]


@dataclass(frozen=True, slots=True)
class MessageItem:
    """A person's message, unless it was typed in this client. `attachments` are names."""

    node: Node
    text: str
    attachments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EngineMessageItem:
    """A message of the engine to the agent."""

    node: Node


@dataclass(frozen=True, slots=True)
class OrderItem:
    """The task of a sub-agent, as its caller wrote it."""

    node: Node
    text: str


@dataclass(frozen=True, slots=True)
class SpeakerItem:
    """Another agent speaks from here on. `node` is its reply if that is complete."""

    name: str
    node: Node | None


@dataclass(frozen=True, slots=True)
class PieceItem:
    """A part of a text or thought that streams. `is_first`: it begins one; `restarts`: the one before is void."""

    kind: TextKind
    text: str
    is_first: bool
    restarts: bool = False


@dataclass(frozen=True, slots=True)
class TextItem:
    """A complete text or thought. `rest` is what its pieces did not bring; None if there were none, or other ones."""

    kind: TextKind
    text: str
    rest: str | None


@dataclass(frozen=True, slots=True)
class SaidItem:
    """A text that the agent passed to a tool that only shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class CallItem:
    """A call of a tool that has yet to run."""

    call: ToolCallBlock


@dataclass(frozen=True, slots=True)
class ResultItem:
    """The result of a call; `call` is None if it was made before the first event.

    `is_previewed`: a person saw what it changes when they allowed it. `is_stopped`: the task was being stopped.
    """

    call: ToolCallBlock | None
    result: ToolResultBlock
    is_previewed: bool
    is_stopped: bool


@dataclass(frozen=True, slots=True)
class PastQuestionItem:
    """A question that was answered before the first event, with its answer."""

    call: ToolCallBlock
    result: ToolResultBlock


@dataclass(frozen=True, slots=True)
class BrokenReplyItem:
    """The end of a reply that failed or was cut off."""

    node: Node


@dataclass(frozen=True, slots=True)
class NoticeItem:
    """A notice of the engine, without what an error before it has said. `text` is not empty."""

    notice: NoticeBlock
    text: str


@dataclass(frozen=True, slots=True)
class SummaryItem:
    summary: SummaryBlock


@dataclass(frozen=True, slots=True)
class RecallItem:
    recall: RecallBlock


@dataclass(frozen=True, slots=True)
class AskItem:
    """An ask that waits for a person, or was settled."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class DecidedItem:
    """A message in `auto` mode became a task."""


@dataclass(frozen=True, slots=True)
class PlanItem:
    """The to-do list of the agent has changed."""

    todo: tuple[TodoItem, ...]
    before: tuple[TodoItem, ...]


@dataclass(frozen=True, slots=True)
class SubAgentItem:
    """A sub-agent has begun or ended."""

    task: Task


@dataclass(frozen=True, slots=True)
class TaskEndItem:
    """The end of a task. `summary` and `error` are empty if they were shown before."""

    task: Task
    summary: str
    error: str


ReplyItem: TypeAlias = PieceItem | TextItem | SaidItem | CallItem | ResultItem | PastQuestionItem | BrokenReplyItem
"""A part of a reply, or the result of one of its calls."""

TaskItem: TypeAlias = AskItem | DecidedItem | PlanItem | SubAgentItem | TaskEndItem
"""A change of a task."""

Item: TypeAlias = (
    MessageItem
    | EngineMessageItem
    | OrderItem
    | SpeakerItem
    | NoticeItem
    | SummaryItem
    | RecallItem
    | ReplyItem
    | TaskItem
)

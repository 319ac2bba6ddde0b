"""The rows of a transcript as plain data, and the protocol of what supplies them (`RowSource`)."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from PySide6.QtCore import Signal, SignalInstance

from app.protocol.agents import Color
from app.protocol.asks import Ask
from app.protocol.blocks import FileBlock, ImageBlock, NoticeBlock, SummaryBlock, ToolCallBlock, ToolResultBlock
from app.protocol.conversations import Node
from app.protocol.tasks import Task


@dataclass(frozen=True, slots=True)
class Speaker:
    """An agent as the transcript names it; `model` is empty unless it has one of its own."""

    name: str
    color: Color
    model: str = ""


@dataclass(frozen=True, slots=True)
class UserRow:
    """What a person said: the bubble on the right. `named` are the agents that it names with @."""

    key: str
    node: Node
    text: str
    mentions: tuple[Speaker, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """A piece of an agent's text in Markdown: whole paragraphs, one list, one table or one fenced block.

    A reply is cut into pieces so that while it streams only the last one changes. `step` is the turn, shown at the
    first piece of a reply, else 0.
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


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """A tool call with its result once there is one; `output` is what it printed so far.

    `waiting` says that it has not begun: a person must allow it first. `unknown` says that the engine was killed while
    it was under way, and a person has to say what becomes of it; `interrupted` that it has no result because its task
    was interrupted.
    """

    key: str
    node: Node
    call: ToolCallBlock
    result: ToolResultBlock | None
    output: str
    waiting: bool = False
    unknown: bool = False
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ImageRow:
    key: str
    node: Node
    image: ImageBlock


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file that came with a message: named, not shown."""

    key: str
    node: Node
    file: FileBlock


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """A remark of the engine, or a reply that failed or was cut."""

    key: str
    node: Node
    notice: NoticeBlock


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """What the model reads in place of all that was said before, up to some entries above."""

    key: str
    node: Node
    summary: SummaryBlock


@dataclass(frozen=True, slots=True)
class AskRow:
    """A question, an approval or a reached limit, at its place in the conversation; settled ones stay.

    `others` wait for just the same, here or in other conversations.
    """

    key: str
    ask: Ask
    others: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskEndRow:
    """The end of a task: complete with its summary, stopped, failed or at a limit.

    `remarks` say what was cut, ended or not read. `retry_id` is the reply that is written anew by a retry, `fork_id`
    the node that another branch can begin at; None where there is none.
    """

    key: str
    task: Task
    remarks: tuple[str, ...] = ()
    retry_id: str | None = None
    fork_id: str | None = None


@dataclass(frozen=True, slots=True)
class EditMessageRow:
    """A person's message while it is edited, in its place; `text` is what was sent.

    While `locked` it cannot be sent, for an agent writes here.
    """

    key: str
    node: Node
    text: str
    locked: bool = False


@dataclass(frozen=True, slots=True)
class BranchSwitchRow:
    """The switch at a node with siblings: `number` of `count`, with those before and after it.

    `is_user` says that it stands under a person's message, else it is above a reply. While `locked` nothing can be
    switched, for an agent writes here.
    """

    key: str
    number: int
    count: int
    previous_id: str | None
    next_id: str | None
    is_user: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class BranchEndRow:
    """The end of what is shown, where the conversation goes on elsewhere: `child_ids` are the beginnings of that."""

    key: str
    child_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpeakerRow:
    """Whose the replies below are, in a conversation of several agents."""

    key: str
    node: Node
    speaker: Speaker


Row: TypeAlias = (
    UserRow
    | ReplyRow
    | ThinkingRow
    | ToolCallRow
    | ImageRow
    | FileRow
    | NoticeRow
    | SummaryRow
    | AskRow
    | TaskEndRow
    | EditMessageRow
    | BranchSwitchRow
    | BranchEndRow
    | SpeakerRow
)


class RowSource(Protocol):
    """Rows, oldest first. `reset()` says that all are new, `inserted(first, count)`, `changed(index)` and
    `removed(first, count)` come after the change, one by one.
    """

    @property
    def reset(self) -> Signal: ...
    @property
    def inserted(self) -> Signal: ...
    @property
    def changed(self) -> Signal: ...
    @property
    def removed(self) -> Signal: ...

    @property
    def has_older(self) -> bool: ...

    def count(self) -> int: ...

    def row(self, index: int) -> Row: ...


def as_signal(signal: Signal) -> SignalInstance:
    """A source's signal, to connect to: on an instance it is a SignalInstance, which protocols cannot tell pyright."""
    assert isinstance(signal, SignalInstance)
    return signal

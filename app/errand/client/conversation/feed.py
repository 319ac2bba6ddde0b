"""A conversation as it grows: each event becomes the items that it adds, for clients that only append."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from errand.client.conversation.calls import call_form
from errand.client.conversation.items import (
    AskItem,
    BrokenReplyItem,
    CallItem,
    DecidedItem,
    EngineMessageItem,
    Item,
    MessageItem,
    NoticeItem,
    OrderItem,
    PastQuestionItem,
    PieceItem,
    PlanItem,
    RecallItem,
    ResultItem,
    SaidItem,
    SpeakerItem,
    SubAgentItem,
    SummaryItem,
    TaskEndItem,
    TextItem,
)
from errand.client.conversation.streamed_texts import StreamedTexts
from errand.client.texts.tool_calls import content_of
from errand.protocol.asks import Ask
from errand.protocol.blocks import (
    Block,
    EnvironmentBlock,
    FileBlock,
    ImageBlock,
    NoticeBlock,
    RecallBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Node
from errand.protocol.events import AgentUpdate, AskUpdate, Event, TaskMessage, TaskUpdate, TextDelta
from errand.protocol.notices import LimitReached, TaskFailed
from errand.protocol.tasks.groups import TodoItem
from errand.protocol.tasks.task import Task
from errand.text.notice_text import leftovers_text, notice_text


class ConversationFeed:
    """Turns the events and deltas of one conversation into items; repeated events add none.

    `streams` gives text as it arrives, otherwise a reply comes once it is complete. `thinking` includes thoughts.
    Speakers are named if the conversation has several, with `names_all` always. `task` is the newest task.
    """

    def __init__(self, *, streams: bool, thinking: bool, names_all: bool) -> None:
        self.task: Task | None = None
        self._has_streaming = streams
        self._has_thinking = thinking
        self._names_all = names_all
        self._typed: list[str] = []
        self._streamed = StreamedTexts()
        self._answering = ""  # the id of the node whose answer streams now
        self._nodes: set[str] = set()
        self._calls: dict[str, ToolCallBlock] = {}
        self._asks: dict[str, str] = {}
        self._asked_calls: set[str | None] = set()
        self._previewed_calls: set[str] = set()
        self._ended: set[str] = set()
        self._decided: set[str] = set()
        self._sub_agents: dict[str, Task] = {}
        self._todo: dict[str, tuple[TodoItem, ...]] = {}
        self._names: dict[str, str] = {}
        self._agents: dict[str, str] = {}  # by task id
        self._speaker = ""
        self._last_text = ""
        self._errors: set[str | None] = set()  # ids of tasks whose error was an item

    @property
    def is_answering(self) -> bool:
        """True while the answer of a reply streams."""
        return bool(self._answering)

    @property
    def running_call(self) -> ToolCallBlock | None:
        """The oldest call without a result."""
        return next(iter(self._calls.values()), None)

    @property
    def sub_agents_at_work(self) -> int:
        return sum(task.outcome.ended_at is None for task in self._sub_agents.values())

    def mark_typed(self, text: str) -> None:
        """A person has typed this here: the message that it becomes is no item."""
        self._typed.append(text.strip())

    def event(self, event: Event) -> list[Item]:
        """Return the items that an event adds."""
        match event:
            case TaskUpdate(task=task) if task.origin.parent_id in self._agents:
                return [*self._sub_agent(task)]
            case TaskUpdate(task=task):
                return [*self._task(task)]
            case TaskMessage(node=node) if node.task_id not in self._sub_agents:
                return [*self._node(node)]
            case AskUpdate(ask=ask):
                return [*self._ask(ask)]
            case AgentUpdate(agent=agent):
                self._names[agent.id] = agent.name
                return []
            case _:
                return []

    def delta(self, delta: TextDelta) -> list[Item]:
        """Return the items that a delta of a streaming reply adds."""
        if delta.node_id in self._nodes or delta.task_id in self._sub_agents:
            return []
        self._answering = delta.node_id if delta.kind == "text" else ""
        is_included = delta.kind == "text" or (delta.kind == "thinking" and self._has_thinking)
        effect = self._streamed.add(delta) if self._has_streaming and is_included else None
        if effect is None or delta.kind == "toolCall":
            return []
        piece = PieceItem(delta.kind, delta.text, is_first=effect != "continues", restarts=effect == "restarts")
        speaker = self._speaker_change(self._agents.get(delta.task_id, "")) if effect != "restarts" else ()
        return [*speaker, piece]

    def _task(self, task: Task) -> Iterator[Item]:
        if (
            task.outcome.ended_at is None
            or self.task is None
            or self.task.id == task.id
            or self.task.outcome.ended_at is not None
        ):
            self.task = task
        self._agents[task.id] = task.agent_id
        if task.outcome.ended_at is not None and task.id not in self._ended:
            self._ended.add(task.id)
            is_repeated = task.outcome.summary.strip() in self._last_text
            error = task.outcome.error if task.id not in self._errors else None
            yield TaskEndItem(task, "" if is_repeated else task.outcome.summary, error or "")
            return
        if task.options.mode == "auto" and task.options.decided == "task" and task.id not in self._decided:
            self._decided.add(task.id)
            yield DecidedItem()
        before = self._todo.get(task.id, ())
        if task.todo != before:
            self._todo[task.id] = task.todo
            yield PlanItem(task.todo, before)

    def _sub_agent(self, task: Task) -> Iterator[Item]:
        """Yield an item when a sub-agent begins, and one when it ends; what it says is on a branch of its own."""
        before = self._sub_agents.get(task.id)
        self._sub_agents[task.id] = task
        self._agents[task.id] = task.agent_id
        if before is None or (before.outcome.ended_at is None and task.outcome.ended_at is not None):
            yield SubAgentItem(task)

    def _node(self, node: Node) -> Iterator[Item]:
        if node.id in self._nodes or node.status == "streaming":
            return
        self._nodes.add(node.id)
        if node.id == self._answering:
            self._answering = ""
        if node.task_from:
            yield OrderItem(node, _text_of(node))
        elif node.is_from_person:
            yield from self._message(node)
        elif node.role == "user":
            yield EngineMessageItem(node)
        else:
            yield from self._content(node)

    def _message(self, node: Node) -> Iterator[Item]:
        text = _text_of(node).strip()
        self._speaker = ""
        if text in self._typed:
            self._typed.remove(text)
            return
        names = (block.name for block in node.blocks if isinstance(block, ImageBlock | FileBlock))
        yield MessageItem(node, text, tuple(names))

    def _content(self, node: Node) -> Iterator[Item]:
        if node.role == "assistant":
            yield from self._speaker_change(node.author, node)
        for index, block in enumerate(node.blocks):
            yield from self._block(node, index, block)
        if node.status in ("failed", "cut"):
            if node.error:
                self._errors.add(node.task_id)
            yield BrokenReplyItem(node)

    def _block(self, node: Node, index: int, block: Block) -> Iterable[Item]:
        match block:
            case TextBlock(text=text):
                self._last_text = text
                streamed = self._streamed.take(node.id, index)
                is_continued = bool(streamed) and text.startswith(streamed)
                return (TextItem("text", text, text[len(streamed) :] if is_continued else None),)
            case ThinkingBlock(text=text):
                return self._thought(node.id, index, text)
            case ToolCallBlock():
                self._calls[block.call_id] = block
                return (CallItem(block),)
            case ToolResultBlock():
                return self._result(block)
            case NoticeBlock():
                return self._notice(block, node.task_id)
            case SummaryBlock():
                return (SummaryItem(block),)
            case RecallBlock():
                return (RecallItem(block),)
            case ImageBlock() | FileBlock() | EnvironmentBlock():
                return ()
            case _:
                assert_never(block)

    def _thought(self, node_id: str, index: int, text: str) -> Iterator[Item]:
        streamed = self._streamed.take(node_id, index)
        if not self._has_thinking or not text.strip():
            return
        if not streamed:
            yield TextItem("thinking", text, None)
        elif not self._streamed.has_any(node_id):  # otherwise the text after it is open
            yield TextItem("thinking", text, text[len(streamed) :])

    def _result(self, result: ToolResultBlock) -> Iterator[Item]:
        call = self._calls.pop(result.call_id, None)
        match call_form(call, result):
            case "text" if call is not None:
                yield SaidItem(content_of(call))
            case "question" if call is not None:
                if call.call_id not in self._asked_calls:
                    yield PastQuestionItem(call, result)
            case "hidden":
                pass
            case _:
                is_stopped = self.task is not None and self.task.activity.stopping
                yield ResultItem(call, result, result.call_id in self._previewed_calls, is_stopped)

    def _notice(self, notice: NoticeBlock, task_id: str | None) -> Iterator[Item]:
        match notice.data:
            case LimitReached() as limit:  # the end of the task names it
                text = leftovers_text(limit)
            case TaskFailed(cause="reply") as failed if task_id in self._errors:
                text = leftovers_text(failed)
            case None if notice.kind == "error" and task_id in self._errors:  # from before notices had data
                text = ""
            case _:
                text = notice_text(notice)
        if notice.kind == "error":
            self._errors.add(task_id)
        if text:
            yield NoticeItem(notice, text)

    def _ask(self, ask: Ask) -> Iterator[Item]:
        if self._asks.get(ask.id) == ask.status:
            return
        self._asks[ask.id] = ask.status
        self._asked_calls.add(ask.call_id)
        if ask.status == "waiting" and ask.approval is not None and ask.approval.preview:
            self._previewed_calls.add(ask.approval.call_id)
        yield AskItem(ask)

    def _speaker_change(self, agent_id: str, node: Node | None = None) -> Iterator[Item]:
        has_name = self._names_all or (len(self._names) > 1 and agent_id in self._names)
        if has_name and agent_id != self._speaker:
            self._speaker = agent_id
            yield SpeakerItem(self._names.get(agent_id, "agent"), node)


def _text_of(node: Node) -> str:
    return "\n\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))

"""Renders the events of one conversation as text for people. Pure: tracks what was shown, writes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from errand.cli.rendering.asks import ask_lines, outcome_text
from errand.cli.rendering.streamed_text import StreamedText, dimmed
from errand.cli.rendering.task_lines import result_line, sub_agent_line
from errand.cli.rendering.tool_calls import format_result, format_running, todo_lines
from errand.cli.terminal.markdown import MarkdownStream
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import one_line, plain, short_id, usage_line, wrapped
from errand.client.number_format import moment_text, time_left
from errand.client.safe_text import escape_hidden_line
from errand.client.texts.context import summary_text
from errand.client.texts.messages import engine_message_text
from errand.client.texts.tool_calls import content_of
from errand.protocol.asks import Ask
from errand.protocol.blocks import (
    Block,
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
from errand.protocol.events import (
    AgentDeleted,
    AgentUpdate,
    AskUpdate,
    BackgroundUpdate,
    ChangeUpdate,
    ConversationDeleted,
    ConversationUpdate,
    Event,
    FactRemoved,
    FactUpdate,
    GrantUpdate,
    McpUpdate,
    PersonalityDeleted,
    PersonalityUpdate,
    TaskMessage,
    TaskPlan,
    TaskUpdate,
    TextDelta,
)
from errand.protocol.notices import LimitReached, TaskFailed
from errand.protocol.tasks import Task, TodoItem
from errand.text.notice_text import leftovers_text, notice_text, recall_title
from errand.text.translation import tr, trn


class TranscriptRenderer:
    """Tracks what one conversation has shown so far; repeated events add nothing.

    `streams` shows text as it arrives; without it a reply is shown once complete, which keeps several tasks readable
    at once. `thinking` shows what a model thinks, dim. With `heads` a line before each message and each speaker's
    replies has the name, the time and the message's short id. Returned texts end with a newline unless a reply is
    being streamed.
    """

    def __init__(
        self, style: Style, width: int, *, streams: bool = True, thinking: bool = False, heads: bool = False
    ) -> None:
        self.style = style
        self.width = width
        self.task: Task | None = None
        self._streams = streams
        self._shows_thinking = thinking
        self._has_heads = heads
        self._typed: list[str] = []  # messages that are on the screen already
        self._is_empty = True
        self._stream = StreamedText(style, width)
        self._streamed: dict[tuple[str, int], str] = {}
        self._answering = ""  # the id of the node whose answer streams now
        self._nodes: set[str] = set()
        self._calls: dict[str, ToolCallBlock] = {}
        self._running: list[str] = []
        self._asks: dict[str, str] = {}
        self._asked: set[str | None] = set()  # ids of calls whose question was shown
        self._previewed: set[str] = set()
        self._ended: set[str] = set()
        self._mode_shown: set[str] = set()
        self._below: dict[str, Task] = {}  # tasks of sub-agents
        self._todo: dict[str, tuple[TodoItem, ...]] = {}
        self._names: dict[str, str] = {}
        self._agents: dict[str, str] = {}  # by task id
        self._speaker = ""
        self._last_text = ""
        self._errors: set[str | None] = set()  # ids of tasks whose error was shown

    def event(self, event: Event) -> str:
        """The text that an event adds."""
        match event:
            case TaskUpdate(task=task) if task.parent_id in self._agents:
                return self._sub_agent(task)
            case TaskUpdate():
                return self._task(event.task)
            case TaskMessage(node=node) if node.task_id in self._below:
                return ""
            case TaskMessage():
                return self._node(event.node)
            case AskUpdate():
                return self._ask(event.ask)
            case AgentUpdate(agent=agent):
                self._names[agent.id] = agent.name
                return ""
            case (
                ConversationUpdate()
                | ConversationDeleted()
                | AgentDeleted()
                | TaskPlan()
                | ChangeUpdate()
                | GrantUpdate()
                | FactUpdate()
                | FactRemoved()
                | McpUpdate()
                | PersonalityUpdate()
                | PersonalityDeleted()
                | BackgroundUpdate()
            ):
                return ""
            case _:
                assert_never(event)

    def mark_typed(self, text: str) -> None:
        """The person has typed this here: the message that it becomes is not shown again."""
        self._typed.append(text.strip())

    def delta(self, delta: TextDelta) -> str:
        """The text that a delta of a streaming reply adds."""
        is_shown = delta.node_id in self._nodes or delta.task_id in self._below
        if not is_shown:
            self._answering = delta.node_id if delta.kind == "text" else ""
        if not self._streams or is_shown or not self._is_shown(delta):
            return ""
        key = (delta.node_id, delta.block)
        before = self._streamed.get(key, "")
        if delta.offset == 0 and before:
            self._streamed[key] = delta.text
            return self._stream.end() + self.style.dim(tr("(starting again)\n")) + self._piece(delta)
        if delta.offset != len(before):
            return ""  # a delta was missed: the finished node has the rest
        # Deltas may split escape sequences; `plain` then leaves harmless letters, never the escape itself.
        self._streamed[key] = before + delta.text
        head = self._speaker_line(self._agents.get(delta.task_id, ""))
        return head + ("" if before else self._stream.end()) + self._piece(delta)

    def _is_shown(self, delta: TextDelta) -> bool:
        return delta.kind == "text" or (delta.kind == "thinking" and self._shows_thinking)

    def _piece(self, delta: TextDelta) -> str:
        if delta.kind == "text":
            return self._stream.feed(delta.text)
        head = self._thinking_head() if len(self._streamed[delta.node_id, delta.block]) == len(delta.text) else ""
        return self._stream.feed(head + delta.text, thinking=True)

    def _thinking_head(self) -> str:
        """What tells thinking from an answer where nothing can be dim."""
        return "" if self.style.colour else tr("(thinking) ")

    def status(self) -> str:
        """The current activity, for a line that is rewritten in place; empty when the task has ended."""
        task = self.task
        if task is None or task.ended_at is not None:
            return ""
        return self._activity(task)

    def unread(self) -> str:
        """How many messages to the task the agent has not read yet; empty for none."""
        waiting = len(self.task.queue) if self.task is not None and self.task.ended_at is None else 0
        return trn("{n} message not read yet", "{n} messages not read yet", waiting) if waiting else ""

    def _activity(self, task: Task) -> str:
        is_no_call = task.status != "tool_executing" and not self._running
        if task.activity and (task.stopping or is_no_call):
            return one_line(" · ".join(filter(None, (task.activity, time_left(task)))), self.width - 12)
        if task.stopping:
            return tr("stopping…")
        at_work = sum(one.ended_at is None for one in self._below.values())
        if at_work > 1:
            return tr("{at_work} sub-agents are running").format(at_work=at_work)
        if self._running and task.status == "tool_executing":
            call = self._calls[self._running[0]]
            return format_running(call, self.width, Style(colour=False, unicode=self.style.unicode))
        if self._answering and task.status == "thinking":
            return tr("answering…")
        return {"waiting_user": tr("waiting for you"), "paused": tr("paused"), "thinking": tr("thinking…")}.get(
            task.status, "…"
        )

    def _task(self, task: Task) -> str:
        if task.ended_at is None or self.task is None or self.task.id == task.id or self.task.ended_at is not None:
            self.task = task
        self._agents[task.id] = task.agent_id
        if task.ended_at is None or task.id in self._ended:
            return self._mode_line(task) + self._todo_lines(task)
        self._ended.add(task.id)
        return self._stream.end() + self._badge(task)

    def _mode_line(self, task: Task) -> str:
        """Shown once when a task in `auto` mode becomes a task; for a chat the last lines say it."""
        if task.mode != "auto" or task.decided != "task" or task.id in self._mode_shown:
            return ""
        self._mode_shown.add(task.id)
        return self._stream.end() + self.style.dim(tr("handled as a task\n"))

    def _sub_agent(self, task: Task) -> str:
        """A line when a sub-agent begins, and one when it ends; what it says in between is its own branch's."""
        before = self._below.get(task.id)
        self._below[task.id] = task
        self._agents[task.id] = task.agent_id
        if before is not None and (before.ended_at is not None or task.ended_at is None):
            return ""
        return f"{self._stream.end()}{sub_agent_line(task, self.style, self.width)}\n"

    def _todo_lines(self, task: Task) -> str:
        """The to-do list when it is new, afterwards the items that have changed."""
        before = self._todo.get(task.id, ())
        if task.todo == before:
            return ""
        self._todo[task.id] = task.todo
        return self._stream.end() + "\n".join(todo_lines(task.todo, before, self.style, self.width)) + "\n"

    def _node(self, node: Node) -> str:
        if node.id in self._nodes or node.status == "streaming":
            return ""
        self._nodes.add(node.id)
        if node.id == self._answering:
            self._answering = ""
        text = self._node_text(node)
        self._is_empty = self._is_empty and not text
        return text

    def _node_text(self, node: Node) -> str:
        if node.task_from:
            head = self.style.bold(
                one_line(escape_hidden_line(tr("Task from {task_from}").format(task_from=node.task_from)), self.width)
                + ":"
            )
            content = "\n\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
            return f"{self._stream.end()}{head}\n{self._complete_text(content)}\n"
        if node.role == "user" and not node.is_from_person:
            return self._stream.end() + self.style.dim(self._wrapped(plain(engine_message_text(node)))) + "\n"
        if node.role == "user":
            return self._message(node)
        head = self._speaker_line(node.author, node) if node.role == "assistant" else ""
        text = head + "".join(self._block(node, index, block) for index, block in enumerate(node.blocks))
        if node.status in ("failed", "cut"):
            word = tr("failed") if node.status == "failed" else tr("cut off")
            reason = f": {one_line(node.error, 500)}" if node.error else ""
            if node.error:
                self._errors.add(node.task_id)
            failed = self._wrapped(f"{self.style.sign('cross')} {tr('reply {state}').format(state=word)}{reason}")
            text += self._stream.end() + self.style.red(failed) + "\n"
        return text

    def _block(self, node: Node, index: int, block: Block) -> str:
        match block:
            case TextBlock():
                return self._text(node.id, index, block.text)
            case ToolCallBlock():
                self._calls[block.call_id] = block
                self._running.append(block.call_id)
                return self._stream.end()
            case ToolResultBlock():
                return self._stream.end() + self._result(block)
            case NoticeBlock():
                return self._stream.end() + self._notice(block, node.task_id)
            case SummaryBlock():
                return self._stream.end() + self._summary(block)
            case RecallBlock():
                return self._stream.end() + self.style.dim(self._wrapped(plain(recall_title(block)))) + "\n"
            case ThinkingBlock():
                return self._thinking(node.id, index, block.text)
            case ImageBlock() | FileBlock():
                return ""
            case _:
                assert_never(block)

    def _message(self, node: Node) -> str:
        """What a person said, unless they have typed it here."""
        text = "\n\n".join(block.text for block in node.blocks if isinstance(block, TextBlock)).strip()
        self._speaker = ""
        if text in self._typed:
            self._typed.remove(text)
            return ""
        names = [block.name for block in node.blocks if isinstance(block, ImageBlock | FileBlock)]
        lines = wrapped(plain(text), max(20, self.width - 2)).splitlines()
        rows = [f"{self.style.bold('>')} {self.style.bold(line)}" if line else ">" for line in lines]
        rows += [
            self.style.dim(f"  {tr('with')} {one_line(escape_hidden_line(name), self.width - 8)}") for name in names
        ]
        gap = "" if self._is_empty else "\n"
        return f"{self._stream.end()}{gap}{self._head('you', node)}{_lines(rows)}"

    def _head(self, name: str, node: Node | None) -> str:
        if node is None or not self._has_heads:
            return ""
        return self.style.dim(self.style.join(name, node.model, moment_text(node.created_at), short_id(node.id))) + "\n"

    def _thinking(self, node_id: str, index: int, text: str) -> str:
        shown = self._streamed.pop((node_id, index), "")
        if not self._shows_thinking or not text.strip():
            return ""
        if shown:  # the text after it may be open
            is_last = not any(streamed == node_id for streamed, _ in self._streamed)
            return self._stream.feed(text[len(shown) :], thinking=True) + self._stream.end() if is_last else ""
        rows = [
            dimmed(line, self.style) for line in self._wrapped(self._thinking_head() + plain(text).strip()).splitlines()
        ]
        return self._stream.end() + _lines(rows)

    def _text(self, node_id: str, index: int, text: str) -> str:
        shown = self._streamed.pop((node_id, index), "")
        self._last_text = text
        if shown and text.startswith(shown):
            return self._stream.feed(text[len(shown) :]) + self._stream.end()
        return self._stream.end() + (self._complete_text(text) + "\n" if text.strip() else "")

    def _result(self, result: ToolResultBlock) -> str:
        call = self._calls.pop(result.call_id, None)
        if result.call_id in self._running:
            self._running.remove(result.call_id)
        role = call.display.role if call is not None else "call"
        if role == "message" and call is not None:
            return self._complete_text(content_of(call)) + "\n"
        if role == "question" and call is not None and call.call_id not in self._asked:
            return self._past_question(call, result)
        if role == "question" or (role == "completion" and not result.is_error):
            return ""
        with_diff = result.call_id not in self._previewed
        # A stopped call did not fail: its output does not explain a cause.
        with_output = self.task is None or not self.task.stopping
        line = format_result(call, result, self.width, self.style, with_diff=with_diff, with_output=with_output)
        return line + "\n"

    def _past_question(self, call: ToolCallBlock, result: ToolResultBlock) -> str:
        """A question that was answered before this was followed."""
        asked = f"{self.style.amber(self.style.sign('ask'))} {self.style.bold(self._complete_text(content_of(call)))}"
        answer = self.style.dim(self._wrapped(f"  {self.style.sign('arrow')} {plain(result.text).strip()}"))
        return f"{asked}\n{answer}\n"

    def _notice(self, notice: NoticeBlock, task_id: str | None) -> str:
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
        paint = self.style.red if notice.kind == "error" else self.style.amber
        return paint(self._wrapped(f"{self.style.sign('warn')} {plain(text)}")) + "\n" if text else ""

    def _summary(self, summary: SummaryBlock) -> str:
        text = tr("{summary}, for the model; the conversation keeps everything").format(summary=summary_text(summary))
        return self.style.dim(self._wrapped(text)) + "\n"

    def _ask(self, ask: Ask) -> str:
        if self._asks.get(ask.id) == ask.status:
            return ""
        self._asks[ask.id] = ask.status
        self._asked.add(ask.call_id)
        if ask.status == "waiting":
            if ask.approval is not None and ask.approval.preview:
                self._previewed.add(ask.approval.call_id)  # the diff was shown with the approval
            return self._stream.end() + "\n".join(ask_lines(ask, self.style, self.width)) + "\n"
        return self._stream.end() + self.style.dim(f"  {self.style.sign('arrow')} {outcome_text(ask)}") + "\n"

    def _badge(self, task: Task) -> str:
        """The last lines of a task: outcome and usage, its summary and error unless just shown."""
        lines = [
            self._wrapped(self.style.join(result_line(task, self.style), self.style.dim(usage_line(task, self.style))))
        ]
        if task.summary and task.summary.strip() not in self._last_text:
            lines.insert(0, self._complete_text(task.summary))
        if task.error and task.id not in self._errors:
            lines.append(self.style.red(self._wrapped(f"  {plain(task.error)}")))
        return "\n".join(lines) + "\n"

    def _wrapped(self, text: str) -> str:
        """Wrap at blanks, except for streamed plain text, which may go to a program."""
        return text if self._streams and not self.style.colour else wrapped(text, self.width)

    def _complete_text(self, text: str) -> str:
        """A complete text of the agent."""
        prose = MarkdownStream(self.style, self.width)
        return self._wrapped((prose.feed(plain(text).strip()) + prose.end()).rstrip("\n"))

    def _speaker_line(self, agent_id: str, node: Node | None = None) -> str:
        """The name of the next speaker, if the conversation has several, or its head."""
        if self._has_heads and agent_id != self._speaker:
            self._speaker = agent_id
            return f"{self._stream.end()}\n{self._head(plain(self._names.get(agent_id, 'agent')), node)}"
        if len(self._names) < 2 or agent_id == self._speaker or agent_id not in self._names:
            return ""
        self._speaker = agent_id
        return self._stream.end() + self.style.bold(f"{plain(self._names[agent_id])}:") + "\n"


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def history(nodes: Sequence[Node], tasks: Iterable[Task]) -> Iterator[TaskMessage | TaskUpdate]:
    """A branch as events, each ended task after the last of its messages; without those of sub-agents."""
    ended = {task.id: task for task in tasks if task.ended_at is not None and task.parent_id is None}
    last = {ended[node.task_id].id: node.id for node in nodes if node.task_id in ended}
    for node in nodes:
        yield TaskMessage(node=node)
        # A message with another reply on this branch, or none, is not the end of its task.
        if node.task_id is not None and last.get(node.task_id) == node.id and node.role != "user":
            yield TaskUpdate(task=ended[node.task_id])


def with_label(text: str, label: str) -> str:
    """Every line of `text` with a label before it, so that several tasks can share a screen."""
    return "".join(f"{label}{line}" for line in text.splitlines(keepends=True))

"""The text of one conversation in a terminal, as it grows. Writes nothing."""

from collections.abc import Iterable
from typing import assert_never

from errand.cli.rendering.asks import ask_lines, outcome_text
from errand.cli.rendering.streamed_text import StreamedText, dimmed
from errand.cli.rendering.task_lines import result_line, sub_agent_line
from errand.cli.rendering.tool_calls import format_result, format_running, todo_lines
from errand.cli.terminal.markdown import MarkdownStream
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import one_line, plain, short_id, usage_line, wrapped
from errand.client.conversation.feed import ConversationFeed
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
    ReplyItem,
    ResultItem,
    SaidItem,
    SpeakerItem,
    SubAgentItem,
    SummaryItem,
    TaskEndItem,
    TaskItem,
    TextItem,
)
from errand.client.number_format import moment_text, time_left
from errand.client.safe_text import escape_hidden_line
from errand.client.texts.context import summary_text
from errand.client.texts.messages import engine_message_text
from errand.client.texts.recall import recall_lines
from errand.client.texts.tasks import reading_text
from errand.client.texts.tool_calls import content_of
from errand.protocol.asks import Ask
from errand.protocol.conversations import Node
from errand.protocol.events import Event, PromptReading, TaskMessage, TextDelta
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, trn


class TranscriptRenderer:
    """Renders the items of a conversation (`feed`) as text.

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
        self.feed = ConversationFeed(streams=streams, thinking=thinking, names_all=heads)
        self._streams = streams
        self._has_heads = heads
        self._is_empty = True
        self._stream = StreamedText(style, width)
        self._reading = ""

    def show_reading(self, reading: PromptReading) -> None:
        """Show how much of the request the model server has read, until the next change of the task."""
        self._reading = reading_text(reading)

    def event(self, event: Event) -> str:
        """Return the text that an event adds."""
        self._reading = ""
        text = self._text(self.feed.event(event))
        if isinstance(event, TaskMessage):
            self._is_empty = self._is_empty and not text
        return text

    def delta(self, delta: TextDelta) -> str:
        """Return the text that a delta of a streaming reply adds."""
        return self._text(self.feed.delta(delta))

    def status(self) -> str:
        """Return the current activity, for a line that is rewritten in place; empty when the task has ended."""
        task = self.feed.task
        if task is None or task.outcome.ended_at is not None:
            return ""
        return self._activity(task)

    def unread(self) -> str:
        """Return the number of messages that the agent has not read yet, in words; empty for none."""
        task = self.feed.task
        waiting = len(task.queue) if task is not None and task.outcome.ended_at is None else 0
        return trn("{n} message not read yet", "{n} messages not read yet", waiting) if waiting else ""

    def _activity(self, task: Task) -> str:
        call = self.feed.running_call
        is_no_call = task.activity.status != "tool_executing" and call is None
        if task.activity.detail and (task.activity.stopping or is_no_call):
            return one_line(" · ".join(filter(None, (task.activity.detail, time_left(task)))), self.width - 12)
        if task.activity.stopping:
            return tr("stopping…")
        at_work = self.feed.sub_agents_at_work
        if at_work > 1:
            return tr("{at_work} sub-agents are running").format(at_work=at_work)
        if call is not None and task.activity.status == "tool_executing":
            return format_running(call, self.width, Style(colour=False, unicode=self.style.unicode))
        if self._reading and task.activity.status == "thinking":
            return self._reading
        if self.feed.is_answering and task.activity.status == "thinking":
            return tr("answering…")
        return {"waiting_user": tr("waiting for you"), "paused": tr("paused"), "thinking": tr("thinking…")}.get(
            task.activity.status, "…"
        )

    def _text(self, items: Iterable[Item]) -> str:
        return "".join(self._piece(item) if isinstance(item, PieceItem) else self._complete(item) for item in items)

    def _piece(self, piece: PieceItem) -> str:
        """Return the next part of a text.

        Deltas may split escape sequences; `plain` then leaves harmless letters alone.
        """
        gap = self._stream.end() if piece.is_first else ""
        if piece.restarts:
            gap += self.style.dim(tr("(starting again)\n"))
        if piece.kind == "text":
            return gap + self._stream.feed(piece.text)
        head = self._thinking_head() if piece.is_first else ""
        return gap + self._stream.feed(head + piece.text, thinking=True)

    def _complete(self, item: Item) -> str:
        """Return the text of an item that is complete: a line that is open ends before it."""
        if isinstance(item, TextItem) and item.rest is not None:
            return self._stream.feed(item.rest, thinking=item.kind == "thinking") + self._stream.end()
        return self._stream.end() + self._lines_of(item)

    def _lines_of(self, item: Item) -> str:
        if isinstance(item, ReplyItem):
            return self._reply_lines(item)
        if isinstance(item, TaskItem):
            return self._task_lines(item)
        match item:
            case MessageItem():
                return self._message(item)
            case OrderItem(node=node, text=text):
                caller = escape_hidden_line(tr("Task from {task_from}").format(task_from=node.task_from))
                return f"{self.style.bold(one_line(caller, self.width) + ':')}\n{self._prose(text)}\n"
            case EngineMessageItem(node=node):
                return self.style.dim(self._wrapped(plain(engine_message_text(node)))) + "\n"
            case SpeakerItem(name=name, node=node):
                return self._speaker_line(name, node)
            case NoticeItem(notice=notice, text=text):
                paint = self.style.red if notice.kind == "error" else self.style.amber
                return paint(self._wrapped(f"{self.style.sign('warn')} {plain(text)}")) + "\n"
            case SummaryItem(summary=summary):
                about = tr("{summary}, for the model; the conversation keeps everything")
                return self.style.dim(self._wrapped(about.format(summary=summary_text(summary)))) + "\n"
            case RecallItem(recall=recall):
                return "".join(self.style.dim(self._wrapped(plain(line))) + "\n" for line in recall_lines(recall))
            case _:
                assert_never(item)

    def _reply_lines(self, item: ReplyItem) -> str:
        match item:
            case TextItem(kind="text", text=text):
                return self._prose(text) + "\n" if text.strip() else ""
            case TextItem(text=text):
                rows = self._wrapped(self._thinking_head() + plain(text).strip()).splitlines()
                return _lines(dimmed(row, self.style) for row in rows)
            case SaidItem(text=text):
                return self._prose(text) + "\n"
            case ResultItem(call=call, result=result):
                with_diff, with_output = not item.is_previewed, not item.is_stopped  # a stopped call did not fail
                return (
                    format_result(call, result, self.width, self.style, with_diff=with_diff, with_output=with_output)
                    + "\n"
                )
            case PastQuestionItem():
                return self._past_question(item)
            case BrokenReplyItem(node=node):
                return self._broken_reply(node)
            case CallItem() | PieceItem():
                return ""
            case _:
                assert_never(item)

    def _task_lines(self, item: TaskItem) -> str:
        match item:
            case AskItem(ask=ask):
                return self._ask(ask)
            case DecidedItem():
                return self.style.dim(tr("handled as a task\n"))
            case PlanItem(todo=todo, before=before):
                return "\n".join(todo_lines(todo, before, self.style, self.width)) + "\n"
            case SubAgentItem(task=task):
                return sub_agent_line(task, self.style, self.width) + "\n"
            case TaskEndItem():
                return self._task_end(item)
            case _:
                assert_never(item)

    def _thinking_head(self) -> str:
        """Return the mark that tells thinking from an answer where nothing can be dim."""
        return "" if self.style.colour else tr("(thinking) ")

    def _message(self, message: MessageItem) -> str:
        lines = wrapped(plain(message.text), max(20, self.width - 2)).splitlines()
        rows = [f"{self.style.bold('>')} {self.style.bold(line)}" if line else ">" for line in lines]
        rows += [
            self.style.dim(f"  {tr('with')} {one_line(escape_hidden_line(name), self.width - 8)}")
            for name in message.attachments
        ]
        gap = "" if self._is_empty else "\n"
        return f"{gap}{self._head('you', message.node)}{_lines(rows)}"

    def _speaker_line(self, name: str, node: Node | None) -> str:
        """Return the name of the next speaker, or its head."""
        return f"\n{self._head(plain(name), node)}" if self._has_heads else self.style.bold(f"{plain(name)}:") + "\n"

    def _head(self, name: str, node: Node | None) -> str:
        if node is None or not self._has_heads:
            return ""
        return self.style.dim(self.style.join(name, node.model, moment_text(node.created_at), short_id(node.id))) + "\n"

    def _past_question(self, question: PastQuestionItem) -> str:
        text = self.style.bold(self._prose(content_of(question.call)))
        answer = f"  {self.style.sign('arrow')} {plain(question.result.text).strip()}"
        return f"{self.style.amber(self.style.sign('ask'))} {text}\n{self.style.dim(self._wrapped(answer))}\n"

    def _broken_reply(self, node: Node) -> str:
        state = tr("failed") if node.status == "failed" else tr("cut off")
        reason = f": {one_line(node.error, 500)}" if node.error else ""
        text = f"{self.style.sign('cross')} {tr('reply {state}').format(state=state)}{reason}"
        return self.style.red(self._wrapped(text)) + "\n"

    def _ask(self, ask: Ask) -> str:
        if ask.status == "waiting":
            return "\n".join(ask_lines(ask, self.style, self.width)) + "\n"
        return self.style.dim(f"  {self.style.sign('arrow')} {outcome_text(ask)}") + "\n"

    def _task_end(self, end: TaskEndItem) -> str:
        """Return the last lines of a task: its summary, outcome, usage and error."""
        outcome = self.style.join(result_line(end.task, self.style), self.style.dim(usage_line(end.task, self.style)))
        lines = [self._prose(end.summary)] if end.summary else []
        lines.append(self._wrapped(outcome))
        if end.error:
            lines.append(self.style.red(self._wrapped(f"  {plain(end.error)}")))
        return "\n".join(lines) + "\n"

    def _wrapped(self, text: str) -> str:
        """Wrap at blanks, except for streamed plain text, which may go to a program."""
        return text if self._streams and not self.style.colour else wrapped(text, self.width)

    def _prose(self, text: str) -> str:
        """Return a complete text of the agent."""
        prose = MarkdownStream(self.style, self.width)
        return self._wrapped((prose.feed(plain(text).strip()) + prose.end()).rstrip("\n"))


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def with_label(text: str, label: str) -> str:
    """Return every line of `text` with a label before it, so that several tasks can share a screen."""
    return "".join(f"{label}{line}" for line in text.splitlines(keepends=True))

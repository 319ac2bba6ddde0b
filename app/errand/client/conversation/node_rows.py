"""The rows of one node: blocks, results, asks at their position, and the end of a task."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from errand.client.conversation.calls import call_form
from errand.client.conversation.markdown_pieces import split_markdown
from errand.client.conversation.rows import (
    AskRow,
    CallState,
    FileRow,
    ImageRow,
    NoticeRow,
    RecallRow,
    ReplyRow,
    Row,
    Speaker,
    SpeakerRow,
    SummaryRow,
    TaskEndRow,
    ThinkingRow,
    ToolCallRow,
    UserRow,
)
from errand.client.conversation.streaming import row_key, text_rows
from errand.client.texts.messages import engine_message_text, message_markdown
from errand.client.texts.tool_calls import content_of
from errand.protocol.asks import Ask, AskKind
from errand.protocol.blocks import (
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
from errand.protocol.notices import TaskFailed, TaskStopped
from errand.protocol.tasks.groups import CallProgress
from errand.protocol.tasks.task import Task, replace_fields
from errand.text.notice_text import leftovers_text, notice_text
from errand.text.translation import tr

_CUT_OFF = tr("The reply was cut off. What came before is kept.")
_FAILED = tr("The reply failed.")

_CUT_TEXT = tr("The last reply was cut off. What came before is kept.")
_CLOSING = ("stopped", "limit", "error", "info")


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call, and the node that holds it."""

    node_id: str
    block: ToolResultBlock


@dataclass(frozen=True, slots=True)
class NodeExtras:
    """The results and live outputs of a node's tool calls, by call id, and the asks raised after it, oldest first.

    `task` is that of the node, if it is known: it says which calls have begun.
    """

    results: Mapping[str, CallResult]
    outputs: Mapping[str, str]
    asks: Sequence[Ask]
    task: Task | None = None


def node_rows(node: Node, extras: NodeExtras) -> list[Row]:
    """Return the rows of a node in display order."""
    if node.role == "assistant":
        return [*_Reply(node, extras).rows(), *_outcome(node)]
    return [*_other_rows(node), *_outcome(node), *(AskRow(ask.id, ask) for ask in extras.asks)]


def _other_rows(node: Node) -> list[Row]:
    if node.is_from_person:
        return _user_rows(node)
    if node.task_from:
        return _task_rows(node)
    if node.role == "user":
        return [NoticeRow(row_key(node, 0), node, NoticeBlock(kind="info", text=engine_message_text(node)))]
    return _plain_rows(node)


def _user_rows(node: Node) -> list[Row]:
    text = "\n\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
    texts: list[Row] = [UserRow(row_key(node, 0), node, text)] if text else []
    attached = [block for block in node.blocks if isinstance(block, FileBlock)]
    file_rows = [FileRow(f"{node.id}/file/{number}", node, file) for number, file in enumerate(attached)]
    return [*texts, *_image_rows(node, node.blocks), *file_rows]


def _task_rows(node: Node) -> list[Row]:
    """Return the task of a sub-agent, as its caller wrote it: Markdown like a reply."""
    rows: list[Row] = [
        SpeakerRow(f"{node.id}/caller", node, Speaker(tr("Task from {name}").format(name=node.task_from), ""))
    ]
    for index, block in enumerate(node.blocks):
        if isinstance(block, TextBlock) and block.text.strip():
            rows += text_rows(node, index, split_markdown(block.text), step=0, streaming=False)
    return rows


def _plain_rows(node: Node) -> list[Row]:
    """Return the rows of other nodes.

    Notices, summaries, what was recalled, and the pictures of results, whose text is shown with the call.
    """
    rows: list[Row] = []
    for index, block in enumerate(node.blocks):
        if isinstance(block, NoticeBlock):
            rows.append(NoticeRow(row_key(node, index), node, block))
        elif isinstance(block, SummaryBlock):
            rows.append(SummaryRow(row_key(node, index), node, block))
        elif isinstance(block, RecallBlock):
            if block.entries or block.withheld:
                rows.append(RecallRow(row_key(node, index), node, block))
        elif isinstance(block, ToolResultBlock):
            rows += _image_rows(node, block.images)
    return rows


def _image_rows(node: Node, blocks: Iterable[object]) -> list[Row]:
    images = [block for block in blocks if isinstance(block, ImageBlock)]
    return [ImageRow(f"{node.id}/image/{number}", node, image) for number, image in enumerate(images)]


def _outcome(node: Node) -> list[Row]:
    if node.status == "failed":
        notice = NoticeBlock(kind="error", text=node.error or _FAILED)
    elif node.status == "cut":
        notice = NoticeBlock(kind="interrupted", text=_CUT_OFF)
    else:
        return []
    return [NoticeRow(f"{node.id}/outcome", node, notice)]


class _Reply:
    """Builds the rows of an agent's reply. Each ask is shown once: at its call, or at the end."""

    def __init__(self, node: Node, extras: NodeExtras) -> None:
        self._node = node
        self._extras = extras
        self._asks = list(extras.asks)
        self._step = node.turn

    def rows(self) -> list[Row]:
        rows: list[Row] = []
        for index, block in enumerate(self._node.blocks):
            match block:
                case TextBlock(text=text):
                    rows += self._text_rows(index, text)
                case ThinkingBlock(text=text) if text.strip():
                    rows.append(ThinkingRow(row_key(self._node, index), self._node, text, streaming=False))
                case ImageBlock():
                    rows.append(ImageRow(row_key(self._node, index), self._node, block))
                case ToolCallBlock():
                    rows += self._call_rows(index, block)
                case _:
                    pass
        return [*rows, *(AskRow(ask.id, ask) for ask in self._asks)]

    def _text_rows(self, index: int, text: str) -> list[ReplyRow]:
        if not text.strip():
            return []
        step, self._step = self._step, 0
        return text_rows(self._node, index, split_markdown(text), step=step, streaming=False)

    def _call_rows(self, index: int, call: ToolCallBlock) -> list[Row]:
        call_result = self._extras.results.get(call.call_id)
        result = call_result.block if call_result is not None else None
        match call_form(call, result):
            case "question":
                return self._question_rows(index, call, result)
            case "hidden":
                return []
            case "text":
                return [*self._text_rows(index, content_of(call))]
            case "call":
                return self._tool_rows(index, call, result)

    def _tool_rows(self, index: int, call: ToolCallBlock, result: ToolResultBlock | None) -> list[Row]:
        asks = self._asks_of(call)
        waiting = [ask for ask in asks if ask.status == "waiting"]
        kinds: set[AskKind] = {ask.kind for ask in waiting}
        progress = self._progress(call)
        row = replace(
            self._tool_row(index, call, result),
            state=self._state(kinds, progress),
            progress=progress if result is None else None,
            settled=tuple(ask for ask in asks if ask.status != "waiting"),
        )
        return [row, *(AskRow(ask.id, ask) for ask in waiting)]

    def _progress(self, call: ToolCallBlock) -> CallProgress | None:
        task = self._extras.task
        if task is None or task.progress.step_count != self._node.turn:
            return None
        return next((progress for progress in task.activity.calls if progress.call_id == call.call_id), None)

    def _state(self, asks: Collection[AskKind], progress: CallProgress | None) -> CallState:
        """Return the state of a call, as far as it has no result."""
        task = self._extras.task
        if "approval" in asks:
            return "asks"
        if "unknown" in asks:
            return "unknown"
        if task is not None and task.activity.status == "interrupted":
            return "interrupted"
        if task is not None and task.outcome.ended_at is not None:
            return "dropped"
        if progress is None:
            return "pending"
        return "running" if progress.ended_at is None else "ended"

    def _question_rows(self, index: int, call: ToolCallBlock, result: ToolResultBlock | None) -> list[Row]:
        for ask in self._asks:
            if ask.kind == "question" and ask.call_id in (call.call_id, None):  # older asks name no call
                self._asks.remove(ask)
                return [AskRow(ask.id, ask)]
        # A question that was not asked yet has no row; if it failed, the tool card shows why.
        return [self._tool_row(index, call, result)] if result is not None else []

    def _asks_of(self, call: ToolCallBlock) -> list[Ask]:
        own = [ask for ask in self._asks if (of := ask.approval or ask.unknown) and of.call_id == call.call_id]
        self._asks = [ask for ask in self._asks if ask not in own]
        return own

    def _tool_row(self, index: int, call: ToolCallBlock, result: ToolResultBlock | None) -> ToolCallRow:
        output = self._extras.outputs.get(call.call_id, "")
        call_result = self._extras.results.get(call.call_id)
        result_id = call_result.node_id if call_result is not None else ""
        return ToolCallRow(row_key(self._node, index), self._node, call, result, output, result_id=result_id)


@dataclass(frozen=True, slots=True)
class FoldedTaskEnd:
    """The end row of a task. `folded` are nodes whose notices it includes; it follows the node `last_id`."""

    row: TaskEndRow
    last_id: str
    folded: Collection[str]


def task_end(task: Task, nodes: Sequence[Node], *, is_whole: bool) -> FoldedTaskEnd | None:
    """Return the end of an ended task; `nodes` are its loaded nodes, `is_whole` says that no earlier ones exist.

    None if the branch leaves the task before its end: another branch has the end.
    """
    closing = nodes[-1] if any(notice.kind in _CLOSING for notice in _notices(nodes[-1])) else None
    if closing is None and not _is_last(task, nodes[-1]):
        return None
    replies = [node for node in nodes if node.role == "assistant"]
    last = replies[-1] if replies else None
    failure = last if last is not None and last.status in ("cut", "failed") else None
    if failure is not None and failure not in nodes[-2:]:
        failure = None  # the task continued after it
    is_retried = failure or (replies[0] if replies and is_whole else None)
    row = TaskEndRow(
        f"{task.id}/end",
        _without_echo(task, last),
        reply=message_markdown(last),
        stopped_by=_stopped_by(closing),
        remarks=tuple(remark for remark in (_closing_remark(closing, task), _failure_remark(failure, task)) if remark),
        retry_id=is_retried.id if is_retried is not None else None,
        is_model_failure=closing is not None and any(_is_model_failure(notice) for notice in _notices(closing)),
    )
    return FoldedTaskEnd(row, nodes[-1].id, {node.id for node in (closing, failure) if node is not None})


def _is_last(task: Task, node: Node) -> bool:
    """Return True for a successful end without a notice; all other ends have a notice of the engine."""
    return (
        task.outcome.stop_reason in ("completed", None)
        and node.role != "user"
        and node.turn >= task.progress.step_count
    )


def _notices(node: Node) -> list[NoticeBlock]:
    return [block for block in node.blocks if isinstance(block, NoticeBlock)]


def _is_model_failure(notice: NoticeBlock) -> bool:
    return isinstance(notice.data, TaskFailed) and notice.data.cause == "reply"


def _without_echo(task: Task, last: Node | None) -> Task:
    """Remove a summary that only repeats the last reply, which is shown right above."""
    reply_text = (
        "".join(block.text for block in last.blocks if isinstance(block, TextBlock)) if last is not None else ""
    )
    return replace_fields(task, summary="") if reply_text and reply_text == task.outcome.summary else task


def _failure_remark(broken: Node | None, task: Task) -> str:
    if broken is None:
        return ""
    if broken.status == "cut":
        return _CUT_TEXT
    return broken.error or "" if broken.error != task.outcome.error else ""


def _stopped_by(closing: Node | None) -> str:
    notices = _notices(closing) if closing is not None else ()
    return next((notice.data.by for notice in notices if isinstance(notice.data, TaskStopped)), "")


def _closing_remark(closing: Node | None, task: Task) -> str:
    """Return the failures beside the reply, the ended processes and the unread messages."""
    return " ".join(_closing_text(notice, task) for notice in _notices(closing)) if closing is not None else ""


def _closing_text(notice: NoticeBlock, task: Task) -> str:
    match notice.data:
        case TaskStopped(by=by) as stopped if by:
            return leftovers_text(stopped)
        case TaskFailed(cause=cause) as failed if cause != "internal":
            return leftovers_text(failed)
        case None if task.outcome.error is not None:  # from before notices had data: the text begins with the error
            return notice.text.removeprefix(task.outcome.error).strip()
        case _:
            return notice_text(notice)


class AskAnchors:
    """Assigns asks to nodes.

    `order` and `nodes` belong to the branch: call `place_all` or `place_waiting` after changes.
    """

    def __init__(self, order: Sequence[str], nodes: Mapping[str, Node]) -> None:
        self._order = order
        self._nodes = nodes
        self._asks: dict[str, Ask] = {}
        self._at: dict[str, list[str]] = {}
        self._others: dict[str, tuple[Ask, ...]] = {}
        self._unplaced: set[str] = set()  # asks whose node is not loaded

    def put(self, ask: Ask) -> Sequence[str]:
        """Store an ask; returns the loaded node whose rows show it, if any."""
        before = self._asks.get(ask.id)
        if before is not None and ask.status == "waiting":
            return ()  # loaded before it was settled, or sent again
        self._asks[ask.id] = ask
        node_id = self._place(ask)
        return [node_id] if node_id else []

    def put_others(self, ask_id: str, others: tuple[Ask, ...]) -> Sequence[str]:
        """Set the equal open asks of an ask."""
        if self._others.get(ask_id, ()) == others:
            return ()
        self._others[ask_id] = others
        return [node_id for node_id, ask_ids in self._at.items() if ask_id in ask_ids]

    def at(self, node_id: str) -> list[Ask]:
        """Return the asks raised after a node, oldest first."""
        asks = [self._asks[ask_id] for ask_id in self._at.get(node_id, ())]
        return sorted(asks, key=lambda ask: (ask.created_at, ask.id))

    def with_others(self, row: Row) -> Row:
        """Return the row with the equal open asks, if it shows an open ask."""
        if not isinstance(row, AskRow) or row.ask.status != "waiting":
            return row
        return replace(row, others=self._others.get(row.ask.id, ()))

    def place_all(self) -> None:
        self._at.clear()
        self._unplaced.clear()
        for ask in self._asks.values():
            self._place(ask)

    def place_waiting(self, node: Node) -> None:
        """After a reconnect, asks are replayed before the nodes that they belong to."""
        for ask_id in tuple(self._unplaced):
            if self._asks[ask_id].task_id == node.task_id:
                self._place(self._asks[ask_id])

    def _place(self, ask: Ask) -> str | None:
        """Return the node after which the ask was raised; for a call, the reply that contains the call."""
        for node_id in self._candidates(ask):
            node = self._nodes[node_id]
            if node.task_id == ask.task_id and node.created_at <= ask.created_at and _can_raise(node, ask):
                placed = self._at.setdefault(node_id, [])
                if ask.id not in placed:
                    placed.append(ask.id)
                self._unplaced.discard(ask.id)
                return node_id
        self._unplaced.add(ask.id)
        return None

    def _candidates(self, ask: Ask) -> Iterable[str]:
        anchor_id = next((node_id for node_id, asks in self._at.items() if ask.id in asks), None)
        return reversed(self._order) if anchor_id is None else (anchor_id,)


def _can_raise(node: Node, ask: Ask) -> bool:
    return ask.kind == "limit" or (node.role == "assistant" and node.status != "streaming")

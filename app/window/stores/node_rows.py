"""The rows of one finished node, with what belongs to it: results, output and asks. Which those are is the branch's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.client.engine_words import engine_words
from app.protocol.asks import Ask
from app.protocol.blocks import (
    FileBlock,
    ImageBlock,
    NoticeBlock,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from app.protocol.conversations import Node
from app.window.rows import (
    AskRow,
    FileRow,
    ImageRow,
    NoticeRow,
    Row,
    SummaryRow,
    TextRow,
    ThinkingRow,
    ToolRow,
    UserRow,
)
from app.window.stores.draft import key, text_rows
from app.window.stores.markdown import split

_CUT = "The reply was cut short. What had come is kept."
_FAILED = "The reply failed."


@dataclass(frozen=True, slots=True)
class Belongings:
    """What is known of a node's tool calls, by call id, and the asks that were raised after it, oldest first.

    `is_interrupted` says so of its task: a call without a result is not at work.
    """

    results: Mapping[str, ToolResultBlock]
    outputs: Mapping[str, str]
    asks: Sequence[Ask]
    is_interrupted: bool


def node_rows(node: Node, belongings: Belongings) -> list[Row]:
    """In the order in which they are shown."""
    if node.is_from_person:
        return _user_rows(node)
    if node.role == "user":
        return [NoticeRow(key(node, 0), node, NoticeBlock(kind="info", text=engine_words(node)))]
    rows = _Reply(node, belongings).rows() if node.role == "assistant" else _plain_rows(node)
    return [*rows, *_outcome(node)]


def _user_rows(node: Node) -> list[Row]:
    text = "\n\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
    words: list[Row] = [UserRow(key(node, 0), node, text)] if text else []
    files = [block for block in node.blocks if isinstance(block, FileBlock)]
    named = [FileRow(f"{node.id}/file/{number}", node, file) for number, file in enumerate(files)]
    return [*words, *_image_rows(node, node.blocks), *named]


def _plain_rows(node: Node) -> list[Row]:
    """Of a result only the pictures: the rest stands at its call. Of a remark the remark."""
    rows: list[Row] = []
    for index, block in enumerate(node.blocks):
        if isinstance(block, NoticeBlock):
            rows.append(NoticeRow(key(node, index), node, block))
        elif isinstance(block, SummaryBlock):
            rows.append(SummaryRow(key(node, index), node, block))
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
        notice = NoticeBlock(kind="interrupted", text=_CUT)
    else:
        return []
    return [NoticeRow(f"{node.id}/outcome", node, notice)]


class _Reply:
    """The rows of an agent's reply. Each ask is used once: at its call, or at the end."""

    def __init__(self, node: Node, belongings: Belongings) -> None:
        self._node = node
        self._belongings = belongings
        self._asks = list(belongings.asks)
        self._step = node.turn

    def rows(self) -> list[Row]:
        rows: list[Row] = []
        for index, block in enumerate(self._node.blocks):
            match block:
                case TextBlock(text=text):
                    rows += self._text_rows(index, text)
                case ThinkingBlock(text=text) if text.strip():
                    rows.append(ThinkingRow(key(self._node, index), self._node, text, streaming=False))
                case ImageBlock():
                    rows.append(ImageRow(key(self._node, index), self._node, block))
                case ToolCallBlock():
                    rows += self._call_rows(index, block)
                case _:
                    pass
        return [*rows, *(AskRow(ask.id, ask) for ask in self._asks)]

    def _text_rows(self, index: int, text: str) -> list[TextRow]:
        if not text.strip():
            return []
        step, self._step = self._step, 0
        return text_rows(self._node, index, split(text), step=step, streaming=False)

    def _call_rows(self, index: int, call: ToolCallBlock) -> list[Row]:
        result = self._belongings.results.get(call.call_id)
        was_refused = result is not None and result.is_error
        if call.tool == "ask_user":
            return self._question_rows(index, call, result)
        if call.tool == "task_complete" and not was_refused:
            return []
        message = call.arguments.get("message")
        if call.tool == "send_update" and isinstance(message, str) and not was_refused:
            return [*self._text_rows(index, message)]
        asks = self._ask_rows(call)
        waiting = [row.ask.kind for row in asks if row.ask.status == "waiting"]
        row = self._tool_row(index, call, result)
        open_ = self._belongings.is_interrupted and result is None
        return [replace(row, waiting="approval" in waiting, unknown="unknown" in waiting, interrupted=open_), *asks]

    def _question_rows(self, index: int, call: ToolCallBlock, result: ToolResultBlock | None) -> list[Row]:
        question = call.arguments.get("question")
        for ask in self._asks:
            if ask.kind == "question" and ask.text == question:
                self._asks.remove(ask)
                return [AskRow(ask.id, ask)]
        # It was never put: the card says why. Before it is put there is nothing to show.
        return [self._tool_row(index, call, result)] if result is not None else []

    def _ask_rows(self, call: ToolCallBlock) -> list[AskRow]:
        own = [ask for ask in self._asks if (of := ask.approval or ask.unknown) and of.call_id == call.call_id]
        self._asks = [ask for ask in self._asks if ask not in own]
        return [AskRow(ask.id, ask) for ask in own]

    def _tool_row(self, index: int, call: ToolCallBlock, result: ToolResultBlock | None) -> ToolRow:
        output = self._belongings.outputs.get(call.call_id, "")
        return ToolRow(key(self._node, index), self._node, call, result, output)

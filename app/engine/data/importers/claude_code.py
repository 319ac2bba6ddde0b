"""Claude Code sessions: `~/.claude/projects/*/*.jsonl`, one record per line, each naming its predecessor."""

from collections.abc import Iterator

import msgspec

from app.engine.data.importers.anthropic_content import ContentPiece, blocks_of, text_of
from app.engine.data.importers.conversation import ForeignConversation, ForeignNode, moment
from app.engine.data.importers.import_context import ImportContext
from app.engine.data.importers.json_documents import Documents
from app.protocol.blocks import ToolCallBlock, ToolResultBlock


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[ContentPiece] = ""
    id: str | None = None
    model: str | None = None


class _Origin(msgspec.Struct):
    kind: str = "human"


class _Line(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    origin: _Origin | None = None
    message: _Message | None = None
    summary: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    session = _Session(context)
    for data in documents:
        line = context.record(data, _Line, "records")
        if line is not None:
            session.add_line(line)
    yield session.conversation


class _Session:
    """A reply has one line per piece, all with the same message id: merges them into one node."""

    def __init__(self, context: ImportContext) -> None:
        self.conversation = ForeignConversation("")
        self._context = context
        self._replies: dict[str, ForeignNode] = {}
        self._tools: dict[str, tuple[str, ForeignNode]] = {}
        # The last result node by reply: results of one reply form a chain, although each names the line of its call.
        self._results: dict[str, ForeignNode] = {}

    def add_line(self, line: _Line) -> None:
        conversation = self.conversation
        conversation.source_id = conversation.source_id or line.session_id or ""
        conversation.folder = conversation.folder or line.cwd or ""
        conversation.title = line.custom_title or conversation.title or line.ai_title or line.summary or ""
        if line.is_sidechain:
            self._context.skip("messages of sub-agents")
            return
        if line.uuid is None:
            return
        conversation.links[line.uuid] = line.parent_uuid or line.logical_parent_uuid
        if line.message is None or line.is_meta or line.type not in ("user", "assistant"):
            return
        if line.type == "assistant":
            self._reply(line, line.uuid, line.message)
        elif line.is_compact_summary:
            self._context.skip("summaries for the model")
        elif line.origin is not None and line.origin.kind != "human":
            self._context.skip("messages of the program")
        else:
            self._user_message(line, line.uuid, line.message)

    def _reply(self, line: _Line, uuid: str, message: _Message) -> None:
        blocks = blocks_of(_pieces(message), self._context)
        node = self._replies.get(message.id or "")
        if node is None:
            model = message.model or ""
            node = ForeignNode(f"{uuid}:1", line.parent_uuid, "assistant", [], moment(line.timestamp), model)
            self.conversation.nodes.append(node)
            if message.id:
                self._replies[message.id] = node
        node.blocks += blocks
        self.conversation.links[uuid] = node.id
        self._tools |= {block.call_id: (block.tool, node) for block in blocks if isinstance(block, ToolCallBlock)}

    def _user_message(self, line: _Line, uuid: str, message: _Message) -> None:
        pieces = _pieces(message)
        results = [piece for piece in pieces if piece.type == "tool_result"]
        last = self.conversation.links[uuid]
        for number, piece in enumerate(results):
            last = self._result(f"{uuid}:{number}", last, piece, line)
        blocks = blocks_of((piece for piece in pieces if piece.type != "tool_result"), self._context)
        if blocks:
            node = ForeignNode(f"{uuid}:said", last, "user", list(blocks), moment(line.timestamp))
            self.conversation.nodes.append(node)
            last = node.id
        self.conversation.links[uuid] = last

    def _result(self, node_id: str, parent_id: str | None, piece: ContentPiece, line: _Line) -> str:
        call_id = piece.tool_use_id or ""
        tool, reply = self._tools.get(call_id, ("tool", None))
        text, images = text_of(piece, self._context)
        block = ToolResultBlock(call_id=call_id, tool=tool, text=text, is_error=bool(piece.is_error), images=images)
        if reply is not None:
            before = self._results.get(reply.id)
            parent_id = before.id if before is not None else reply.id
        node = ForeignNode(node_id, parent_id, "tool_result", [block], moment(line.timestamp))
        self.conversation.nodes.append(node)
        if reply is not None:
            self._results[reply.id] = node
        return node.id


def _pieces(message: _Message) -> list[ContentPiece]:
    if isinstance(message.content, str):
        return [ContentPiece(type="text", text=message.content)]
    return message.content

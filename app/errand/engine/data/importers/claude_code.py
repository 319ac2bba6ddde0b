"""Claude Code sessions: `~/.claude/projects/*/*.jsonl`, one record per line, each naming its predecessor.

Looked at: Claude Code 2.1.197. What a person typed is not the only thing that has the type `user`: results, commands
(`/name`, `!command`) with their output, interruptions and summaries have it too. Replies of the
model `<synthetic>` are the program's: errors, or what had come of a reply when it was interrupted. A folder named after
the session holds long outputs (`tool-results/`) and the sessions of sub-agents (`subagents/agent-ID.jsonl`, with a
description in `agent-ID.meta.json`). Older versions wrote sub-agents into the session itself, as side chains.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.data.importers.anthropic_content import ContentPiece, blocks_of, text_of
from errand.engine.data.importers.conversation import (
    ForeignConversation,
    ForeignLink,
    ForeignNode,
    first_text,
    moment,
    sub_agent_result,
)
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents, documents
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import Block, NoticeBlock, SummaryBlock, TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Role
from errand.system.regular_file import open_regular, read_regular

PROGRAM = "Claude Code"
_SYNTHETIC = "<synthetic>"
# Written when a session goes on after an interruption.
_NO_REPLY = "No response requested."
_STOPPED = "Stopped by the person."
_PERSISTED = re.compile(r"\s*<persisted-output>.*?saved to: (\S+)", re.DOTALL)
_EXIT_CODE = re.compile(r"Exit code (\d{1,9})\b")
_RECORDS_OF_TITLE = 200
_MAX_SUB_AGENTS = 1_000
_MAX_OUTPUT_BYTES = 32_000_000
_MAX_META_BYTES = 64 * 1024
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_INTERRUPTED = "[Request interrupted by user"
_MAX_REMARK_LENGTH = 4_000
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_OUTPUTS = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")


@dataclass(frozen=True, slots=True)
class _Remark:
    """`text` says what was done and is empty for what says nothing; `interrupts` ends the reply before."""

    text: str = ""
    interrupts: bool = False


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[ContentPiece] = ""
    id: str | None = None
    model: str | None = None


class _Origin(msgspec.Struct):
    kind: str = "human"


class _Attachment(msgspec.Struct):
    type: str = ""
    prompt: JsonValue = None


class _Meta(msgspec.Struct, rename="camel"):
    description: str = ""
    agent_type: str = ""


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
    agent_id: str | None = None
    subtype: str | None = None
    content: JsonValue = None
    attachment: _Attachment | None = None
    is_api_error_message: bool = False
    tool_use_result: JsonValue = None


def read(records: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    session = _read_session(records, context)
    conversation = session.conversation
    if session.agent_id:
        path = context.folder.path if context.folder is not None else None
        conversation.title = (_description(path) if path is not None else "") or conversation.title
        caller = context.folder.claude_caller() if context.folder is not None else None
        conversation.caller = (
            _link(caller, conversation.source_id.partition("/")[0], context.silent()) if caller is not None else None
        )
        yield conversation
        return
    yield conversation
    for path in context.folder.claude_sub_agents() if context.folder is not None else ():
        try:
            with open_regular(path, follow_links=False) as file:
                called = _read_session(documents(file, "lines"), context).conversation
        except (OSError, InvalidParams):
            context.skip("files that cannot be read to their end")
            continue
        title = conversation.title or first_text(conversation)
        called.caller = ForeignLink(conversation.source_id, title, conversation.created_at)
        called.title = _description(path) or called.title
        yield called


def _read_session(records: Documents, context: ImportContext) -> "_Session":
    session = _Session(context)
    for data in records:
        line = context.record(data, _Line, "records")
        if line is not None:
            session.add_line(line)
    return session


class _Session:
    """A reply has one line per piece, all with the same message id: merges them into one node."""

    def __init__(self, context: ImportContext) -> None:
        self.conversation = ForeignConversation("")
        self.agent_id = ""
        self._context = context
        self._replies: dict[str, ForeignNode] = {}
        self._tools: dict[str, tuple[str, ForeignNode]] = {}
        # The last result node by reply: results of one reply form a chain, although each names the line of its call.
        self._results: dict[str, ForeignNode] = {}
        self._called: dict[str, ForeignLink | None] = {}
        self._outputs_left = _MAX_OUTPUT_BYTES

    def add_line(self, line: _Line) -> None:
        conversation = self.conversation
        if line.agent_id and not conversation.nodes and line.is_sidechain:
            self.agent_id = line.agent_id
            conversation.source_id = f"{line.session_id or ''}/{line.agent_id}"
        conversation.source_id = conversation.source_id or line.session_id or ""
        conversation.created_at = conversation.created_at or moment(line.timestamp)
        conversation.folder = conversation.folder or line.cwd or ""
        conversation.title = line.custom_title or conversation.title or line.ai_title or line.summary or ""
        if line.is_sidechain and not self.agent_id:
            self._context.skip("messages of sub-agents")
            return
        if line.uuid is None:
            return
        conversation.links[line.uuid] = line.parent_uuid or line.logical_parent_uuid
        if line.attachment is not None or line.subtype == "local_command":
            self._program_line(line, line.uuid)
        elif line.message is None or line.is_meta or line.type not in ("user", "assistant"):
            return
        elif line.type == "assistant":
            self._reply(line, line.uuid, line.message)
        elif line.is_compact_summary:
            self._summary(line, line.uuid, line.message)
        elif line.origin is not None and line.origin.kind != "human":
            self._context.skip("messages of the program")
        else:
            self._user_message(line, line.uuid, line.message)

    def _program_line(self, line: _Line, uuid: str) -> None:
        """Add an attachment that a person typed while the agent worked; others describe the program to the model."""
        attachment = line.attachment
        if attachment is not None and attachment.type == "queued_command" and isinstance(attachment.prompt, str):
            self._add(uuid, "user", (TextBlock(text=attachment.prompt),), line)
        elif isinstance(line.content, str) and (remark := _remark_of(line.content)) is not None:
            self._remark(remark, uuid, line)

    def _reply(self, line: _Line, uuid: str, message: _Message) -> None:
        if message.model == _SYNTHETIC:
            self._synthetic_reply(line, uuid, message)
            return
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

    def _synthetic_reply(self, line: _Line, uuid: str, message: _Message) -> None:
        blocks = blocks_of(_pieces(message), self._context)
        text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        if line.is_api_error_message:
            node = self._add(uuid, "assistant", (), line)
            node.status, node.error = "failed", text or "The reply failed."
        elif text.strip() != _NO_REPLY:
            node = self._add(uuid, "assistant", blocks, line)
            node.status, node.error = "cut", _STOPPED

    def _summary(self, line: _Line, uuid: str, message: _Message) -> None:
        text = "\n\n".join(piece.text for piece in _pieces(message) if piece.text)
        before = self.conversation.links[uuid]
        if before is None:
            self._context.skip("summaries for the model")
        elif text:
            block = SummaryBlock(text=text, until_id=before, nodes=len(self.conversation.nodes))
            self._add(uuid, "system", (block,), line)

    def _user_message(self, line: _Line, uuid: str, message: _Message) -> None:
        pieces = _pieces(message)
        results = [piece for piece in pieces if piece.type == "tool_result"]
        last = self.conversation.links[uuid]
        for number, piece in enumerate(results):
            last = self._result(f"{uuid}:{number}", last, piece, line)
        self.conversation.links[uuid] = last
        blocks = blocks_of((piece for piece in pieces if piece.type != "tool_result"), self._context)
        first = next((block.text for block in blocks if isinstance(block, TextBlock)), "")
        if (remark := _remark_of(first)) is not None:
            self._remark(remark, uuid, line)
        elif blocks and self.agent_id:
            self._add(uuid, "user", tuple(map(_as_task, blocks)), line).is_task = True
        elif blocks:
            self._add(uuid, "user", blocks, line)

    def _remark(self, remark: _Remark, uuid: str, line: _Line) -> None:
        if remark.interrupts:
            self._interrupt(uuid, line)
        elif remark.text:
            self._add(uuid, "system", (NoticeBlock(kind="info", text=remark.text),), line)

    def _interrupt(self, uuid: str, line: _Line) -> None:
        last = self.conversation.nodes[-1] if self.conversation.nodes else None
        if last is None or last.role != "assistant":
            last = self._add(uuid, "assistant", (), line)
        last.status, last.error = "cut", _STOPPED

    def _add(self, uuid: str, role: Role, blocks: tuple[Block, ...], line: _Line) -> ForeignNode:
        """Return a node for the whole line, after what it follows."""
        links = self.conversation.links
        node = ForeignNode(f"{uuid}:said", links[uuid], role, list(blocks), moment(line.timestamp))
        self.conversation.nodes.append(node)
        links[uuid] = node.id
        return node

    def _result(self, node_id: str, parent_id: str | None, piece: ContentPiece, line: _Line) -> str:
        tool, reply = self._tools.get(piece.tool_use_id or "", ("tool", None))
        block = self._result_block(piece, tool, line)
        if reply is not None:
            before = self._results.get(reply.id)
            parent_id = before.id if before is not None else reply.id
        node = ForeignNode(node_id, parent_id, "tool_result", [block], moment(line.timestamp))
        self.conversation.nodes.append(node)
        if reply is not None:
            self._results[reply.id] = node
        return node.id

    def _result_block(self, piece: ContentPiece, tool: str, line: _Line) -> ToolResultBlock:
        text, images = text_of(piece, self._context)
        if (persisted := _PERSISTED.match(text)) is not None:
            text = self._full_output(Path(persisted[1]).name) or text
        exit_match = _EXIT_CODE.match(text) if piece.is_error else None
        details: JsonObject | None = {"exit_code": int(exit_match[1])} if exit_match is not None else None
        result = ToolResultBlock(
            call_id=piece.tool_use_id or "",
            tool=tool,
            text=text,
            is_error=bool(piece.is_error),
            details=details,
            images=images,
        )
        agent_id = line.tool_use_result.get("agentId") if isinstance(line.tool_use_result, dict) else None
        called = self._sub_agent(agent_id) if isinstance(agent_id, str) else None
        return sub_agent_result(result, PROGRAM, called) if called is not None else result

    def _full_output(self, name: str) -> str | None:
        folder = self._context.folder
        text = folder.claude_output(name) if folder is not None and self._outputs_left > 0 else None
        if text is None:
            self._context.skip("long outputs, whose files are not here")
            return None
        self._outputs_left -= len(text)
        return text

    def _sub_agent(self, agent_id: str) -> ForeignLink | None:
        if agent_id not in self._called and len(self._called) < _MAX_SUB_AGENTS:
            folder = self._context.folder
            every = folder.claude_sub_agents() if folder is not None else []
            path = next((path for path in every if path.stem == f"agent-{agent_id}"), None)
            source_id = f"{self.conversation.source_id}/{agent_id}"
            link = _link(path, source_id, self._context.silent()) if path is not None else None
            self._called[agent_id] = link
        return self._called.get(agent_id)


def _link(path: Path, source_id: str, context: ImportContext) -> ForeignLink | None:
    """Return the conversation in another file of the program."""
    try:
        with open_regular(path, follow_links=False) as file:
            conversation = _read_session(islice(documents(file, "lines"), _RECORDS_OF_TITLE), context).conversation
    except (OSError, InvalidParams):
        return None
    title = _description(path) or conversation.title or first_text(conversation)
    return ForeignLink(source_id, title, conversation.created_at)


def _description(path: Path) -> str:
    """Return the text that the caller wrote above the task of a sub-agent."""
    try:
        data = read_regular(path.with_suffix(".meta.json"), _MAX_META_BYTES, follow_links=False)
        return msgspec.json.decode(data, type=_Meta).description
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _as_task(block: Block) -> Block:
    return msgspec.structs.replace(block, task_from=PROGRAM) if isinstance(block, TextBlock) else block


def _pieces(message: _Message) -> list[ContentPiece]:
    if isinstance(message.content, str):
        return [ContentPiece(type="text", text=message.content)]
    return message.content


def _remark_of(text: str) -> _Remark | None:
    """Return None for a text that a person wrote."""
    beginning = text.lstrip()
    if beginning.startswith(_INTERRUPTED):
        return _Remark(interrupts=True)
    if beginning.startswith(("<command-name>", "<command-message>")):
        name, arguments = _first_group(_COMMAND, text), _first_group(_ARGUMENTS, text)
        return _Remark(f"The person used {' '.join(part for part in (name, arguments) if part)}")
    if beginning.startswith("<bash-input>"):
        return _Remark(f"The person ran `{_inside('bash-input', text)}`")
    if beginning.startswith("<local-command-caveat>"):
        return _Remark()
    if beginning.startswith(tuple(f"<{tag}>" for tag in _OUTPUTS)):
        outputs = [_inside(tag, text) for tag in _OUTPUTS]
        output = "\n".join(part for part in outputs if part)
        return _Remark(f"Output of the person's command:\n{output}" if output else "")
    return None


def _inside(tag: str, text: str) -> str:
    return _first_group(re.compile(rf"<{tag}>(.*?)</{tag}>", re.DOTALL), text)


def _first_group(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return _ANSI.sub("", match[1]).strip()[:_MAX_REMARK_LENGTH] if match is not None else ""

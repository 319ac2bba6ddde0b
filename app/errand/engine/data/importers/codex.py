"""Codex sessions: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, one record per line, in order.

Looked at: Codex 0.171.0. `response_item` is what the model said and got; `event_msg` repeats that for the screen, and
alone tells exit codes, failed turns and aborted ones. A fork names its origin in `forked_from_id` and holds only what
came after: the records of the origin whose `ordinal` is below `forked_from_ordinal_exclusive` come first. The first
versions copied them instead. A sub-agent has a file of its own, whose head names the session that called it; the
result of `spawn_agent` has its id. Records below its `subagent_history_start_ordinal` are what its caller was told.
Before a `compacted` record stands the summary once more, as a message of the agent.
"""

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.data.importers.anthropic_content import call_arguments
from errand.engine.data.importers.conversation import (
    Chain,
    ForeignConversation,
    ForeignLink,
    first_text,
    moment,
    sub_agent_result,
)
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents, documents
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import Block, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

# Messages that Codex adds as the user: codex-rs/protocol/src/instruction_markers.rs, and what public readers skip.
_PREAMBLES = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>"),
    *("<collaboration_mode>", "<skill", "<turn_aborted>", "<subagent_notification>", "<codex_internal_context"),
)
# Records of the program about itself.
_BOOKKEEPING = ("world_state", "token_usage_record", "git_info", "turn_item", "inter_agent_communication_metadata")
_IMAGE_TAG = re.compile(r"\s*(?:<image(?: [^>]*)?>|</image>)\s*")
_UNSUPPORTED = re.compile(r"unsupported (?:custom tool )?call: ")
_EXIT_CODE = re.compile(r"^Process exited with code (-?\d{1,9})$", re.MULTILINE)
_PROGRAM = "Codex"
_MAX_ORIGINS = 20
_MAX_SUB_AGENTS = 1_000
_MAX_SESSION_BYTES = 256_000_000
_MAX_TITLE_LENGTH = 70
# A session names its subject in its first records.
_RECORDS_OF_TITLE = 60


class _Part(msgspec.Struct):
    type: str = ""
    text: str | None = None
    image_url: str | None = None


class _Item(msgspec.Struct):
    """A message, call or result; the type determines which fields apply."""

    type: str = ""
    id: str | None = None
    role: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] = []
    name: str | None = None
    arguments: str | None = None
    input: JsonValue = None
    action: JsonObject | None = None
    output: JsonValue = None
    call_id: str | None = None


class _Facts(msgspec.Struct):
    """Metadata of the session or of a turn."""

    id: str | None = None
    cwd: str | None = None
    model: str | None = None
    parent_thread_id: str | None = None
    agent_nickname: str | None = None
    forked_from_id: str | None = None
    forked_from_ordinal_exclusive: int | None = None
    subagent_history_start_ordinal: int | None = None


class _ErrorFacts(msgspec.Struct):
    message: str = ""


class _ItemFacts(msgspec.Struct):
    type: str = ""
    id: str | None = None
    exit_code: int | None = None


class _Event(msgspec.Struct):
    type: str = ""
    error: _ErrorFacts | None = None
    item: _ItemFacts | None = None
    call_id: str | None = None
    exit_code: int | None = None


class _Line(msgspec.Struct):
    """The first versions wrote bare payloads: the session's head without a type, then the items."""

    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    ordinal: int | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    session = _Session(context)
    for data in documents:
        session.add(data)
    yield session.named()


class _Session:
    def __init__(self, context: ImportContext) -> None:
        self.conversation = ForeignConversation("")
        self._context = context
        self._chain = Chain(self.conversation, "item")
        self._model = ""
        self._tools: dict[str, str] = {}
        self._exit_codes: dict[str, int] = {}
        self._called: dict[str, ForeignLink | None] = {}
        self._origins = 0
        self._is_called = self._is_fork = False
        self._nickname = ""
        self._history_end = 0
        self._size = 0

    def add(self, data: bytes, before: int | None = None) -> None:
        """Add a record; one that is not `before` this ordinal only if it is the head of its file."""
        self._size += len(data)
        if self._size > _MAX_SESSION_BYTES:
            raise InvalidParams(
                f"it has more than {_MAX_SESSION_BYTES // 1_000_000} MB with the sessions it was forked from"
            )
        try:
            line = msgspec.json.decode(data, type=_Line)
            is_own = before is None and (line.ordinal is None or line.ordinal >= self._history_end)
            is_of_origin = before is not None and line.ordinal is not None and line.ordinal < before
            if is_own or is_of_origin or line.type in ("session_meta", "turn_context"):
                self._add_line(line, data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._context.skip("records that cannot be read")

    def named(self) -> ForeignConversation:
        """Return the conversation with the title of its first text, which forks and sub-agents have too."""
        conversation = self.conversation
        first = first_text(conversation)[:_MAX_TITLE_LENGTH]
        conversation.title = (
            f"{self._nickname}: {first}" if self._nickname else f"{first} (fork)" if self._is_fork else first
        )
        return conversation

    def _add_line(self, line: _Line, data: bytes) -> None:
        is_bare = bytes(line.payload) == b"null"
        payload = data if is_bare else line.payload
        match line.type:
            case "session_meta":
                self._begin(msgspec.json.decode(payload, type=_Facts), line.timestamp)
            case "" if line.id is not None:
                self._begin(_Facts(id=line.id), line.timestamp)
            case "turn_context":
                self._model = msgspec.json.decode(payload, type=_Facts).model or self._model
            case "compacted":
                self._summary(msgspec.json.decode(payload, type=_ErrorFacts).message, line.timestamp)
            case "event_msg":
                self._event(msgspec.json.decode(payload, type=_Event), line.timestamp)
            case _ if line.type == "response_item" or is_bare:
                self._add(msgspec.json.decode(payload, type=_Item), line.timestamp)
            case other if other in _BOOKKEEPING:
                pass
            case other:
                self._context.skip(f"records of the kind “{other[:40]}”")

    def _begin(self, facts: _Facts, timestamp: str | None) -> None:
        """Take the first head, its own: a forked session can also contain the heads of its ancestors."""
        conversation = self.conversation
        is_own = not conversation.source_id
        conversation.source_id = conversation.source_id or facts.id or ""
        conversation.folder = conversation.folder or facts.cwd or ""
        conversation.created_at = conversation.created_at or moment(timestamp)
        if is_own and facts.parent_thread_id is not None:
            self._is_called = True
            conversation.caller = _link(facts.parent_thread_id, self._context)
            self._nickname = facts.agent_nickname or "Sub-agent"
            self._history_end = facts.subagent_history_start_ordinal or 0
        if facts.forked_from_id is not None and facts.forked_from_ordinal_exclusive is not None:
            self._is_fork = self._is_fork or is_own
            self._add_origin(facts.forked_from_id, facts.forked_from_ordinal_exclusive)

    def _add_origin(self, session_id: str, before: int) -> None:
        self._origins += 1
        folder = self._context.folder
        file = folder.codex_session(session_id) if folder is not None and self._origins <= _MAX_ORIGINS else None
        if file is None:
            self._context.skip("beginnings of forked sessions, whose origin is not here")
            return
        with file:
            for data in documents(file, "lines"):
                self.add(data, before)

    def _event(self, event: _Event, timestamp: str | None) -> None:
        """Add an event, unless it repeats items."""
        at = moment(timestamp)
        match event.type:
            case "task_complete" if event.error is not None:
                self._chain.fail("failed", event.error.message or "The turn failed.", at, self._model)
            case "turn_aborted":
                self._chain.fail("cut", "Stopped by the person.", at, self._model)
            case "item_completed" if event.item is not None and event.item.exit_code is not None and event.item.id:
                self._exit_codes[event.item.id] = event.item.exit_code
            case "exec_command_end" if event.call_id and event.exit_code is not None:
                self._exit_codes[event.call_id] = event.exit_code
            case _:
                pass

    def _summary(self, text: str, timestamp: str | None) -> None:
        if text.strip():
            self._chain.take_back(text)
            self._chain.summary(text, moment(timestamp))
        else:
            self._context.skip("encrypted summaries for the model")

    def _add(self, item: _Item, timestamp: str | None) -> None:
        at = moment(timestamp)
        match item.type:
            case "message":
                self._message(item, timestamp)
            case "reasoning":
                parts = (part.text for part in (*item.summary, *(item.content or ())) if part.text)
                if text := "\n\n".join(parts):
                    self._chain.agent((ThinkingBlock(text=text),), at, self._model)
                else:
                    self._context.skip("encrypted thoughts")
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                call = _call(item)
                self._tools[call.call_id] = call.tool
                self._chain.agent((call,), at, self._model)
            case "function_call_output" | "custom_tool_call_output":
                self._chain.result(self._result(item), at)
            case "" | "ghost_snapshot":
                pass  # file snapshots for undo
            case other:
                self._context.skip(f"records of the kind “{other[:40]}”")

    def _message(self, item: _Item, timestamp: str | None) -> None:
        blocks = tuple(self._blocks(item.content or ()))
        first = next((block.text for block in blocks if isinstance(block, TextBlock)), "")
        if item.role == "assistant":
            self._chain.agent(blocks, moment(timestamp), self._model)
        elif item.role == "user" and not first.lstrip().startswith(_PREAMBLES):
            is_task = self._is_called
            content = (_as_task(block) for block in blocks) if is_task else blocks
            self._chain.user(tuple(content), moment(timestamp), is_task=is_task)
        elif blocks:
            self._context.skip("instructions to the model")

    def _blocks(self, parts: list[_Part] | tuple[()]) -> Iterator[Block]:
        for part in parts:
            if part.text and part.text.strip() and not _IMAGE_TAG.fullmatch(part.text):
                yield TextBlock(text=part.text)
            elif part.image_url:
                yield from self._context.picture(part.image_url)

    def _result(self, item: _Item) -> ToolResultBlock:
        text, images, failed = self._output(item.output)
        call_id = item.call_id or ""
        tool = self._tools.get(call_id, "tool")
        exit_match = _EXIT_CODE.search(text[:500]) if tool == "exec_command" else None
        exit_code = self._exit_codes.pop(call_id, int(exit_match[1]) if exit_match is not None else None)
        details: JsonObject | None = None if exit_code is None else {"exit_code": exit_code}
        failed = failed or bool(exit_code) or _UNSUPPORTED.match(text) is not None
        result = ToolResultBlock(call_id=call_id, tool=tool, text=text, is_error=failed, details=details, images=images)
        called = self._sub_agent(_agent_id(text)) if tool == "spawn_agent" else None
        return sub_agent_result(result, _PROGRAM, called) if called is not None else result

    def _sub_agent(self, session_id: str) -> ForeignLink | None:
        if session_id not in self._called and len(self._called) < _MAX_SUB_AGENTS:
            self._called[session_id] = _link(session_id, self._context)
        return self._called.get(session_id)

    def _output(self, output: JsonValue) -> tuple[str, tuple[ImageBlock, ...], bool]:
        match output:
            case str():
                return output, (), False
            case {"content": str(text)}:
                return text, (), output.get("success") is False
            case list():
                texts = [
                    text for part in output if isinstance(part, dict) and isinstance(text := part.get("text"), str)
                ]
                urls = [
                    url for part in output if isinstance(part, dict) and isinstance(url := part.get("image_url"), str)
                ]
                images = tuple(image for url in urls for image in self._context.result_picture(url))
                return "\n".join(texts), images, False
            case _:
                return msgspec.json.encode(output).decode(), (), False


def _link(session_id: str, context: ImportContext) -> ForeignLink | None:
    """Return the conversation of another session; None if its file is not here."""
    file = context.folder.codex_session(session_id) if context.folder is not None else None
    if file is None:
        return None
    session = _Session(context.silent())
    with file:
        for data in islice(documents(file, "lines"), _RECORDS_OF_TITLE):
            session.add(data)
    conversation = session.named()
    return ForeignLink(conversation.source_id or session_id, conversation.title, conversation.created_at)


def _agent_id(text: str) -> str:
    try:
        agent_id = msgspec.json.decode(text, type=JsonObject).get("agent_id")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return agent_id if isinstance(agent_id, str) else ""


def _as_task(block: Block) -> Block:
    return msgspec.structs.replace(block, task_from=_PROGRAM) if isinstance(block, TextBlock) else block


def _call(item: _Item) -> ToolCallBlock:
    tool = item.name or {"local_shell_call": "shell", "web_search_call": "web_search"}.get(item.type, "tool")
    arguments, invalid = _arguments(item)
    return ToolCallBlock(call_id=item.call_id or item.id or "", tool=tool, arguments=arguments, invalid=invalid)


def _arguments(item: _Item) -> tuple[JsonObject, str | None]:
    if item.arguments is None:
        return item.action if item.action is not None else call_arguments(item.input), None
    try:
        return msgspec.json.decode(item.arguments, type=JsonObject), None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}, item.arguments

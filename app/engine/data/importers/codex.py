"""Codex sessions: `~/.codex/sessions/**/rollout-*.jsonl`, one record per line, in order."""

from collections.abc import Iterator

import msgspec

from app.engine.data.importers.anthropic_content import call_arguments
from app.engine.data.importers.conversation import Chain, ForeignConversation, moment
from app.engine.data.importers.import_context import ImportContext
from app.engine.data.importers.json_documents import Documents
from app.protocol.base import JsonObject, JsonValue
from app.protocol.blocks import Block, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

# Messages that Codex adds as the user: codex-rs/protocol/src/instruction_markers.rs, and what public readers skip.
_PREAMBLES = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>"),
    *("<collaboration_mode>", "<skill", "<turn_aborted>", "<subagent_notification>", "<codex_internal_context"),
)


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


class _Line(msgspec.Struct):
    """The first versions wrote bare payloads: the session's head without a type, then the items."""

    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    session = _Session(context)
    for data in documents:
        try:
            session.add_line(msgspec.json.decode(data, type=_Line), data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            context.skip("records that cannot be read")
    yield session.conversation


class _Session:
    def __init__(self, context: ImportContext) -> None:
        self.conversation = ForeignConversation("")
        self._context = context
        self._chain = Chain(self.conversation, "item")
        self._model = ""
        self._tools: dict[str, str] = {}

    def add_line(self, line: _Line, data: bytes) -> None:
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
                self._context.skip("summaries for the model")
            case "event_msg":
                pass  # duplicates of the items
            case _ if line.type == "response_item" or is_bare:
                self._add(msgspec.json.decode(payload, type=_Item), line.timestamp)
            case other:
                self._context.skip(f"records of the kind “{other[:40]}”")

    def _begin(self, facts: _Facts, timestamp: str | None) -> None:
        """A forked session also contains the heads of its ancestors: its own comes first."""
        conversation = self.conversation
        conversation.source_id = conversation.source_id or facts.id or ""
        conversation.folder = conversation.folder or facts.cwd or ""
        conversation.created_at = conversation.created_at or moment(timestamp)

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
            self._chain.user(blocks, moment(timestamp))
        elif blocks:
            self._context.skip("instructions to the model")

    def _blocks(self, parts: list[_Part] | tuple[()]) -> Iterator[Block]:
        for part in parts:
            if part.text and part.text.strip():
                yield TextBlock(text=part.text)
            elif part.image_url:
                yield from self._context.picture(part.image_url)

    def _result(self, item: _Item) -> ToolResultBlock:
        text, images, failed = self._output(item.output)
        call_id = item.call_id or ""
        tool = self._tools.get(call_id, "tool")
        return ToolResultBlock(call_id=call_id, tool=tool, text=text, is_error=failed, images=images)

    def _output(self, output: JsonValue) -> tuple[str, tuple[ImageBlock, ...], bool]:
        match output:
            case str():
                return output, (), False
            case {"content": str(text)}:
                return text, (), output.get("success") is False
            case list():
                texts = [text for one in output if isinstance(one, dict) and isinstance(text := one.get("text"), str)]
                urls = [url for one in output if isinstance(one, dict) and isinstance(url := one.get("image_url"), str)]
                images = tuple(image for url in urls for image in self._context.result_picture(url))
                return "\n".join(texts), images, False
            case _:
                return msgspec.json.encode(output).decode(), (), False


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

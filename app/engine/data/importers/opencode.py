"""OpenCode sessions, as written by `opencode export`: one object with the messages and their parts."""

from collections.abc import Iterator

import msgspec

from app.engine.data.importers.anthropic_content import call_arguments
from app.engine.data.importers.conversation import Chain, ForeignConversation, moment
from app.engine.data.importers.import_context import ImportContext
from app.engine.data.importers.json_documents import Documents
from app.protocol.base import JsonValue
from app.protocol.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock


class _Time(msgspec.Struct):
    created: float | None = None
    updated: float | None = None


class _Info(msgspec.Struct):
    """Metadata of the session or of a message."""

    id: str = ""
    title: str | None = None
    directory: str | None = None
    role: str | None = None
    time: _Time = msgspec.field(default_factory=_Time)
    model_id: str | None = msgspec.field(default=None, name="modelID")


class _State(msgspec.Struct):
    status: str = ""
    input: JsonValue = None
    output: str | None = None
    error: str | None = None
    title: str | None = None


class _Part(msgspec.Struct):
    type: str = ""
    text: str | None = None
    synthetic: bool = False
    tool: str | None = None
    call_id: str | None = msgspec.field(default=None, name="callID")
    state: _State | None = None
    url: str | None = None
    filename: str | None = None


class _Message(msgspec.Struct):
    info: _Info
    parts: list[_Part] = []


class _Session(msgspec.Struct):
    info: _Info
    messages: list[msgspec.Raw] = []


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    for data in documents:
        session = context.record(data, _Session, "sessions")
        if session is None:
            continue
        info = session.info
        conversation = ForeignConversation(
            info.id,
            title=info.title or "",
            created_at=moment(info.time.created),
            updated_at=moment(info.time.updated),
            folder=info.directory or "",
        )
        chain = Chain(conversation, "message")
        for message in session.messages:
            _add_message(chain, message, context)
        yield conversation


def _add_message(chain: Chain, data: msgspec.Raw, context: ImportContext) -> None:
    message = context.record(data, _Message, "messages")
    if message is None:
        return
    at = moment(message.info.time.created)
    if message.info.role == "user":
        chain.user([block for part in message.parts for block in _blocks(part, context)], at)
        return
    chain.end_reply()
    results: list[ToolResultBlock] = []
    for part in message.parts:
        # A message has several model calls, each started by a step: results precede the next one.
        if part.type == "step-start":
            _add_results(chain, results, message)
        chain.agent(tuple(_blocks(part, context)), at, message.info.model_id or "")
        if part.type == "tool" and (result := _result(part)) is not None:
            results.append(result)
    _add_results(chain, results, message)


def _add_results(chain: Chain, results: list[ToolResultBlock], message: _Message) -> None:
    for result in results:
        chain.result(result, moment(message.info.time.created))
    results.clear()


def _blocks(part: _Part, context: ImportContext) -> Iterator[Block]:
    match part.type:
        case "text":
            if part.synthetic:
                context.skip("texts that OpenCode added")
            elif part.text and part.text.strip():
                yield TextBlock(text=part.text)
        case "reasoning":
            if part.text and part.text.strip():
                yield ThinkingBlock(text=part.text)
        case "tool":
            arguments = call_arguments(part.state.input if part.state is not None else None)
            yield ToolCallBlock(call_id=part.call_id or "", tool=part.tool or "tool", arguments=arguments)
        case "file" if part.url is not None and part.url.startswith("data:image/"):
            yield from context.picture(part.url, part.filename or "")
        case "file":
            context.skip("attached files")
        case "step-start" | "step-finish" | "snapshot" | "patch" | "compaction" | "retry":
            pass  # markers of the program, and file snapshots for undo
        case other:
            context.skip(f"parts of the kind “{other[:40]}”")


def _result(part: _Part) -> ToolResultBlock | None:
    """None for a call without an end."""
    state = part.state
    if state is None or state.status not in ("completed", "error"):
        return None
    text = state.output if state.status == "completed" else state.error
    return ToolResultBlock(
        call_id=part.call_id or "",
        tool=part.tool or "tool",
        text=text or "",
        is_error=state.status == "error",
        summary=state.title or "",
    )

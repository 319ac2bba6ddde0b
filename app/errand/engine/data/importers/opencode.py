"""OpenCode sessions, as written by `opencode export`: one object with the messages and their parts.

The same records are in the program's database, see opencode_database.py. Looked at: OpenCode 1.18.33. A message of
the agent has several parts: text, reasoning, calls with their results in `state`. `error` of a message is the end of
a failed or aborted reply; a reply without an error and without a `completed` time was cut by the end of the program.
A compaction is an empty message of the user with a part `compaction`, followed by a reply with `summary`. A sub-agent
is a session with a `parentID`, named in the `metadata` of the call of the tool `task`.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from errand.engine.data.importers.anthropic_content import call_arguments
from errand.engine.data.importers.conversation import (
    Chain,
    ForeignConversation,
    ForeignLink,
    moment,
    sub_agent_result,
)
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import NodeStatus

PROGRAM = "OpenCode"
# Errors of a message that a person caused by stopping it.
_ABORTED = ("MessageAbortedError", "AbortError")

# Finds a session by its id.
FindSession: TypeAlias = Callable[[str], ForeignLink | None]


class _Time(msgspec.Struct):
    created: float | None = None
    updated: float | None = None
    completed: float | None = None


class _ErrorData(msgspec.Struct):
    message: str | None = None


class _Error(msgspec.Struct):
    name: str = "error"
    data: _ErrorData = msgspec.field(default_factory=_ErrorData)


class Info(msgspec.Struct):
    """Metadata of the session or of a message."""

    id: str = ""
    title: str | None = None
    directory: str | None = None
    role: str | None = None
    time: _Time = msgspec.field(default_factory=_Time)
    model_id: str | None = msgspec.field(default=None, name="modelID")
    summary: JsonValue = None  # true for a compaction; the user's messages have an object with changed files
    error: _Error | None = None
    parent_id: str | None = msgspec.field(default=None, name="parentID")


class _State(msgspec.Struct):
    status: str = ""
    input: JsonValue = None
    output: str | None = None
    error: str | None = None
    title: str | None = None
    metadata: JsonValue = None


class Part(msgspec.Struct):
    type: str = ""
    text: str | None = None
    synthetic: bool = False
    tool: str | None = None
    call_id: str | None = msgspec.field(default=None, name="callID")
    state: _State | None = None
    url: str | None = None
    filename: str | None = None


class _Message(msgspec.Struct):
    info: Info
    parts: list[Part] = []


class _ExportedSession(msgspec.Struct):
    info: Info
    messages: list[msgspec.Raw] = []


def read(documents: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    for data in documents:
        exported = context.record(data, _ExportedSession, "sessions")
        if exported is None:
            continue
        session = Session(exported.info, context)
        for raw in exported.messages:
            message = context.record(raw, _Message, "messages")
            if message is not None:
                session.add_message(message.info, message.parts)
        yield session.conversation


class Session:
    """Builds the conversation of a session from its messages, in their order."""

    def __init__(self, info: Info, context: ImportContext, find: FindSession = lambda session_id: None) -> None:
        self.conversation = ForeignConversation(
            info.id,
            title=info.title or "",
            created_at=moment(info.time.created),
            updated_at=moment(info.time.updated),
            folder=info.directory or "",
            caller=find(info.parent_id) if info.parent_id else None,
        )
        self._context = context
        self._find = find
        self._is_called = info.parent_id is not None
        self._chain = Chain(self.conversation, "message")

    def add_message(self, info: Info, parts: list[Part]) -> None:
        at, model = moment(info.time.created), info.model_id or ""
        if info.role == "user":
            self._chain.user(tuple(self._blocks(parts)), at, is_task=self._is_called)
            return
        self._chain.end_reply()
        if info.summary is True:
            self._chain.summary("\n\n".join(part.text or "" for part in parts if part.type == "text"), at, model)
            return
        results: list[ToolResultBlock] = []
        for part in parts:
            # A message has several model calls, each started by a step: results precede the next one.
            if part.type == "step-start":
                self._add_results(results, info)
            self._chain.agent(tuple(_blocks(part, self._context)), at, model)
            if part.type == "tool" and (result := self._result(part)) is not None:
                results.append(result)
        self._add_results(results, info)
        if (end := _end(info)) is not None:
            self._chain.fail(*end, at, model)

    def _blocks(self, parts: list[Part]) -> Iterator[Block]:
        for part in parts:
            for block in _blocks(part, self._context):
                is_task = self._is_called and isinstance(block, TextBlock)
                yield msgspec.structs.replace(block, task_from=PROGRAM) if is_task else block

    def _add_results(self, results: list[ToolResultBlock], info: Info) -> None:
        for result in results:
            self._chain.result(result, moment(info.time.created))
        results.clear()

    def _result(self, part: Part) -> ToolResultBlock | None:
        """Return None for a call without an end."""
        state = part.state
        if state is None or state.status not in ("completed", "error"):
            return None
        metadata = state.metadata if isinstance(state.metadata, dict) else {}
        exit_code = metadata.get("exit")
        details: JsonObject | None = {"exit_code": exit_code} if isinstance(exit_code, int) else None
        result = ToolResultBlock(
            call_id=part.call_id or "",
            tool=part.tool or "tool",
            text=(state.output if state.status == "completed" else state.error) or "",
            is_error=state.status == "error" or (isinstance(exit_code, int) and exit_code != 0),
            summary=state.title or "",
            details=details,
        )
        called_id = metadata.get("sessionId")
        called = self._find(called_id) if isinstance(called_id, str) else None
        return sub_agent_result(result, PROGRAM, called) if called is not None else result


def _end(info: Info) -> tuple[NodeStatus, str] | None:
    """Return how a failed reply ended."""
    if info.error is not None:
        status: NodeStatus = "cut" if info.error.name in _ABORTED else "failed"
        return status, info.error.data.message or info.error.name
    return ("cut", "OpenCode ended during this reply.") if info.time.completed is None else None


def _blocks(part: Part, context: ImportContext) -> Iterator[Block]:
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
        case "step-start" | "step-finish" | "snapshot" | "patch" | "compaction" | "retry" | "agent":
            pass  # markers of the program, and file snapshots for undo
        case other:
            context.skip(f"parts of the kind “{other[:40]}”")

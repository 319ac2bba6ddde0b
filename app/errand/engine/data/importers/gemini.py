"""gemini-cli sessions: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, and one `.json` object in older versions.

Looked at: gemini-cli 0.61.0 (`chatRecordingService.ts`). A line is one of four: the head with the session's id, which
is written again at each start; a message, which replaces the one with the same id; `$set`, whose `messages` are what
the model gets from now on; `$rewindTo`, which removes a message and all after it. At each start `$set` repeats all
messages without times and calls, and leaves out those that had no answer: the first record of a message applies. A
reply holds its calls with their results; messages of the user with `functionResponse` repeat those. A sub-agent has a
file of its own in a folder named after its caller's id; the call that started it has its id. What a person ran with
`!` is a message of the user in the program's words. After `/compress` the messages of `$set` are the summary, a reply
that only acknowledges it, and what was kept, as copies with other ids.
"""

import re
from collections.abc import Iterable, Iterator
from typing import IO

import msgspec

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

_PROGRAM = "gemini-cli"
# What gemini-cli adds as the user.
_PREAMBLES = ("<session_context>", "<hook_context>")
# How the text begins that replaces what was said before, after `/compress`.
_SUMMARY = "<state_snapshot>"
# Each part ends where it first can: a text that is made for it would be matched for hours otherwise.
_RAN = re.compile(
    r"\AI ran the following shell command:\n```sh\n(?>(.*?)\n```\n+This produced)(?>.*?:\n```\n)(.*)```\s*\Z", re.S
)
_MAX_REMARK_LENGTH = 2_000
_NOTHING = msgspec.Raw(b"null")
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,9})$", re.MULTILINE)


class _Inline(msgspec.Struct, rename="camel"):
    data: str = ""
    mime_type: str = ""


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    inline_data: _Inline | None = None
    function_response: JsonValue = None


class _Thought(msgspec.Struct):
    subject: str = ""
    description: str = ""


class _Call(msgspec.Struct):
    id: str = ""
    name: str = "tool"
    args: JsonValue = None
    result: JsonValue = None
    status: str = ""
    timestamp: str | None = None
    agent_id: str = msgspec.field(default="", name="agentId")


class _Message(msgspec.Struct, rename="camel"):
    id: str = ""
    type: str = ""
    timestamp: str | None = None
    content: str | list[_Part] | _Part | None = None
    display_content: str | list[_Part] | _Part | None = None
    thoughts: list[_Thought] | None = None
    tool_calls: list[_Call] | None = None
    model: str | None = None


class _Head(msgspec.Struct, rename="camel"):
    session_id: str | None = None
    start_time: str | None = None
    last_updated: str | None = None
    kind: str | None = None
    summary: str | None = None
    directories: list[str] | None = None
    messages: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    id: str | None = None
    session_id: str | None = msgspec.field(default=None, name="sessionId")
    update: msgspec.Raw = msgspec.field(default=_NOTHING, name="$set")
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")


def read(lines: Documents, context: ImportContext) -> Iterator[ForeignConversation]:
    session = _Session(context)
    for data in lines:
        session.add_line(data)
    yield session.conversation()


class _Session:
    """`_messages` are the raw records by id, in the order of the session.

    `_copies` are ids of messages that repeat others after a summary, `_first_sent` their first by the summary's id.
    """

    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._head = _Head()
        self._messages: dict[str, bytes] = {}
        self._copies: set[str] = set()
        self._first_sent: dict[str, bytes] = {}

    def add_line(self, data: bytes) -> None:
        line = self._context.record(data, _Line, "records")
        if line is None:
            return
        if line.rewind_to is not None:
            self._rewind(line.rewind_to)
        elif line.id is not None:
            self._messages[line.id] = data
        elif line.update is not _NOTHING:
            self._set(line.update)
        elif line.session_id is not None:
            self._set(data)

    def _set(self, data: bytes | msgspec.Raw) -> None:
        """Apply a head: the first start counts, and the last value of all else."""
        head = self._context.record(data, _Head, "records")
        if head is None:
            return
        before = self._head
        self._head = _Head(
            session_id=before.session_id or head.session_id,
            start_time=before.start_time or head.start_time,
            last_updated=head.last_updated or before.last_updated,
            kind=head.kind or before.kind,
            summary=head.summary or before.summary,
            directories=head.directories or before.directories,
        )
        summary_id, follows = "", 0
        for message in head.messages or ():
            line = self._context.record(message, _Line, "messages")
            if line is None or line.id is None or line.id in self._messages or line.id in self._copies:
                continue
            if summary_id:
                self._copies.add(line.id)
                follows += 1
                if follows > 1:  # the first one acknowledges the summary
                    self._first_sent.setdefault(summary_id, bytes(message))
                continue
            self._messages[line.id] = bytes(message)
            if _SUMMARY.encode() in bytes(message) and self._text_of(message)[1].startswith(_SUMMARY):
                summary_id = line.id

    def _rewind(self, message_id: str) -> None:
        ids = list(self._messages)
        removed = ids[ids.index(message_id) :] if message_id in self._messages else ids
        self._context.skip("messages that were taken back", len(removed))
        for removed_id in removed:
            del self._messages[removed_id]

    def conversation(self) -> ForeignConversation:
        head = self._head
        conversation = ForeignConversation(
            head.session_id or "",
            title=head.summary or "",
            created_at=moment(head.start_time),
            updated_at=moment(head.last_updated),
            folder=next(iter(head.directories or ()), ""),
            caller=_caller(self._context) if head.kind == "subagent" else None,
        )
        chain = Chain(conversation, "message")
        before: dict[tuple[str, str], str | None] = {}
        for message_id, data in self._messages.items():
            message = self._context.record(data, _Message, "messages")
            if message is None:
                continue
            sent_data = self._first_sent.get(message_id)
            before[message.type, _text(_parts(message.content)).strip()] = chain.last_id
            self._add(message, chain, before.get(self._text_of(sent_data)) if sent_data is not None else None)
        return conversation

    def _text_of(self, data: bytes | msgspec.Raw) -> tuple[str, str]:
        """Return the kind and the text of a message."""
        message = self._context.silent().record(data, _Message, "messages") or _Message()
        return message.type, _text(_parts(message.content)).strip()

    def _add(self, message: _Message, chain: Chain, until: str | None) -> None:
        """`until` is the node before what a summary kept."""
        at = moment(message.timestamp)
        match message.type:
            case "user":
                text = _text(_parts(message.content))
                if text.lstrip().startswith(_SUMMARY):
                    chain.summary(text, at, until=until)
                elif (ran := _RAN.match(text)) is not None:
                    chain.remark(f"The person ran `{ran[1][:_MAX_REMARK_LENGTH]}`", at)
                    if output := ran[2].rstrip():
                        chain.remark(f"Output of the person's command:\n{output[:_MAX_REMARK_LENGTH]}", at)
                else:
                    chain.user(tuple(self._blocks(message)), at, is_task=self._head.kind == "subagent")
            case "gemini":
                self._reply(message, chain)
            case "error":
                chain.fail("failed", _text(_parts(message.content)), at, "")
            case "info" | "warning":
                pass  # remarks of the program on the screen
            case other:
                self._context.skip(f"messages of the kind “{other[:40]}”")

    def _reply(self, message: _Message, chain: Chain) -> None:
        at, model = moment(message.timestamp), message.model or ""
        chain.end_reply()
        calls = message.tool_calls or []
        blocks: list[Block] = []
        for thought in message.thoughts or ():
            text = "\n".join(
                part for part in (thought.subject and f"**{thought.subject}**", thought.description) if part
            )
            blocks += [ThinkingBlock(text=text)] if text else []
        text = _text(_parts(message.content))
        blocks += [TextBlock(text=text)] if text.strip() else []
        blocks += [
            ToolCallBlock(call_id=call.id, tool=call.name, arguments=call_arguments(call.args)) for call in calls
        ]
        chain.agent(blocks, at, model)
        for call in calls:
            if call.result is not None or call.status in ("error", "cancelled"):
                chain.result(self._result(call), moment(call.timestamp) or at)

    def _blocks(self, message: _Message) -> Iterator[Block]:
        """Return the text that a person typed. Named files are only in `content`, between lines of the program."""
        parts = _parts(message.content)
        if any(part.function_response is not None for part in parts):
            return
        typed = _parts(message.display_content) if message.display_content is not None else parts
        text = _text(typed)
        if text.lstrip().startswith(_PREAMBLES):
            return
        if text.strip():
            yield TextBlock(text=text, task_from=_PROGRAM if self._head.kind == "subagent" else "")
        for part in parts:
            if part.inline_data is not None and part.inline_data.mime_type.startswith("image/"):
                yield from self._context.picture(part.inline_data.data)
            elif part.inline_data is not None:
                self._context.skip("attached files")

    def _result(self, call: _Call) -> ToolResultBlock:
        texts: list[str] = []
        images: list[ImageBlock] = []
        for part in call.result if isinstance(call.result, list) else [call.result]:
            match part:
                case {"functionResponse": {"response": {"output": str(text)}}}:
                    texts.append(text)
                case {"functionResponse": {"response": {"error": str(text)}}} | {"text": str(text)} | str(text):
                    texts.append(text)
                case {"inlineData": {"data": str(data)}}:
                    images += self._context.result_picture(data)
                case None:
                    pass
                case _:
                    self._context.skip("results that cannot be read")
        text = "\n".join(texts)
        exit_match = _EXIT_CODE.search(text) if call.name == "run_shell_command" else None
        details: JsonObject | None = {"exit_code": int(exit_match[1])} if exit_match is not None else None
        failed = call.status in ("error", "cancelled") or (exit_match is not None and int(exit_match[1]) != 0)
        result = ToolResultBlock(
            call_id=call.id, tool=call.name, text=text, is_error=failed, details=details, images=tuple(images)
        )
        called = _called(self._head.session_id or "", call.agent_id, self._context) if call.agent_id else None
        return sub_agent_result(result, _PROGRAM, called) if called is not None else result


def _called(caller_id: str, agent_id: str, context: ImportContext) -> ForeignLink | None:
    file = context.folder.gemini_sub_agent(caller_id, agent_id) if context.folder is not None else None
    return _link((file,), context) if file is not None else None


def _caller(context: ImportContext) -> ForeignLink | None:
    """Return the session that called this one; None if its files are not here."""
    return _link(context.folder.gemini_caller(), context) if context.folder is not None else None


def _link(files: Iterable[IO[bytes]], context: ImportContext) -> ForeignLink | None:
    """Return the first file with messages: gemini-cli begins another file when a session is resumed."""
    for file in files:
        with file:
            session = _Session(context.silent())
            for data in documents(file, "lines"):
                session.add_line(data)
        conversation = session.conversation()
        if conversation.nodes:
            title = conversation.title or first_text(conversation)
            return ForeignLink(conversation.source_id, title, conversation.created_at)
    return None


def _parts(content: str | list[_Part] | _Part | None) -> list[_Part]:
    match content:
        case None:
            return []
        case str():
            return [_Part(text=content)]
        case _Part():
            return [content]
        case _:
            return content


def _text(parts: list[_Part]) -> str:
    return "".join(part.text for part in parts if part.text and not part.thought)

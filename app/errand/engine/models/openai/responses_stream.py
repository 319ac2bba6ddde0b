"""Reads the events of a streamed response."""

import msgspec

from errand.engine.core.input_limits import token_count
from errand.engine.core.json_input.foreign_json import object_or_empty
from errand.engine.core.messages import StopReason, Thinking, Usage
from errand.engine.models.base import ModelEvent
from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import encode
from errand.engine.models.reply.event_decoder import EventDecoder, IndexValue, index_number
from errand.engine.models.reply.faults import error_in_stream, error_status, says_error, withheld
from errand.engine.models.signatures import RESPONSES_SIGNED, RESPONSES_UNSIGNED
from errand.protocol.base import JsonObject, JsonValue

_UNFINISHED = frozenset({"incomplete", "in_progress", "queued", "pause_turn"})
_POLICIES = frozenset({"image_content_policy_violation", "bio_policy", "cyber_policy", "content_filter"})


class _Part(msgspec.Struct):
    """A part of a message, of a summary or of a thought."""

    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    id: str | int | None = None
    call_id: str | int | None = None
    name: str | None = None
    arguments: JsonValue = None
    content: list[_Part] | _Part | str | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Usage(msgspec.Struct):
    """Accepts any types: a wrong number must not fail the reply. The thoughts are part of the output."""

    input_tokens: JsonValue = None
    output_tokens: JsonValue = None
    input_tokens_details: JsonValue = None

    def to_usage(self) -> Usage:
        details = object_or_empty(self.input_tokens_details)
        return Usage(
            token_count(self.input_tokens),
            token_count(self.output_tokens),
            token_count(details.get("cached_tokens")),
            token_count(details.get("cache_write_tokens")),
        )


class _Response(msgspec.Struct):
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None
    error: JsonValue = None
    incomplete_details: _Incomplete | None = None


class _Event(_Response):
    """An event; a whole response too, from servers that do not stream."""

    type: str = ""
    output_index: IndexValue = None
    summary_index: int = 0
    delta: JsonValue = None
    item: _Item | None = None
    response: _Response | None = None
    code: JsonValue = None
    message: JsonValue = None

    @property
    def is_blank(self) -> bool:
        return not (self.type or self.output is not None or self.status)


_decoder = msgspec.json.Decoder(_Event)


def reasoning_of(thought: Thinking, server: str = "") -> JsonObject | None:
    """Return the item that a thought came from; None if it came from another API or server, or is not whole."""
    text: list[JsonValue] = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    if thought.signature.startswith(RESPONSES_UNSIGNED):
        sender, item_id, field = (*thought.signature.removeprefix(RESPONSES_UNSIGNED).split(" "), "", "")[:3]
        if sender != server:
            return None
        content: list[JsonValue] = [{"type": "reasoning_text", "text": thought.text}]
        fields: JsonObject = {"summary": [], "content": content} if field == "content" else {"summary": text}
        return {"type": "reasoning"} | ({"id": item_id} if item_id else {}) | fields
    if not thought.signature.startswith(RESPONSES_SIGNED):
        return None
    item_id, _, encrypted = thought.signature.removeprefix(RESPONSES_SIGNED).partition(":")
    item: JsonObject = {"type": "reasoning", "summary": text, "encrypted_content": encrypted}
    return {"id": item_id, **item} if item_id else item


class ResponseReader:
    """A `ReplyReader` of the events of one response. Its items come one after the other.

    `server` is named in thoughts without encrypted content, which go back to it; OpenAI takes none of those.
    """

    def __init__(self, builder: ReplyBuilder, title: str, server: str = "") -> None:
        self._server = server
        self.finish_reason: str | None = None
        self._has_completed = False
        self._builder = builder
        self._title = title
        self._decoder = EventDecoder(_decoder, title, builder.redactor)
        # The items whose content has come, in pieces or whole; the item of the last text.
        self._read: set[int | None] = set()
        self._begun_calls: set[int | None] = set()
        self._call_ids: set[str] = set()
        self._texts: list[int | None] = []

    @property
    def is_over(self) -> bool:
        return self._has_completed or self._decoder.has_ended

    def read(self, data: bytes, name: str = "") -> list[ModelEvent]:
        decoded = self._decoder.decode(data, name, is_complete=self.finish_reason is not None)
        return [event for sent in decoded for event in self._event(sent, name)]

    def _event(self, event: _Event, name: str) -> list[ModelEvent]:
        event_type, index = event.type or name, index_number(event.output_index)
        match event_type:
            case "response.output_item.added" if event.item is not None:
                return self._begin(index, event.item)
            case "response.output_item.done" if event.item is not None:
                return self._finish(index, event.item)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.done":
                return self._end(event.response or event)
            case "error":
                details: JsonObject = {"code": event.code, "message": event.message}
                raise self._error(event.error or (details if event.code or event.message else None))
            case "" | "message" if event.output is not None or event.status or says_error(event.error):
                return self._end(event)
            case _:
                return self._grow(event, event_type, index) if event.delta or event.summary_index else []

    def end(self) -> list[ModelEvent]:
        self._decoder.log_skipped()
        reason = self.finish_reason
        if reason == "content_filter":
            raise withheld(self._title, "content filter")
        stop: StopReason = "length" if reason == "max_output_tokens" else "stop"
        if reason in _UNFINISHED:
            stop = "tool_use"  # more was to follow
        if self._builder.is_empty and stop != "length":
            raise self._decoder.empty_reply()
        return self._builder.end(stop)

    def _begin(self, index: int | None, item: _Item) -> list[ModelEvent]:
        if item.type != "function_call":
            return []
        call_id = str(item.call_id or item.id or "")
        self._begun_calls.add(index)
        self._call_ids.add(call_id)
        return self._builder.tool_call(index, call_id, item.name or "", "")

    def _grow(self, event: _Event, event_type: str, index: int | None) -> list[ModelEvent]:
        delta = _delta_text(event.delta)
        match event_type:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._text(index, delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._read.add(index)
                return self._builder.thinking(delta)
            case "response.reasoning_summary_part.added" if index in self._read:
                return self._builder.thinking("\n\n")
            case "response.function_call_arguments.delta":
                self._read.add(index)
                return self._builder.tool_call(index, "", "", delta)
            case _:
                return []  # of tools that run at the provider, which are never asked for

    def _text(self, index: int | None, text: str) -> list[ModelEvent]:
        self._read.add(index)
        starts_another = bool(self._texts) and self._texts[-1] != index
        self._texts.append(index)
        del self._texts[:-1]
        return self._builder.text(f"\n\n{text}" if starts_another else text)

    def _finish(self, index: int | None, item: _Item) -> list[ModelEvent]:
        """Return the whole item: what has not come in pieces is taken from it."""
        has_come = index in self._read
        match item.type:
            case "message":
                text = "".join(part.text or part.refusal or "" for part in _parts(item.content))
                return self._text(index, text) if text and not has_come else []
            case "function_call":
                arguments = _delta_text(item.arguments)
                events = [] if index in self._begun_calls else self._begin(index, item)
                return [*events, *([] if has_come else self._builder.tool_call(index, "", "", arguments))]
            case "reasoning":
                parts = item.summary or _parts(item.content)
                text = "" if has_come else "\n\n".join(part.text or "" for part in parts)
                signature = self._signature(item)
                self._texts.clear()
                return [*self._builder.thinking(text, signature), *self._builder.end_thought()]
            case _:
                return []

    def _signature(self, item: _Item) -> str:
        if item.encrypted_content:
            return f"{RESPONSES_SIGNED}{item.id or ''}:{item.encrypted_content}"
        field = "summary" if item.summary else "content"
        has_text = bool(item.summary or item.content)
        return f"{RESPONSES_UNSIGNED}{self._server} {item.id or ''} {field}" if self._server and has_text else ""

    def _end(self, response: _Response) -> list[ModelEvent]:
        """Return the last event, which has the whole response again."""
        if response.usage is not None:
            self._builder.usage = response.usage.to_usage()
        if says_error(response.error) or response.status in ("failed", "cancelled", "error"):
            raise self._error(response.error)
        events: list[ModelEvent] = []
        is_first = self._builder.is_empty
        for index, item in enumerate(response.output or ()):
            if is_first or (item.type == "function_call" and str(item.call_id or item.id or "") not in self._call_ids):
                events += self._finish(index, item)
        details = response.incomplete_details
        self.finish_reason = (details.reason if details is not None else None) or response.status or "completed"
        self._has_completed = True
        return events

    def _error(self, error: JsonValue) -> ProviderError:
        code = error.get("code") or error.get("type") if isinstance(error, dict) else None
        if isinstance(code, str) and code in _POLICIES:
            return withheld(self._title, code.replace("_", " "))
        if not error:
            text = f"{self._title} could not finish the reply. Try again."
            return ProviderError(AttemptFailure(text, "reply failed", FailureKind.UNAVAILABLE))
        is_image = isinstance(code, str) and "image" in code
        status = error_status(error, 400 if is_image else 500)
        return error_in_stream(error, self._title, self._builder.redactor, status)


def _delta_text(value: JsonValue) -> str:
    """Return a text as it is; a value that some servers send in its place, as JSON."""
    return value if isinstance(value, str) else encode(value).decode() if value else ""


def _parts(content: list[_Part] | _Part | str | None) -> list[_Part]:
    match content:
        case None:
            return []
        case str():
            return [_Part(text=content)]
        case _Part():
            return [content]
        case _:
            return content

"""Reads the events of a streamed response."""

import msgspec

from errand.engine.core.input_limits import token_count
from errand.engine.core.messages import StopReason, Thinking, Usage
from errand.engine.models.base import ModelEvent
from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.faults import decode_event, empty_reply, error_in_stream, withheld
from errand.protocol.base import JsonObject, JsonValue

_DONE = b"[DONE]"  # of some servers; OpenAI's streams end with an event
# The signature of a thought begins with this; its id and its encrypted content follow.
_SIGNED = "reasoning:"
_STATUS = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "invalid_api_key": 401,
    "server_is_overloaded": 503,
    "slow_down": 503,
}
_POLICIES = frozenset({"image_content_policy_violation", "bio_policy", "cyber_policy", "content_filter"})


class _Part(msgspec.Struct):
    """A part of a message, of a summary or of a thought."""

    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | JsonObject | None = None
    content: list[_Part] | None = None
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
        given = self.input_tokens_details
        details = given if isinstance(given, dict) else {}
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
    output_index: int | None = None
    summary_index: int = 0
    delta: str | None = None
    item: _Item | None = None
    response: _Response | None = None
    code: JsonValue = None
    message: JsonValue = None


_decoder = msgspec.json.Decoder(_Event)


def reasoning_of(thought: Thinking) -> JsonObject | None:
    """The item that a thought came from; None if it came from another API, or is not whole."""
    if not thought.signature.startswith(_SIGNED):
        return None
    item_id, _, encrypted = thought.signature.removeprefix(_SIGNED).partition(":")
    summary: list[JsonValue] = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    item: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}
    return {"id": item_id, **item} if item_id else item


class ResponseReader:
    """A `ReplyReader` of the events of one response. Its items come one after the other."""

    def __init__(self, builder: ReplyBuilder, title: str) -> None:
        self.finish_reason: str | None = None
        self.is_over = False
        self._builder = builder
        self._title = title
        # The items whose content has come, in pieces or whole; the item of the last text.
        self._read: set[int | None] = set()
        self._begun_calls: set[int | None] = set()
        self._texts: list[int | None] = []

    def read(self, data: bytes) -> list[ModelEvent]:
        if data == _DONE:
            self.is_over = True
            return []
        event = decode_event(data, _decoder, self._title, self._builder.redactor)
        match event.type:
            case "response.output_item.added" if event.item is not None:
                return self._begin(event.output_index, event.item)
            case "response.output_item.done" if event.item is not None:
                return self._finish(event.output_index, event.item)
            case "response.completed" | "response.incomplete" | "response.failed" if event.response is not None:
                return self._end(event.response)
            case "error":
                details: JsonObject = {"code": event.code, "message": event.message}
                raise self._error(event.error or (details if event.code or event.message else None))
            case "" if event.output is not None or event.error or event.status:
                return self._end(event)
            case _:
                return self._grow(event) if event.delta or event.summary_index else []

    def end(self) -> list[ModelEvent]:
        reason = self.finish_reason
        if reason == "content_filter":
            raise withheld(self._title, "content filter")
        stop: StopReason = "length" if reason == "max_output_tokens" else "stop"
        if self._builder.is_empty and stop != "length":
            raise empty_reply(self._title)
        return self._builder.end(stop)

    def _begin(self, index: int | None, item: _Item) -> list[ModelEvent]:
        if item.type != "function_call":
            return []
        self._begun_calls.add(index)
        return self._builder.tool_call(index, item.call_id or item.id or "", item.name or "", "")

    def _grow(self, event: _Event) -> list[ModelEvent]:
        index, delta = event.output_index, event.delta or ""
        match event.type:
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
        """The whole item: what has not come in pieces is taken from it."""
        has_come = index in self._read
        match item.type:
            case "message":
                text = "".join(part.text or part.refusal or "" for part in item.content or ())
                return self._text(index, text) if text and not has_come else []
            case "function_call":
                given = item.arguments or ""
                arguments = msgspec.json.encode(given).decode() if isinstance(given, dict) else given
                events = [] if index in self._begun_calls else self._begin(index, item)
                return [*events, *([] if has_come else self._builder.tool_call(index, "", "", arguments))]
            case "reasoning":
                parts = item.summary or item.content or ()
                text = "" if has_come else "\n\n".join(part.text or "" for part in parts)
                signature = f"{_SIGNED}{item.id or ''}:{item.encrypted_content}" if item.encrypted_content else ""
                self._texts.clear()
                return [*self._builder.thinking(text, signature), *self._builder.end_thought()]
            case _:
                return []

    def _end(self, response: _Response) -> list[ModelEvent]:
        """The last event, which has the whole response again."""
        if response.usage is not None:
            self._builder.usage = response.usage.to_usage()
        if response.error or response.status in ("failed", "cancelled"):
            raise self._error(response.error)
        events: list[ModelEvent] = []
        if self._builder.is_empty:
            for index, item in enumerate(response.output or ()):
                events += self._finish(index, item)
        details = response.incomplete_details
        self.finish_reason = (details.reason if details is not None else None) or response.status or "completed"
        self.is_over = True
        return events

    def _error(self, error: JsonValue) -> ProviderError:
        code = error.get("code") or error.get("type") if isinstance(error, dict) else None
        if isinstance(code, str) and code in _POLICIES:
            return withheld(self._title, code.replace("_", " "))
        if not error:
            text = f"{self._title} could not finish the reply. Try again."
            return ProviderError(AttemptFailure(text, "reply failed", FailureKind.UNAVAILABLE))
        is_image = isinstance(code, str) and "image" in code
        status = _STATUS.get(code, 400 if is_image else 500) if isinstance(code, str) else 500
        return error_in_stream(error, status, self._title, self._builder.redactor)

"""Messages of a server, read leniently: ids as text, results of any kind, errors in other forms than the protocol's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from errand.protocol.base import JsonObject, JsonValue

_MAX_ERROR_CHARACTERS = 4_000
_MAX_ID_DIGITS = 15
# Larger integers are no ids: they are not exact as numbers, and above 64 bits they cannot be encoded.
_MAX_EXACT_FLOAT = 2**53
_MAX_BATCH = 1_000
_END_BYTES = 4_096
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,15})\b')


@dataclass(frozen=True, slots=True)
class RpcFailure:
    """An answer with an error; `code` is 0 if the server names none."""

    text: str
    code: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the server, or a notification if it has no `id`."""

    method: str
    params: JsonObject
    id: str | int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request of ours; `outcome` is None if it has neither result nor error."""

    id: int | None
    outcome: JsonObject | RpcFailure | None


def messages_in(value: JsonValue) -> Iterator[Request | Answer]:
    """Yield the message of a text, or those of a batch; what is none is left out."""
    for message in value[:_MAX_BATCH] if isinstance(value, list) else [value]:
        if not isinstance(message, dict):
            continue
        method, message_id, failure = message.get("method"), _id(message.get("id")), message.get("error")
        if "result" in message or failure is not None:
            number = message_id if isinstance(message_id, int) else _number(message_id)
            yield Answer(number, _failure(failure) if failure is not None else _result(message["result"]))
        elif isinstance(method, str):
            params = message.get("params")
            yield Request(method, params if isinstance(params, dict) else {}, message_id)
        elif message_id is not None:
            yield Answer(_number(message_id), None)


def answered_id(head: bytes, tail: bytes) -> int | None:
    """Return the id of the request that an unreadable message answers, if its ends tell."""
    head, tail = head[:_END_BYTES].lstrip(b"\xef\xbb\xbf \t\r"), tail[-_END_BYTES:]
    if not head.startswith((b"{", b"[")) or b'"method"' in head:
        return None
    match = _ID.search(head) or next(iter(list(_ID.finditer(tail))[-1:]), None)
    return int(match[1]) if match is not None else None


def _id(value: JsonValue) -> str | int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_FLOAT:
        return int(value)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _number(message_id: str | int | None) -> int | None:
    if isinstance(message_id, str):
        is_number = message_id.isascii() and message_id.isdecimal() and len(message_id) <= _MAX_ID_DIGITS
        return int(message_id) if is_number else None
    return message_id


def _result(result: JsonValue) -> JsonObject:
    """Return a result as an object; a bare value is what the object would have as its content."""
    if isinstance(result, dict):
        return result
    return {} if result is None else {"content": result}


def _failure(error: JsonValue) -> RpcFailure:
    if not isinstance(error, dict):
        return RpcFailure(_text(error))
    code = error.get("code")
    is_code = isinstance(code, int | float) and not isinstance(code, bool) and abs(code) < 2**31
    return RpcFailure(_text(error.get("message")), int(code) if is_code and isinstance(code, int | float) else 0)


def _text(value: JsonValue) -> str:
    text = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    return text[:_MAX_ERROR_CHARACTERS] or "an error without a text"

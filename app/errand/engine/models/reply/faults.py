"""What readers of all formats say about a reply that failed: its errors, which may come in any form."""

from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError, failure_from_response
from errand.engine.models.refusal_text import is_too_long, refusal_text
from errand.engine.models.reply.content import encode
from errand.protocol.base import JsonObject, JsonValue
from errand.text.redaction import Redactor

# Maximum length of an error that is read, to quote it.
_MAX_ERROR_BYTES = 65_536
_MESSAGE_FIELDS = ("message", "detail", "msg", "error_message", "error_msg", "status_msg")
_CODE_FIELDS = ("code", "status", "status_code", "type")
# Codes of replies that did not fail.
_SUCCESSES = frozenset({"", "0", "200", "ok", "success"})
_NO_ERRORS = frozenset({"", "0", "null", "none", "false", "ok", "success"})
# The HTTP statuses that errors in the middle of a stream would have had at its start.
_STATUS = {
    "authentication_error": 401,
    "billing_error": 402,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "timeout_error": 504,
}


def top_level_error(event: JsonObject, *, is_named: bool = False) -> JsonValue:
    """Return the error in an event without content; None if it is something else, such as a keep-alive.

    `is_named`: the event is called an error. Servers wrap errors in `error`, or send their fields bare.
    """
    if says_error(error := event.get("error")):
        return error
    inner = event.get("base_resp")  # MiniMax
    fields = inner if isinstance(inner, dict) else event
    message = next((text for name in _MESSAGE_FIELDS if (text := _text(fields.get(name)))), "")
    if is_named and not message:
        message = _text(event)
    is_marked = bool(event.get("error")) and not isinstance(event.get("error"), str | list | dict)
    if not message or not (is_named or is_marked or _has_error_code(fields)):
        return None
    codes = {name: fields[name] for name in _CODE_FIELDS if isinstance(fields.get(name), str | int)}
    return {"message": message, **codes}


def says_error(error: JsonValue) -> bool:
    """Return True if the field `error` names a fault: some servers send it empty, or with the code of a success."""
    if isinstance(error, str):
        return error.strip().lower() not in _NO_ERRORS
    if isinstance(error, list):
        return any(map(says_error, error))
    if not isinstance(error, dict):
        return False
    code = error.get("code")
    is_success = code is not None and str(code).lower() in _SUCCESSES and not error.get("type")
    return any(error.values()) and not is_success


def _has_error_code(fields: JsonObject) -> bool:
    if any("error" in str(fields.get(name)).lower() for name in ("type", "object", "code")) or fields.get("detail"):
        return True
    codes = (fields.get(name) for name in ("code", "status_code"))
    return any(code is not None and str(code).lower() not in _SUCCESSES for code in codes)


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value.strip()
    return encode(value).decode() if value and isinstance(value, dict | list) else ""


def error_status(error: JsonValue, default: int = 500) -> int:
    """Return the HTTP status that an error would have had at the start."""
    codes = [error.get(name) for name in _CODE_FIELDS] if isinstance(error, dict) else []
    for code in codes:
        if isinstance(code, int | str) and str(code).isdecimal() and 400 <= int(str(code)[:9]) < 600:
            return int(code)
    return next((_STATUS[code] for code in codes if isinstance(code, str) and code in _STATUS), default)


def error_in_stream(error: JsonValue, title: str, redactor: Redactor, status: int | None = None) -> ProviderError:
    """Return the failure of a stream that has an error in it; `status` as above, if it is known otherwise."""
    body = redactor.hide_bytes(encode({"error": error})[:_MAX_ERROR_BYTES])
    if status is None:
        # Without a code of its own an error counts as one of the server, if its words do not say otherwise.
        unknown = 400 if is_too_long(400, refusal_text(body)) else 500
        status = error_status(error, unknown)
    return ProviderError(failure_from_response(title, status, {}, body))


def withheld(title: str, reason: str) -> ProviderError:
    text = f"{title} held back the reply ({reason}). Word the request differently."
    return ProviderError(AttemptFailure(text, "content filter", FailureKind.CONTENT_FILTER))


def empty_reply(title: str) -> ProviderError:
    text = f"{title} sent an empty reply: no text and no tool call. Try again, or choose another model."
    return ProviderError(AttemptFailure(text, "empty reply", FailureKind.UNAVAILABLE))

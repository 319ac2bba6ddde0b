"""Why an attempt failed: `FailureKind`, `AttemptFailure`, and the classification of HTTP errors.

recovery/ decides what to do about a failure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum, auto

import msgspec

from errand.engine.core.messages import AssistantMessage
from errand.engine.models.rate_limit_reset import asked_wait, seconds_to_reset
from errand.engine.models.refusal_text import has_no_quota, is_too_long, refusal_text, refused_fields, required_fields
from errand.protocol.base import JsonValue
from errand.text.redaction import redact, short_line

ABORTED = "Request was aborted"
_MAX_ERROR_LENGTH = 300

_OF_FIELDS = frozenset({400, 404, 415, 422, 500, 501})
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_NO_PICTURES = re.compile(
    r"(does(n.t| not)|cannot|can.t|not) (support|accept|read|process|handle)s?.{0,40}(image|vision|multimodal)"
    r"|(image|vision|multimodal).{0,60}(not (currently )?(supported|available|allowed|enabled)|only supported)"
    r"|no endpoints found that support image|image input is not|unknown variant .?image_url"
    r"|required for image input|provide the mmproj",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"(does(n.t| not)|not) support.{0,20}\b(tool|function)s?\b"
    r"|\b(tools?|(tool|function)[ _-](use|call(s|ing)?))\b\W{0,3} (is|are) not (supported|enabled|available|allowed)"
    r"|no endpoints found that support tool|enable-auto-tool-choice|tools param requires",
    re.IGNORECASE,
)
_NO_TEMPERATURE = re.compile(
    r"temperature\b.{0,80}(not support|unsupported|only|deprecated|not allowed|not permitted|range|between|less than)"
    r"|(unsupported|invalid|unknown|unrecognized|not support|not permit).{0,60}\btemperature\b",
    re.IGNORECASE,
)
_NO_SUMMARY = re.compile(
    r"verified to generate reasoning summar|reasoning[._ ]summar(y|ies)\b.{0,60}(not|unsupported|unknown|invalid)"
    r"|(unsupported|unknown|invalid|not support).{0,60}\breasoning[._ ]summar",
    re.IGNORECASE,
)
_NO_THOUGHTS = re.compile(
    r"invalid_encrypted_content|encrypted[_ ]content.{0,80}(verif|decrypt|invalid|not be)|item with id .?rs_"
    r"|invalid .?signature.{0,20}thinking|(corrupt|invalid|not valid).{0,30}thought.?signature"
    r"|thought.?signature.{0,30}(corrupt|invalid|not valid)|item .{0,80}of type .?reasoning.{0,40}without its required",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(r"api key not valid|api_key_invalid|(incorrect|invalid) api key", re.IGNORECASE)
_NO_MONEY = re.compile(r"insufficient_quota|insufficient.{0,10}(balance|credit|funds)", re.IGNORECASE)
_ABOUT_MONEY = re.compile(r"billing", re.IGNORECASE)
_USAGE_LIMIT = re.compile(r"usage.{0,5}limit|quota|(per|a) (day|week|month)|daily|weekly|monthly|plan", re.IGNORECASE)
# A longer wait is a usage limit, not a burst of too many requests.
_LONG_S = 900.0


class FailureKind(StrEnum):
    """The cause of a failure, as far as it determines the next step.

    `recovery/table.py` has the steps for each kind.
    """

    RATE_LIMITED = auto()
    """Too many requests or tokens: passes with time alone."""
    UNAVAILABLE = auto()
    """The server is down, overloaded, silent or broke off: the same request may succeed."""
    TOO_LONG = auto()
    """The request exceeds the context window: a shorter one may succeed."""
    NO_TOOLS = auto()
    """The model does not support tool calls."""
    NO_PICTURES = auto()
    """The model does not accept images."""
    NO_TEMPERATURE = auto()
    """The model does not accept a temperature, or not this one."""
    NOT_AUTHORISED = auto()
    """The API key is missing, malformed, refused, or not allowed to do this."""
    NO_CREDIT = auto()
    """The account has no credit left."""
    NOT_USABLE = auto()
    """This address or model cannot serve the request; another provider may."""
    NOT_FOUND = auto()
    """The server does not know this address or model; another provider may."""
    NO_SUMMARY = auto()
    """The model, or this account, gets no summary of encrypted thoughts."""
    NO_THOUGHTS = auto()
    """The provider does not accept its own thoughts back: they came from another account, or were changed."""
    NO_FIELD = auto()
    """The server does not know a field of the request, or does not accept it."""
    NEEDS_FIELD = auto()
    """The server requires thoughts back that the request is without."""
    CONTENT_FILTER = auto()
    """The provider withheld the reply."""
    REJECTED = auto()
    """The request itself is at fault: every provider would refuse it."""


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """`text` describes the failure and the remedy; `short` is a short form, for "retrying in 3 s: …".

    `retry_after_s` is the wait that the provider asked for; `status` the HTTP status of a refusal, 0 for none, and
    `refusal` its text. `fields` are those of the request that it refused or missed.
    """

    text: str
    short: str
    kind: FailureKind
    retry_after_s: float | None = None
    status: int = 0
    refusal: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The last event of an attempt without a complete reply. `partial` is the content so far."""

    failure: AttemptFailure
    partial: AssistantMessage


class ProviderError(Exception):
    """Ends an attempt; providers turn it into a `FailedAttempt`."""

    def __init__(self, failure: AttemptFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def connection_lost(title: str) -> AttemptFailure:
    text = f"The connection to {title} broke off in the middle of the reply. What came is kept; try again."
    return AttemptFailure(text, "connection broke off", FailureKind.UNAVAILABLE)


def no_response(title: str, limit_s: float) -> AttemptFailure:
    text = f"{title} sent nothing for {limit_s:g} s. It may be overloaded; try again."
    return AttemptFailure(text, "no answer", FailureKind.UNAVAILABLE)


def failure_from_response(
    title: str, status: int, headers: Mapping[str, str], body: bytes, key_help: str = ""
) -> AttemptFailure:
    """Classify an HTTP status other than 200. `key_help` says where to set the key."""
    refusal = redact(refusal_text(body))
    return replace(_failure(title, status, headers, body, refusal, key_help), status=status, refusal=refusal)


def _failure(
    title: str, status: int, headers: Mapping[str, str], body: bytes, refusal: str, key_help: str
) -> AttemptFailure:
    message = error_text(body)
    quoted = f": {message}{_full_stop(message)}" if message else "."
    if is_too_long(status, refusal):
        return too_long(message)
    failure = _request_failure(title, status, message, quoted) or _field_failure(title, status, refusal, quoted)
    if failure is not None:
        return failure
    if status == 401 or (
        status == 400 and _BAD_KEY.search(message)
    ):  # without the body: providers quote a part of the key in it
        text = f"{title} refused the key ({status}). {key_help}".strip()
        return AttemptFailure(text, "key refused", FailureKind.NOT_AUTHORISED)
    wait = seconds_to_reset(headers, body) if status == 429 else asked_wait(headers, body)
    # A quota per minute mentions billing too, but names its end.
    is_unpaid = _NO_MONEY.search(message) or (wait is None and _ABOUT_MONEY.search(message))
    if status == 402 or (status == 429 and is_unpaid):
        text = f"{title} says that the account has no credit left ({status}){quoted} Check its billing page."
        return AttemptFailure(text, "no credit left", FailureKind.NO_CREDIT)
    if status == 403:
        text = f"{title} does not allow this (403){quoted} {key_help}".strip()
        return AttemptFailure(text, "not allowed", FailureKind.NOT_AUTHORISED)
    if status in (404, 405):
        advice = "Check the model's name and the base URL."
        text = f"{title} does not know this model or address ({status}){quoted} {advice}"
        return AttemptFailure(text, "not found", FailureKind.NOT_FOUND)
    if status == 429 and has_no_quota(refusal):
        text = f"{title} allows this account nothing of this model (429){quoted} Choose another model."
        return AttemptFailure(text, "no quota", FailureKind.NOT_USABLE)
    if status == 429:
        return _rate_limited(title, wait, quoted, message)
    if 300 <= status < 400:
        where = headers.get("Location", "another address")
        text = f"{title} answered with a redirect to {where} ({status}). Use that as the base URL if you trust it."
        return AttemptFailure(text, "redirect", FailureKind.NOT_USABLE)
    if status >= 500:
        server = title if title.endswith("server") else f"{title}'s server"
        text = f"{server} failed ({status}){quoted} Try again later."
        kind = FailureKind.UNAVAILABLE if status in _RETRIED else FailureKind.NOT_USABLE
        return AttemptFailure(text, f"server error {status}", kind, wait)
    text = f"{title} refused the request ({status}){quoted}"
    kind = FailureKind.UNAVAILABLE if status in _RETRIED else FailureKind.REJECTED
    return AttemptFailure(text, f"refused ({status})", kind, wait)


def _full_stop(message: str) -> str:
    return "" if message.endswith((".", "!", "?", "…")) else "."


def too_long(message: str) -> AttemptFailure:
    """Return the failure of a request beyond the context window; `message` is what the server said of it."""
    quoted = f": {message}{_full_stop(message)}" if message else "."
    text = (
        f"The conversation is longer than this model can read{quoted} "
        "Start a new conversation, or choose a model with a larger context window."
    )
    return AttemptFailure(text, "conversation too long", FailureKind.TOO_LONG)


def _request_failure(title: str, status: int, message: str, quoted: str) -> AttemptFailure | None:
    """Return the failure that a part of the request caused: its tools, images or temperature."""
    if status < 600 and _NO_TOOLS.search(message):
        text = f"This model of {title} does not call tools{quoted} Choose a model that does."
        return AttemptFailure(text, "no tool calls", FailureKind.NO_TOOLS)
    if status < 600 and _NO_PICTURES.search(message):
        text = (
            f"This model of {title} does not take pictures{quoted} "
            "Choose a model that sees, or edit the message and send it again without the picture."
        )
        return AttemptFailure(text, "no pictures", FailureKind.NO_PICTURES)
    if status in (400, 422) and _NO_TEMPERATURE.search(message):
        text = f"This model of {title} does not take the temperature{quoted} Change it in the personality."
        return AttemptFailure(text, "no temperature", FailureKind.NO_TEMPERATURE)
    if status in (400, 403, 404) and _NO_SUMMARY.search(message):
        text = f"{title} gives no summaries of thoughts here{quoted}"
        return AttemptFailure(text, "no summary of thoughts", FailureKind.NO_SUMMARY)
    if status in (400, 404) and _NO_THOUGHTS.search(message):
        text = f"{title} does not take the earlier thoughts of this conversation back{quoted}"
        return AttemptFailure(text, "thoughts refused", FailureKind.NO_THOUGHTS)
    return None


def _field_failure(title: str, status: int, refusal: str, quoted: str) -> AttemptFailure | None:
    """Return the failure that a field caused: a superfluous one, or a missing one of earlier thoughts."""
    if status not in _OF_FIELDS:
        return None
    text = f"{title} refused the request ({status}){quoted}"
    if fields := refused_fields(refusal):
        return AttemptFailure(text, f"{fields[0]} refused", FailureKind.NO_FIELD, fields=fields)
    if fields := required_fields(refusal):
        return AttemptFailure(text, f"{fields[0]} missing", FailureKind.NEEDS_FIELD, fields=fields)
    return None


def error_text(body: bytes) -> str:
    """Return the error message of a body, in one line of at most 300 characters, with keys redacted."""
    text = _message(body) or body[:4000].decode("utf-8", "replace")
    return short_line(text, _MAX_ERROR_LENGTH, redact, max_read=4_000)


def _rate_limited(title: str, wait: float | None, quoted: str, message: str) -> AttemptFailure:
    of_use = (wait or 0.0) > _LONG_S or _USAGE_LIMIT.search(message) is not None
    when = f"in {_wait_text(wait)}" if wait is not None else "in a minute"
    text = f"{title} limits how much can be asked (429){quoted} Try again {when}, or run fewer tasks at once."
    return AttemptFailure(text, "usage limit" if of_use else "rate limit", FailureKind.RATE_LIMITED, wait)


def _wait_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _message(body: bytes) -> str:
    """Return the message in a usual shape: {"error": {"message", "code"}}, {"error": text}, {"message"}, {"detail"}."""
    try:
        value: JsonValue = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return ""
    error = value.get("error") or value.get("message") or value.get("detail")
    if isinstance(error, dict):
        code = error.get("code") or error.get("type")
        message = error.get("message")
        text = message if isinstance(message, str) else ""
        return f"{text} ({code})" if isinstance(code, str) and code not in text else text
    return error if isinstance(error, str) else ""

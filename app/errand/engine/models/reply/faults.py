"""What readers of all formats do with data that is no reply: decode it leniently, and say what is wrong."""

from typing import TypeVar

import msgspec

from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError, error_text, failure_from_response
from errand.protocol.base import JsonValue
from errand.redaction import Redactor

T = TypeVar("T")

# Maximum length of an invalid body that is read, to quote it.
_MOST_ERROR_BYTES = 65_536


def decode_event(data: bytes, decoder: msgspec.json.Decoder[T], title: str, redactor: Redactor) -> T:
    """Raises `ProviderError` for what cannot be read. `title` names the provider."""
    try:
        return decoder.decode(data)
    except (ValueError, RecursionError):
        pass
    try:  # one broken character must not cost the reply
        return decoder.decode(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        excerpt = error_text(redactor.hide_bytes(data[:_MOST_ERROR_BYTES]))
        text = f"{title} sent something that is not a model reply: {excerpt}"
        raise ProviderError(AttemptFailure(text, "unreadable reply", FailureKind.UNAVAILABLE)) from error


def error_in_stream(error: JsonValue, status: int, title: str, redactor: Redactor) -> ProviderError:
    """`status` is the HTTP status that the error would have had at the start."""
    body = redactor.hide_bytes(msgspec.json.encode({"error": error})[:_MOST_ERROR_BYTES])
    return ProviderError(failure_from_response(title, status, {}, body))


def withheld(title: str, reason: str) -> ProviderError:
    text = f"{title} held back the reply ({reason}). Word the request differently."
    return ProviderError(AttemptFailure(text, "content filter", FailureKind.CONTENT_FILTER))


def empty_reply(title: str) -> ProviderError:
    text = f"{title} sent an empty reply: no text and no tool call. Try again, or choose another model."
    return ProviderError(AttemptFailure(text, "empty reply", FailureKind.UNAVAILABLE))

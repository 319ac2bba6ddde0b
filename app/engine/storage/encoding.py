"""How values stand in the database: structs as JSON text, times as text that sorts."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from app.engine.errors import StorageError

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def to_json(value: object) -> str:
    """JSON text of a struct or a JSON value."""
    return _encoder.encode(value).decode()


def from_json(text: str, shape: type[T]) -> T:
    """A stored struct; StorageError if the row is not what this version wrote."""
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.DecodeError as error:
        raise StorageError(
            f"A stored {shape.__name__} cannot be read ({error}). The row was left as it is; "
            "a copy from the copies folder may hold it whole."
        ) from error


def to_text(moment: datetime) -> str:
    """UTC in a fixed width, so that the text sorts as the time does."""
    assert moment.tzinfo is not None, "times are aware"
    return moment.astimezone(UTC).isoformat(timespec="microseconds")

"""How much JSON one record of an import may hold: a few megabytes can be decoded to gigabytes of empty lists."""

from app.engine.errors import InvalidParams

LARGEST_RECORD = 32 * 1024 * 1024
MOST_VALUES = 1_000_000


def check_record(data: bytes, what: str) -> None:
    """`InvalidParams` for a record beyond the limits; `what` is how it is called: "one of its lines"."""
    if len(data) > LARGEST_RECORD:
        raise too_large(what)
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        raise too_many(what)


def too_large(what: str) -> InvalidParams:
    return InvalidParams(f"{what} is larger than {LARGEST_RECORD // (1024 * 1024)} MB")


def too_many(what: str) -> InvalidParams:
    return InvalidParams(f"{what} has more than {MOST_VALUES:,} values")

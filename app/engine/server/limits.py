"""How much one page may hold."""

from app.engine.errors import InvalidParams

_MOST = 500


def page_size(limit: int) -> int:
    """The limit itself; `InvalidParams` when it is not from 1 to 500."""
    if not 1 <= limit <= _MOST:
        raise InvalidParams(f"limit: {limit}; a page holds from 1 to {_MOST}.")
    return limit


def limit_count(name: str, count: int) -> None:
    """`InvalidParams` when more than 500 are named at once."""
    if count > _MOST:
        raise InvalidParams(f"{name}: {count}; at most {_MOST} at once.")

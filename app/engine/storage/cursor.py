"""Where a page of a list ends and the next one begins: the moment and the id of its last row, as text for clients."""

from app.engine.errors import InvalidParams


def cursor_at(moment: str, row_id: str) -> str:
    """`moment` as it stands in the database."""
    return f"{moment} {row_id}"


def place_of(cursor: str) -> tuple[str, str]:
    """The moment and the id; InvalidParams for a cursor that no page gave."""
    moment, space, row_id = cursor.partition(" ")
    if not space or not row_id:
        raise InvalidParams("cursor: not one that a page of this list gave")
    return moment, row_id

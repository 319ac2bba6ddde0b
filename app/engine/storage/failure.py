"""What a database error says to people: the database's own words, without the SQL and the values in it."""

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.engine.errors import CannotSave, StorageError
from app.engine.storage.trouble import kind_of


def reason(error: SQLAlchemyError) -> str:
    return str(error.orig if isinstance(error, DBAPIError) else error)


def not_saved(why: object) -> StorageError:
    """`CannotSave` where it is the ground that fails: the disk, the file, a lock."""
    text = f"Not saved: {why}. Everything saved before is kept."
    return StorageError(text) if kind_of(why) is None else CannotSave(text)

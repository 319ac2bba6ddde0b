"""What a database error says to people: the database's own words, without the SQL and the values in it."""

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.engine.errors import StorageError


def reason(error: SQLAlchemyError) -> str:
    return str(error.orig if isinstance(error, DBAPIError) else error)


def not_saved(why: object) -> StorageError:
    return StorageError(f"Not saved: {why}. Everything saved before is kept.")

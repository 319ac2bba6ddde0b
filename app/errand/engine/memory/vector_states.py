"""Stores which entries have a vector, wait for one, or had it pruned."""

from collections.abc import Sequence

from errand.engine.memory.index import REMOVED_NOTE, IndexedEntry, Transaction, VectorState, WordIndex
from errand.protocol.memory import MemoryPruneParams


def counts(index: WordIndex) -> dict[str, int]:
    """Return the number of entries for each state of their vectors."""
    rows = index.connection.execute("SELECT vector, count(*) FROM entries GROUP BY vector")
    return {state: int(count) for state, count in rows}


def waiting_entries(limit: int, index: WordIndex) -> tuple[str, list[IndexedEntry]]:
    """Return the identity of the index, and the newest of its entries that are to get a vector."""
    return index.identity(), index.select("vector = 'wanted' ORDER BY number DESC LIMIT ?", (limit,))


def states(index: WordIndex) -> dict[int, VectorState]:
    """Return the state of each entry's vector, by its number."""
    return dict(index.connection.execute("SELECT number, vector FROM entries"))


def want_all(index: WordIndex) -> None:
    """All but those that were pruned."""
    index.connection.execute("UPDATE entries SET vector = 'wanted' WHERE vector IN ('made', 'failed')")


def set_states(identity: str, numbers: Sequence[int], state: VectorState, index: WordIndex) -> frozenset[int]:
    """Note the state of these entries' vectors, except of pruned ones; returns the numbers of those that were noted.

    All are returned, and nothing is noted, if the index has another identity: these are numbers of others then.
    """
    if index.identity() != identity:
        return frozenset(numbers)
    noted: set[int] = set()
    with Transaction(index.connection):
        for number in numbers:
            changed = index.connection.execute(
                "UPDATE entries SET vector = ? WHERE number = ? AND vector <> 'pruned'", (state, number)
            )
            if changed.rowcount:
                noted.add(number)
    return frozenset(noted)


def removed_note(index: WordIndex) -> str:
    """Return the note of entries whose vectors are to be removed; empty if there are none."""
    return index.state(REMOVED_NOTE)


def withdraw_removed(note: str, index: WordIndex) -> None:
    """Withdraw this note, unless there is a newer one."""
    index.connection.execute("DELETE FROM state WHERE name = ? AND value = ?", (REMOVED_NOTE, note))


def prune(params: MemoryPruneParams, index: WordIndex) -> tuple[int, ...]:
    """Note that these entries are to have no vector; returns the numbers of those that had one, or were to get one."""
    conditions: list[str] = []
    values: list[str | int | float] = []
    if params.before is not None:
        conditions.append("at < ?")
        values.append(params.before.timestamp())
    if params.keep is not None:
        conditions.append("number NOT IN (SELECT number FROM entries ORDER BY at DESC, number DESC LIMIT ?)")
        values.append(params.keep)
    if params.conversation_id is not None:
        conditions.append("conversation_id = ?")
        values.append(params.conversation_id)
    chosen = f"vector <> 'pruned' AND ({' OR '.join(conditions)})"
    with Transaction(index.connection):
        rows = index.connection.execute(f"SELECT number FROM entries WHERE {chosen}", values).fetchall()
        index.connection.execute(f"UPDATE entries SET vector = 'pruned' WHERE {chosen}", values)
        if rows:
            index.note_removed()
    return tuple(int(row[0]) for row in rows)

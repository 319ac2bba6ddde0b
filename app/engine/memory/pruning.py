"""Which entries lose their vectors: by age, by number, or by conversation."""

from app.engine.memory.index import Transaction, WordIndex
from app.protocol.memory import MemoryPruneParams


def counts(index: WordIndex) -> dict[str, int]:
    """The number of entries for each state of their vectors."""
    rows = index.connection.execute("SELECT vector, count(*) FROM entries GROUP BY vector")
    return {state: int(count) for state, count in rows}


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
    wanted = f"vector <> 'pruned' AND ({' OR '.join(conditions)})"
    with Transaction(index.connection):
        rows = index.connection.execute(f"SELECT number FROM entries WHERE {wanted}", values).fetchall()
        index.connection.execute(f"UPDATE entries SET vector = 'pruned' WHERE {wanted}", values)
    return tuple(int(row[0]) for row in rows)

"""What messages are given from memory, of what they need and of what has nothing to do with them."""

from errand.engine.memory.embedding import Embedder
from tests.benchmarks.memory.given import Stores, rates
from tests.benchmarks.memory.histories import SPLITS, all_histories
from tests.benchmarks.row import Row
from tests.support.minilm import minilm


async def memory_given() -> list[Row]:
    """Nothing without the model of `make model`."""
    model = minilm()
    if model is None:
        return []
    embedder = Embedder(lambda: model)
    stores = Stores({history.name: history for history in all_histories()}, embedder)
    rows: list[Row] = []
    try:
        for split in SPLITS:
            measured = await rates(split, stores)
            rows.append(
                Row(f"planted facts given with a message, {split}", measured.planted, "%", 85, more_is_better=True)
            )
            rows.append(Row(f"messages given something by an unrelated store, {split}", measured.strangers, "%", 5))
    finally:
        await embedder.close()
    return rows

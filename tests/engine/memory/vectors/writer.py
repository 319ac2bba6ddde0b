"""Writes points into the folder given until it is killed, and says the count of those that were acknowledged."""

import asyncio
import sys
from pathlib import Path

from errand.engine.memory.vectors.embedded import EmbeddedVectors
from tests.support.vectors import DIMENSIONS, Clusters


async def _write(folder: Path) -> None:
    store, clusters = EmbeddedVectors(folder, DIMENSIONS, "minilm"), Clusters(4)
    for first in range(0, 1_000_000, 64):
        await store.upsert(list(clusters.points(64, first)))
        sys.stdout.write(f"{first + 64} {store.pid}\n")
        sys.stdout.flush()


asyncio.run(_write(Path(sys.argv[1])))

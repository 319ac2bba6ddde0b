"""A crash of the process: everything that a flush acknowledged is still there."""

import asyncio
import sys
from pathlib import Path

from errand.engine.storage.database import Database
from errand.engine.storage.sqlite.engines import sqlite_url

WRITER = """
import asyncio, sys
from pathlib import Path
from errand.engine.storage.records import conversations, nodes
from errand.engine.storage.database import Database
from errand.engine.storage.sqlite.engines import sqlite_url
from tests.support.records import conversation, node

async def main(path):
    database = await Database.open(sqlite_url(path), path.parent)
    database.journal.put(conversations.save(conversation("c1")))
    number = 0
    while True:
        parent = f"n{number - 1}" if number else None
        database.journal.put(nodes.save(node(f"n{number}", parent, text=f"word{number}")))
        await database.journal.flush()
        print(number, flush=True)
        number += 1

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_sigkill_loses_nothing_that_a_flush_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    acknowledged = -1
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert writer.stdout is not None
    async for line in writer.stdout:
        acknowledged = int(line)
        if acknowledged == 200:
            writer.kill()
    await writer.wait()
    assert acknowledged >= 200
    database = await Database.open(sqlite_url(path), tmp_path)
    try:
        branch = await database.nodes.path(f"n{acknowledged}")
        assert [node.id for node in branch] == [f"n{number}" for number in range(acknowledged + 1)]
        assert [hit.node_id for hit in await database.search.find(f'"word{acknowledged}"')] == [f"n{acknowledged}"]
    finally:
        await database.close()

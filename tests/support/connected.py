"""A client of the engine that the command line has started."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.client.connection import Connection
from app.client.launch import read_endpoint
from app.paths import Paths
from app.protocol.tasks import Task, TaskIdParams
from app.protocol.wire import TASK_GET
from tests.support.errand import LONGEST_S, Errand


@asynccontextmanager
async def connected(errand: Errand) -> AsyncGenerator[Connection]:
    connection = Connection(lambda: read_endpoint(Paths(errand.home)), "test")
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


async def ended(client: Connection, task: Task) -> Task:
    async with asyncio.timeout(LONGEST_S):
        while task.ended_at is None:
            task = (await client.call(TASK_GET, TaskIdParams(task_id=task.id))).task
    return task

"""An engine that is killed while a call is judged, or waits for an answer: the call has not run, and is asked about."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.asks import ASK_ANSWER, ASK_LIST, Ask, AskAnswerParams, AskListParams
from errand.protocol.tasks.methods import TASK_GET, TASK_RESUME, TASK_START, TaskIdParams, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.support.command_line import Errand, ended
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer

_EFFECT = "made"


@asynccontextmanager
async def connected(errand: Errand) -> AsyncGenerator[Connection]:
    connection = await connect(Paths(errand.home), "test")
    try:
        yield connection
    finally:
        await connection.close()


async def started(connection: Connection, server: ModelServer, workspace: Path) -> Task:
    params = TaskStartParams(
        prompt="go", model="openai_compatible/test-model", api_base=server.url, api_key="none",
        workspace=str(workspace), approve="ask", attended=True,
    )  # fmt: skip
    return (await connection.call(TASK_START, params)).task


async def ask_of(connection: Connection, task: Task) -> Ask:
    """The open ask of the task, once there is one; there must not be two."""
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            asks = (await connection.call(ASK_LIST, AskListParams(task_id=task.id))).asks
            if asks:
                (ask,) = asks
                return ask
            await asyncio.sleep(0.02)  # a client that asks without a pause is refused


async def allow_and_finish(connection: Connection, ask: Ask) -> Task:
    await connection.call(ASK_ANSWER, AskAnswerParams(ask_id=ask.id, allow=True))
    return await ended(connection, (await connection.call(TASK_GET, TaskIdParams(task_id=ask.task_id))).task)


async def test_a_call_whose_ask_waited_at_the_kill_runs_once_and_only_after_its_answer(
    own_errand: Errand, workspace: Path
) -> None:
    async with ModelServer(turns=[shell(f"echo once >> {_EFFECT}"), DONE]) as server:
        async with connected(own_errand) as connection:
            task = await started(connection, server, workspace)
            before = await ask_of(connection, task)
            own_errand.kill_engine()
        async with connected(own_errand) as connection:
            after = await ask_of(connection, task)
            assert (after.id, after.approval) == (before.id, before.approval)
            assert not (workspace / _EFFECT).exists()
            await connection.call(TASK_RESUME, TaskIdParams(task_id=task.id))
            assert (await allow_and_finish(connection, after)).activity.status == "completed"
    assert (workspace / _EFFECT).read_text() == "once\n"


# From the arrival of the request for the call, past its decision: 50 ms at most, mostly 1.
@pytest.mark.parametrize("delay_ms", [0, 2, 4, 8, 16, 40])
async def test_an_engine_killed_in_the_midst_of_a_decision_decides_again(
    own_errand: Errand, workspace: Path, delay_ms: int
) -> None:
    command = f"{' ; '.join(['echo word'] * 300)} ; echo once >> {_EFFECT}"  # long to judge
    # In one piece: a reply that streams at the kill is cut, and its call is never judged.
    reply = msgspec.structs.replace(shell(command), piece_length=len(command) + 100)
    async with ModelServer(turns=[reply, DONE]) as server:
        async with connected(own_errand) as connection:
            task = await started(connection, server, workspace)
            await server.request(0)
            await asyncio.sleep(delay_ms / 1_000)
            own_errand.kill_engine()
        async with connected(own_errand) as connection:
            assert not (workspace / _EFFECT).exists()
            await connection.call(TASK_RESUME, TaskIdParams(task_id=task.id))
            ask = await ask_of(connection, task)
            assert not (workspace / _EFFECT).exists()
            assert (await allow_and_finish(connection, ask)).activity.status == "completed"
    assert (workspace / _EFFECT).read_text() == "once\n"

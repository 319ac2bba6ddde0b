"""Behaviours 181 to 183: a shutdown does not wait for what a task waits for."""

import asyncio
import os
import signal
from pathlib import Path

from errand.engine.core.settings import Settings
from errand.system.paths import Paths
from tests.end_to_end.models.test_sharing import shared
from tests.end_to_end.stopping.test_engine_shutdown import MODEL, restarted
from tests.engine.agent.compaction.test_context_window import SUMMARY, WINDOW, is_summary, reader, until_done
from tests.support.command_line import Errand, rest
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import is_alive, until


async def test_a_task_that_waits_for_a_limit_waits_on_in_the_next_engine(own_errand: Errand) -> None:
    hour = Reply(status=429, error="slow down", headers={"Retry-After": "3600"})
    async with ModelServer(replies=[hour, Reply(text="Done.")]) as server:
        process = await own_errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        held = await own_errand.task("paused")
        await leaves(own_errand)
        await rest(process)
        await restarted(own_errand)
        again = await own_errand.task("paused")
        assert again.activity.retry_at == held.activity.retry_at
        assert len(server.requests) == 1


async def test_a_summary_under_way_is_given_up_and_made_by_the_next_engine(own_errand: Errand) -> None:
    paths = Paths(own_errand.home)
    paths.prepare()
    Settings(paths.settings).set("context_tokens", WINDOW)
    gate = asyncio.Event()
    async with reader(until_done(8), lambda _: Reply(text=SUMMARY, gate=gate)) as server:
        process = await own_errand.start("run", *MODEL, server.url, "work")
        await until(lambda: any(map(is_summary, server.requests)))
        await leaves(own_errand)
        await rest(process)
        gate.set()
        await restarted(own_errand)
        done = await own_errand.run("resume", (await own_errand.task("interrupted")).id)
    assert done.code == 0, done.err
    assert sum(map(is_summary, server.requests)) == 2


async def test_a_reply_that_streams_through_another_machine_is_cut_on_both(own_errand: Errand, tmp_path: Path) -> None:
    long_reply = Reply(text="word " * 2_000, piece_delay_s=0.01)
    model = ("--model", "proxy/ollama/test-model")
    server = ModelServer([long_reply, Reply(text="Done.")])
    async with server as upstream, shared(tmp_path / "there", upstream.url) as variables:
        process = await own_errand.start("run", *model, "talk", variables=variables)
        await upstream.request(0)
        await own_errand.task("thinking")
        await leaves(own_errand)
        async with asyncio.timeout(WAIT_LIMIT_S):
            await upstream.requests[0].gone.wait()
        await rest(process)
        done = await own_errand.run("tasks", variables=variables)
        assert done.code == 0
        done = await own_errand.run("resume", (await own_errand.task("interrupted")).id, variables=variables)
    assert done.code == 0, done.err
    assert "Done." in done.out


async def leaves(errand: Errand) -> None:
    """End the engine, which takes longer than the limit of all waits if it waits for what its task waits for."""
    engine = errand.engine_pid()
    os.kill(engine, signal.SIGTERM)
    await until(lambda: not is_alive(engine))

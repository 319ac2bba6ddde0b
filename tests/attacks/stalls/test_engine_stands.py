"""A stalled event loop: the watchdog ends the engine, the stall is reported, and its tasks can be resumed."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from errand.system.paths import Paths
from tests.support.command_line import Errand, rest
from tests.support.forked_process import start_program
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import is_alive, running, until
from tests.support.warm_errand import CHECKOUT, Command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watchdog needs /proc and shared memory")

Starter = Callable[..., Coroutine[None, None, asyncio.subprocess.Process]]


@pytest.fixture
async def stalling(own_errand: Errand) -> AsyncGenerator[Starter]:
    """Starts the engine of `own_errand` as one that can be stalled, and waits for its watchdog."""
    started: list[asyncio.subprocess.Process] = []

    async def start(how: str, limit_s: float) -> asyncio.subprocess.Process:
        arguments = (how, "--stall-limit", str(limit_s))
        command = Command(arguments, str(CHECKOUT), own_errand.environment, module="tests.support.stalling_engine")
        engine = await start_program(command, (DEVNULL, DEVNULL, 2))
        started.append(engine)
        await until((own_errand.home / "run" / "engine.json").exists)
        if limit_s:
            await until(lambda: bool(_watchdogs(engine.pid)))
        return engine

    yield start
    for engine in started:
        if engine.returncode is None:
            engine.kill()
        await engine.wait()


def _watchdogs(engine: int) -> list[psutil.Process]:
    return [child for child in psutil.Process(engine).children() if any("watchdog" in word for word in child.cmdline())]


@pytest.mark.parametrize("how", ["sleeps", "spins", "is held up"])
async def test_an_engine_that_stands_is_ended_and_says_where(own_errand: Errand, stalling: Starter, how: str) -> None:
    engine = await stalling(how, 0.5)
    engine.send_signal(signal.SIGUSR2)
    async with asyncio.timeout(WAIT_LIMIT_S):
        assert await engine.wait() == -signal.SIGKILL
    report = (own_errand.home / "run" / "stall.txt").read_text()
    assert "in stand" in report
    assert "ended by the watchdog" in report


async def test_the_task_of_an_engine_that_stood_can_be_stopped_and_its_processes_are_gone(
    own_errand: Errand, stalling: Starter, workspace: Path
) -> None:
    marker = uuid4().hex
    engine = await stalling("sleeps", 0.5)
    call = Call("shell", {"command": f"touch ready; sleep 60 # {marker}"})
    async with ModelServer(replies=[Reply(calls=(call,))]) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        process = await own_errand.start("run", "--approve", "all", *model, "wait")
        await until((workspace / "ready").exists)
        task_id = (await own_errand.task("tool_executing")).id
        engine.send_signal(signal.SIGUSR2)
        await engine.wait()
        await until(lambda: not running(marker))
        await rest(process)
        stopped = await own_errand.run("stop", task_id)
        examined = await own_errand.run("doctor")
    assert (stopped.code, "task stopped" in stopped.out) == (0, True), stopped.err
    assert "The engine stood still and was ended" in examined.out
    assert "The engine stood still and was ended" in (own_errand.home / "logs" / "engine.log").read_text()


async def test_an_engine_that_a_signal_has_stopped_stands_only_once_it_goes_on(
    own_errand: Errand, stalling: Starter
) -> None:
    engine = await stalling("is stopped", 0.5)
    (watchdog,) = _watchdogs(engine.pid)
    engine.send_signal(signal.SIGUSR2)
    await until(lambda: psutil.Process(engine.pid).status() == psutil.STATUS_STOPPED)
    looks = watchdog.num_ctx_switches().voluntary
    await until(lambda: watchdog.num_ctx_switches().voluntary > looks + 12)  # as long as two stalls
    assert engine.returncode is None
    engine.send_signal(signal.SIGCONT)
    assert await engine.wait() == -signal.SIGKILL


async def test_an_engine_that_stands_is_ended_by_command(own_errand: Errand, stalling: Starter) -> None:
    engine = await stalling("spins", 0)
    engine.send_signal(signal.SIGUSR2)
    ended = await own_errand.run("engine", "--stop")
    assert (ended.code, "did not respond and was killed" in ended.out) == (0, True), ended.err
    assert not is_alive(engine.pid)
    assert "No engine is running." in (await own_errand.run("engine", "--stop")).out


async def test_an_engine_that_works_has_ended_when_the_command_says_so(own_errand: Errand) -> None:
    await own_errand.run("tasks")
    pid = own_errand.engine_pid()
    assert "The engine has ended." in (await own_errand.run("engine", "--stop")).out
    assert not is_alive(pid)


async def test_an_engine_that_was_only_asked_where_it_is_has_not_stood_still(own_errand: Errand) -> None:
    await own_errand.run("tasks")
    report = Paths(own_errand.home).stall
    os.kill(own_errand.engine_pid(), signal.SIGUSR1)
    await until(lambda: report.stat().st_size > 0)
    await own_errand.run("engine", "--stop")
    await own_errand.run("tasks")
    assert "stood still" not in (own_errand.home / "logs" / "engine.log").read_text()

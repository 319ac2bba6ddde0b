"""Behaviours 35 to 41: unusable folders, ports, bytes and streams, and an engine that was ended."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Errand, Finished, rest
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def in_bytes(errand: Errand, *arguments: str, typed: bytes) -> Finished:
    process = await errand.start(*arguments)
    async with asyncio.timeout(WAIT_LIMIT_S):
        out, err = await process.communicate(typed)
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())


async def test_a_data_directory_that_cannot_be_used_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    errand = Errand(tmp_path / "file", tmp_path)
    tasks, run, doctor = await asyncio.gather(
        errand.run("tasks"), errand.run("run", "--json", "--model", "scripted/note", "hello"), errand.run("doctor")
    )
    assert (tasks.code, run.code, doctor.code) == (1, 1, 1)
    assert "cannot be used" in tasks.err and "ERRAND_HOME" in tasks.err
    assert [line["type"] for line in run.lines] == ["result"]
    assert "Traceback" not in tasks.err + run.err + doctor.err


@pytest.mark.parametrize("port", ["99999", "abc", "-1"])
async def test_what_is_no_port_is_a_usage_error(own_errand: Errand, port: str) -> None:
    done = await own_errand.run("engine", f"--port={port}")
    assert done.code == 2
    assert f"'{port}' is not a port" in done.err


async def test_a_port_that_is_taken_is_said_in_a_line(own_errand: Errand) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = await own_errand.run("engine", "--port", str(port))
    assert (done.code, done.out) == (1, "")
    assert f"Port {port} cannot be used" in done.err
    assert "Traceback" not in done.err


async def test_a_port_is_free_again_for_the_next_engine(own_errand: Errand) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for _ in range(2):
        engine = await own_errand.start("engine", "--port", str(port))
        assert engine.stdout is not None
        ready = json.loads(await engine.stdout.readline())
        assert ready["port"] == port
        assert (await own_errand.run("tasks")).code == 0
        assert (await own_errand.run("engine", "--stop")).code == 0
        assert (await rest(engine)).code == 0


async def test_a_prompt_that_is_no_utf_8_is_taken_and_one_that_is_too_long_is_refused(errand: Errand) -> None:
    async with ModelServer(answer=lambda request: Reply(text="Read.")) as server:
        broken = await in_bytes(errand, "run", "--json", *MODEL, server.url, "-", typed=b"what is \xff\xfe?")
        named = await errand.run("run", "--json", *MODEL, server.url, "what is \udcff?")
    long = await in_bytes(errand, "run", "--json", *MODEL, server.url, "-", typed=b"x" * 1_200_000)
    assert (broken.code, named.code, long.code) == (0, 0, 2)
    assert [run.lines[-1]["prompt"] for run in (broken, named)] == ["what is \ufffd\ufffd?", "what is \ufffd?"]
    assert "longer than 1,000,000 bytes" in str(long.lines[-1]["error"])
    assert "file in the workspace" in long.err


async def test_closed_streams_and_a_folder_that_was_removed_are_no_crash(errand: Errand, tmp_path: Path) -> None:
    missing = tmp_path / "gone"
    missing.mkdir()
    command = f"{sys.executable} -m errand"
    closed, removed = [
        await asyncio.create_subprocess_shell(
            line, cwd=errand.folder, env=errand.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for line in (
            f"{command} tasks <&- && {command} tasks >&- 2>&- && {command} run - <&-",
            f"cd {missing} && rmdir {missing} && {command} run --model scripted/note hello",
        )
    ]
    for process, error in ((closed, "The prompt is empty"), (removed, "There is no folder '.'")):
        done = await rest(process)
        assert done.code == 2, done.err
        assert error in done.err
        assert "Traceback" not in done.err


async def test_who_follows_a_task_learns_at_once_that_its_engine_was_ended(own_errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="never sent", gate=asyncio.Event())]) as server:
        run = await own_errand.start("run", "--json", *MODEL, server.url, "wait for ever")
        await server.request(0)
        assert (await own_errand.run("engine", "--stop")).code == 0
        done = await rest(run)
    assert (done.code, done.lines[-1]["status"]) == (1, "interrupted")
    assert "does not answer" not in done.err

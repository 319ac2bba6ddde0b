"""A tool searches for the engine's keys: in its environment, its memory, and those of the watchdog."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest

from tests.support.command_line import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import folder_of_nobody, is_alive, nobody, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

_KEY = "my-secret-0123456789abcdef"  # no provider's format, so no search by format finds it
_TERMINAL = {
    "OPENAI_API_KEY": _KEY,
    "GITHUB_TOKEN": f"token-{_KEY}",
    "AWS_SECRET_ACCESS_KEY": f"aws-{_KEY}",
    "DATABASE_URL": f"postgres://me:{_KEY}@db/shop",
    "SPARE": f"sk-{_KEY}",
}
# The engine and its children: the watchdog and the tool itself. A thread may end meanwhile.
_CHILDREN = "$(cat /proc/$PPID/task/*/children 2> /dev/null)"
_LOOK = f"for p in $PPID {_CHILDREN}; do cat /proc/$p/environ; echo; done > seen 2> refused"


def _replies(command: str) -> list[Reply]:
    return [Reply(calls=(Call("shell", {"command": command}),)), Reply(text="Good day.")]


async def test_a_tool_finds_no_key_of_the_terminal_that_started_the_engine(own_errand: Errand, workspace: Path) -> None:
    async with ModelServer(replies=_replies(_LOOK)) as server:
        terminal = _TERMINAL | {"OPENAI_BASE_URL": server.url}
        done = await own_errand.run("run", "--json", "--approve", "all", "greet me", variables=terminal)
        sent = {request.headers["Authorization"] for request in server.requests}
    seen = (workspace / "seen").read_text()
    assert done.code == 0, done.err
    assert (sent, "ERRAND_HOME=" in seen, seen.count("ERRAND_TASK=") >= 1) == ({f"Bearer {_KEY}"}, True, True)
    assert _KEY not in seen


async def test_an_engine_in_the_foreground_uses_the_keys_it_was_started_with_and_shows_them_to_no_tool(
    own_errand: Errand, workspace: Path
) -> None:
    async with ModelServer(replies=_replies(_LOOK)) as server:
        engine = await own_errand.start("engine", variables=_TERMINAL | {"OPENAI_BASE_URL": server.url})
        assert engine.stdout is not None
        assert b'"pid":%d' % engine.pid in await engine.stdout.readline()
        done = await own_errand.run("run", "--json", "--approve", "all", "greet me")
        sent = {request.headers["Authorization"] for request in server.requests}
    environ = await asyncio.to_thread(Path(f"/proc/{engine.pid}/environ").read_text)
    await own_errand.close()
    ended = await rest(engine)
    assert (done.code, ended.code, ended.err) == (0, 0, ""), done.err
    assert sent == {f"Bearer {_KEY}"}
    assert _KEY not in environ + (workspace / "seen").read_text()
    assert "OPENAI_API_KEY" not in environ


async def test_models_are_shared_by_a_process_that_shows_its_keys_to_nobody(own_errand: Errand) -> None:
    sharing = await own_errand.start("share-models", "--port", "0", variables=_TERMINAL)
    assert sharing.stdout is not None
    first_line = (await sharing.stdout.readline()).decode()
    environ = await asyncio.to_thread(Path(f"/proc/{sharing.pid}/environ").read_text)
    url, file = first_line.split()[4], Path(first_line.split()[-1].rstrip("."))
    headers = {"Authorization": f"Bearer {(await asyncio.to_thread(file.read_text)).split()[1]}"}
    async with aiohttp.ClientSession() as session, session.get(f"{url}/api/models", headers=headers) as answer:
        models = await answer.text()
    sharing.terminate()
    await rest(sharing)
    assert ("openai/" in models, _KEY in environ, "ERRAND_HOME=" in environ) == (True, False, True)


async def test_more_keys_than_can_be_handed_on_are_said(own_errand: Errand) -> None:
    done = await own_errand.run("engine", variables={f"K{number}_API_KEY": "x" * 9_000 for number in range(9)})
    assert done.code == 1
    assert "larger than 64 KB" in done.err


@pytest.fixture
async def errand_of_nobody() -> AsyncGenerator[Errand]:
    prefix = nobody()
    with folder_of_nobody() as folder:
        work = folder / "work"
        await (await asyncio.create_subprocess_exec(*prefix, "mkdir", str(work))).wait()
        command = Errand(folder / "home", work, prefix)
        command.environment |= {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        yield command
        await command.close()


async def test_a_person_who_is_not_the_superuser_has_an_engine_that_no_tool_can_read_and_that_works(
    errand_of_nobody: Errand,
) -> None:
    command = f"{_LOOK}; head -c 1 /proc/$PPID/mem 2>> refused; cat /proc/$PPID/maps 2>> refused; id -u"
    async with ModelServer(replies=_replies(command)) as server:
        terminal = _TERMINAL | {"OPENAI_BASE_URL": server.url}
        done = await errand_of_nobody.run("run", "--json", "--approve", "all", "greet me", variables=terminal)
        doctor = await errand_of_nobody.run("doctor")
    assert (done.code, "65534" in done.out) == (0, True), done.out + done.err
    refused = (errand_of_nobody.folder / "refused").read_text().splitlines()
    of_engine = [line for line in refused if f"/proc/{errand_of_nobody.engine_pid()}/" in line]
    assert [line.rpartition(": ")[2] for line in of_engine] == ["Permission denied"] * 3
    assert _KEY not in (errand_of_nobody.folder / "seen").read_text()
    assert "MB" in doctor.out, doctor.out + doctor.err


async def test_what_is_left_of_a_killed_engine_of_such_a_person_is_ended_too(errand_of_nobody: Errand) -> None:
    file = errand_of_nobody.folder / "pid"
    command = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 60' & sleep 60"
    async with ModelServer(replies=_replies(command)) as server:
        terminal = {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": server.url}
        client = await errand_of_nobody.start("run", "--approve", "all", "wait", variables=terminal)
        await until(file.exists)
        pid = int(file.read_text())
        errand_of_nobody.kill_engine()
        await until(lambda: not is_alive(pid))
        client.kill()
        await client.wait()

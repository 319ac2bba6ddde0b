"""The localhost that the commands of a conversation share while something of them keeps running."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import errand
from errand.engine.sandbox.detection import find_sandbox
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.loopback import Loopback
from errand.engine.tools.context import ToolContext
from tests.engine.sandbox.conftest import profile_of, run_shell
from tests.engine.sandbox.test_network import anything
from tests.support.loop_parts import task_of
from tests.support.processes import file_appears, folder_of_nobody, nobody

pytestmark = pytest.mark.skipif(find_sandbox().form != "bubblewrap", reason="bubblewrap has a network of its own")
_SERVER = "python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 &"
_ASK = "for i in $(seq 100); do curl -s http://127.0.0.1:8123/ && break; sleep 0.05; done"


def sharing(context: ToolContext, loopback: Loopback, *, network: bool = False) -> ToolContext:
    profile = replace(profile_of(context), network=network)
    return replace(context, sandbox=CommandSandbox(profile, anything, loopback))


async def test_a_server_left_in_the_background_is_reached_by_the_next_command_and_by_the_engine(
    sandboxed: ToolContext,
) -> None:
    loopback = Loopback()
    context = sharing(sandboxed, loopback)
    assert context.sandbox is not None
    async with task_of(context):
        await run_shell(context, "echo mine > index.html")
        assert not loopback.is_open
        await run_shell(context, _SERVER)
        assert loopback.is_open
        assert await run_shell(context, _ASK) == "mine"
        reader, writer = await asyncio.open_connection(sock=await loopback.connect(8123))
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"mine\n")
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await loopback.connect(8124)
    await context.sandbox.after(has_background=False)
    assert not loopback.is_open
    with pytest.raises(ConnectionRefusedError):
        await loopback.connect(8123)


async def test_a_session_opens_it_before_anything_runs_and_it_ends_with_its_last_user(sandboxed: ToolContext) -> None:
    loopback, session = Loopback(), object()
    before = len(os.listdir("/proc/self/fd"))
    await loopback.use(session)
    own = replace(sandboxed, sandbox=CommandSandbox(profile_of(sandboxed)))
    network = await run_shell(sharing(sandboxed, loopback), "readlink /proc/self/ns/net")
    assert await run_shell(sharing(sandboxed, loopback), "readlink /proc/self/ns/net") == network
    assert await run_shell(own, "readlink /proc/self/ns/net") != network
    assert loopback.is_open, "commands without a background do not close it"
    loopback.leave(session)
    assert not loopback.is_open
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_command_gets_no_descriptor_of_it(sandboxed: ToolContext) -> None:
    loopback = Loopback()
    await loopback.use(loopback)
    output = await run_shell(sharing(sandboxed, loopback), "ls -l /proc/self/fd | grep -c 'net:\\|user:'")
    await loopback.close()
    assert output.startswith("0\n")


async def test_a_command_without_the_network_cannot_use_the_proxy_of_another(
    sandboxed: ToolContext, tmp_path: Path
) -> None:
    loopback = Loopback()
    await loopback.use(loopback)
    opened, closed = sharing(sandboxed, loopback, network=True), sharing(sandboxed, loopback)
    async with task_of(opened):
        keeps = run_shell(opened, "echo $HTTP_PROXY > new; mv new proxy; until [ -e done ]; do sleep 0.02; done")
        running = asyncio.create_task(keeps)
        await file_appears(sandboxed.workspace / "proxy")
        url = (sandboxed.workspace / "proxy").read_text().strip()
        assert url.startswith("http://errand:")
        curl = f"curl -sS -o /dev/null -w %{{http_code}} --max-time 5 -x {url.partition('@')[2]} http://x.invalid/"
        wrong = f"{curl} --proxy-user errand:guessed"
        codes = [await run_shell(closed, line) for line in (curl, wrong)]
        (sandboxed.workspace / "done").touch()
        await running
    await loopback.close()
    assert codes == ["407", "407"]


async def test_two_commands_with_the_network_run_at_once(sandboxed: ToolContext) -> None:
    loopback = Loopback()
    await loopback.use(loopback)
    context = sharing(sandboxed, loopback, network=True)
    async with task_of(context):
        line = "curl -sS -o /dev/null -w %{http_code} --max-time 5 http://x.invalid/"
        both = "until [ -e 0 ] && [ -e 1 ]; do sleep 0.01; done"  # neither ends before both are served
        codes = await asyncio.gather(*(run_shell(context, f"{line}; touch {n}; {both}") for n in range(2)))
    await loopback.close()
    assert codes == ["502", "502"]


_OF_NOBODY = """
import asyncio, ctypes, os, subprocess, sys
from errand.engine.sandbox.detection import find_sandbox
from errand.engine.sandbox.launch import CommandSandbox, prepare_launch
from errand.engine.sandbox.loopback import Loopback
from errand.engine.sandbox.profile import SandboxProfile
from pathlib import Path

libc = ctypes.CDLL(None)
libc.prctl(47, 4, 0, 0, 0)  # no capabilities for what it starts
libc.prctl(4, 0, 0, 0, 0)  # as the engine
sys.executable = "/usr/bin/python3"


async def started(sandbox, line):
    launch = await prepare_launch(["bash", "-c", line], folder, dict(os.environ), sandbox)
    try:
        return subprocess.Popen(
            launch.arguments,
            stdout=subprocess.PIPE,
            pass_fds=launch.descriptors,
            cwd=folder,
            start_new_session=True,
        )
    finally:
        launch.close()


async def main():
    loopback = Loopback()
    await loopback.use(loopback)
    assert loopback.joining().prefix, "a program enters"
    profile = SandboxProfile(folder, (), folder / "data", folder / "out", folder / "cache")
    sandbox = CommandSandbox(profile, loopback=loopback)
    serve = "exec timeout 20 python3 -m http.server -b 127.0.0.1 8123 2>/dev/null"
    server = await started(sandbox, f"echo mine > index.html; {serve}")
    try:
        ask = "for i in $(seq 100); do curl -s localhost:8123 && break; sleep 0.1; done; ls -l /proc/$$/fd"
        asked = await started(sandbox, ask)
        page, *descriptors = asked.communicate()[0].decode().splitlines()
        print(page, *(line for line in descriptors if "net:" in line or "user:" in line))
        for _ in range(10):
            (await loopback.connect(8123)).close()
        print("connected")
    finally:
        os.killpg(server.pid, 9)
        server.wait()
        server.stdout.close()
        await loopback.close()


folder = Path(sys.argv[1])
(folder / "data").mkdir()
asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python that everybody may run")
def test_a_user_without_rights_shares_it_too() -> None:
    """Such a user cannot enter the network itself: a program enters for it."""
    with folder_of_nobody() as folder:
        ended = subprocess.run(
            [*nobody(), sys.executable, "-c", _OF_NOBODY, folder],
            capture_output=True, text=True, check=False, cwd=Path(errand.__file__).parents[1],
        )  # fmt: skip
    assert ended.stdout.splitlines() == ["mine", "connected"], ended.stderr

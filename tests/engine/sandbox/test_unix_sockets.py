"""Unix sockets of services outside: no command reaches one, unless the person opened it. With real sockets."""

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.context import ToolContext
from errand.engine.tools.python.session import PythonSession
from tests.engine.sandbox.conftest import profile_of, run_shell
from tests.support.loop_parts import make_tool_context, run, task_of, text_of, tool_of
from tests.support.processes import PYTHON, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are of Linux")


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is not below /tmp, which is another one in the sandbox."""
    above = Path(__file__).parents[3] / "build"
    above.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=above, prefix="t") as folder:
        yield Path(folder)


@contextmanager
def service(path: Path) -> Generator[socket.socket]:
    """A service that listens at the path; nobody may have connected at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(0.01)
        yield server


def is_reached(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return False
    return True


def connect(path: Path | str) -> str:
    """A line that connects to the path."""
    return f'{PYTHON} -c "import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})" 2>/dev/null'


async def test_a_socket_of_a_service_is_not_reached(boxed: ToolContext, outside: Path) -> None:
    (outside / "notes.txt").write_text("notes")
    with service(outside / "agent.sock") as server:
        printed = await run_shell(boxed, f"{connect(outside / 'agent.sock')} || echo refused; cat {outside}/notes.txt")
        assert not is_reached(server)
    assert printed == "refused\nnotes"


@pytest.mark.parametrize("name", ["DOCKER_HOST", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "EDITOR_IPC"])
async def test_a_socket_that_a_variable_names_is_not_reached(boxed: ToolContext, outside: Path, name: str) -> None:
    path = outside / "of service.d" / "s"
    link = outside / "link"
    form = {"DOCKER_HOST": "unix://{}", "DBUS_SESSION_BUS_ADDRESS": "unix:path={},guid=1"}.get(name, "{}")
    with service(path) as server:
        link.symlink_to(path)
        context = replace(boxed, environment={**boxed.environment, name: form.format(link)})
        assert await run_shell(context, f"{connect(path)} || {connect(link)} || echo refused") == "refused"
        assert not is_reached(server)


async def test_datagrams_are_not_sent_to_a_socket_of_a_service(boxed: ToolContext, outside: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(outside / "log"))
        server.settimeout(0.01)
        code = (
            "import socket\n"
            "for make in (lambda: socket.socket(1, 2), lambda: socket.socketpair(1, 2)[0]):\n"
            "    try:\n"
            f"        make().sendto(b'x', '{outside}/log')\n"
            "    except OSError:\n"
            "        print('refused')\n"
        )
        (boxed.workspace / "send.py").write_text(code)
        assert await run_shell(boxed, f"{PYTHON} send.py") == "refused\nrefused"
        with pytest.raises(TimeoutError):
            server.recv(1)


async def test_a_socket_bound_by_a_relative_name_is_not_reached(boxed: ToolContext, outside: Path) -> None:
    code = "import socket; s = socket.socket(1); s.bind('s'); s.listen(); print('up', flush=True); input()"
    process = subprocess.Popen(  # noqa: ASYNC220
        [PYTHON, "-c", code], cwd=outside, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        assert await run_shell(boxed, f"{connect(outside / 's')} || echo refused") == "refused"
    finally:
        process.communicate(b"\n")


async def test_a_folder_with_many_sockets_is_hidden(sandboxed: ToolContext, outside: Path) -> None:
    (outside / "notes.txt").write_text("notes")
    servers = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for number, server in enumerate(servers):
        server.bind(str(outside / f"s{number}"))
    assert await run_shell(sandboxed, f"find {outside} -type s | wc -l") == "0"
    for server in servers:
        server.close()


async def test_no_socket_below_run_is_there(sandboxed: ToolContext) -> None:
    assert await run_shell(sandboxed, "find /run /var/run/ -type s 2>/dev/null | wc -l; ls /run > /dev/null") == "0"


@pytest.mark.parametrize("folder", ["{workspace}", "/tmp"])
async def test_sockets_of_its_own_work(sandboxed: ToolContext, folder: str) -> None:
    path = f"{folder.format(workspace=sandboxed.workspace)}/own.sock"
    serve = f"import socket; s = socket.socket(1); s.bind('{path}'); s.listen(); s.accept()[0].send(b'hello')"
    code = f"import socket; s = socket.socket(1); s.connect('{path}'); print(s.recv(5).decode())"
    async with task_of(sandboxed):
        await run_shell(sandboxed, f'{PYTHON} -c "{serve}" & until [ -S {path} ]; do sleep 0.01; done')
        assert await run_shell(sandboxed, f'{PYTHON} -c "{code}"') == "hello"


async def test_a_socket_that_the_person_opened_is_reached(sandboxed: ToolContext, outside: Path) -> None:
    with service(outside / "a.d" / "s") as of_folder, service(outside / "b.d" / "s") as alone:
        profile = replace(profile_of(sandboxed), granted=(outside / "a.d", outside / "b.d" / "s"))
        context = replace(sandboxed, sandbox=CommandSandbox(profile))
        await run_shell(context, f"{connect(outside / 'a.d' / 's')}; {connect(outside / 'b.d' / 's')}")
        assert is_reached(of_folder) and is_reached(alone)


async def test_a_socket_of_another_task_is_not_reached(sandboxed: ToolContext, outside: Path) -> None:
    """It was bound in the network of another sandbox, whose list the engine's network does not have."""
    other = make_tool_context(outside / "other", "task_other")
    profile = replace(profile_of(sandboxed), workspace=other.workspace, output_dir=other.output_dir)
    context = replace(other, sandbox=CommandSandbox(profile))
    path = other.workspace / "s"
    serve = f"import socket, time; s = socket.socket(1); s.bind('{path}'); s.listen(); time.sleep(60)"
    async with task_of(context):
        await run_shell(context, f'{PYTHON} -c "{serve}" >/dev/null 2>&1 & until [ -S {path} ]; do sleep 0.01; done')
        assert await run_shell(context, f"{connect(path)} && echo reached") == "reached"
        assert await run_shell(sandboxed, f"{connect(path)} || echo refused") == "refused"


async def test_a_service_that_starts_again_stays_hidden_from_a_session(sandboxed: ToolContext, outside: Path) -> None:
    path = outside / "agent.d" / "s"
    code = f"import socket\ntry:\n    socket.socket(1).connect({str(path)!r})\nexcept OSError:\n    print('refused')"
    try:
        with service(path):
            assert "refused" in text_of(await run(tool_of(sandboxed, "python"), {"code": code}))
        path.unlink()
        with service(path) as again:
            assert "refused" in text_of(await run(tool_of(sandboxed, "python"), {"code": code}))
            assert not is_reached(again)
    finally:
        await sandboxed.sessions.close(PythonSession)


@pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="needs ssh-agent")
async def test_an_ssh_agent_does_not_answer(boxed: ToolContext, outside: Path) -> None:
    path = outside / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)  # noqa: ASYNC220
    try:
        await until(path.is_socket)
        context = replace(boxed, environment={**boxed.environment, "SSH_AUTH_SOCK": str(path)})
        printed = await run_shell(context, "ssh-add -l 2>&1; echo $?")
        assert printed.endswith("2"), "1 is an agent without keys, 2 is no agent"
    finally:
        agent.terminate()
        agent.wait()

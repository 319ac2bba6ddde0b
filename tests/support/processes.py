"""Queries the processes of this machine, for tests that count what is left."""

import asyncio
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import cache
from pathlib import Path
from types import AsyncGeneratorType
from typing import TypeVar, cast
from uuid import uuid4

import msgspec
import psutil
import pytest

import errand
from errand.engine.core.workspace_threads import end_idle
from errand.engine.tools.processes.marks import all_marks
from errand.engine.tools.processes.process_table import children_of, has_proc
from errand.engine.tools.processes.termination import ProcessSweep
from tests.support.limits import WAIT_LIMIT_S, seldom

_GROUPS = Path("/sys/fs/cgroup/memory")

# The Python of the virtual environment, by its real path: a clone in /tmp does not exist inside a sandbox.
PYTHON = os.path.realpath(sys.executable)

NOBODY = 65534
_USER = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
# If Python is below root's home folder: may read any file, but inspect no more processes than without.
_READER = (*_USER, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37

# Time for resources that are being released when a test ends.
_GRACE_S = 5.0
_LOOK_S = 0.01

_PROGRAM = str(Path(errand.__file__).parent)

_ended: set[int] = set()

_T = TypeVar("_T")


def running(marker: str) -> list[int]:
    """Return the processes whose command line contains the marker.

    Where orphans are adopted, only those that this process has started count: another run of the same tests, or a
    program of somebody else, may have the marker too.
    """
    if has_proc():
        numbers = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        marked = [pid for pid in numbers if marker.encode() in _command_line(pid)]
        return [pid for pid in marked if _is_below_this(pid)] if marked and adopts_orphans() else marked
    pids: list[int] = []
    for process in psutil.process_iter(["cmdline", "status"]):
        arguments: list[str] = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(marker in word for word in arguments):
            pids.append(process.pid)
    return pids


def running_programs(marker: str) -> set[str]:
    """Return the first words of command lines that begin with the marker, as `exec -a` sets them.

    The shell that is about to become the program has the marker in its command line too, but not there.
    """
    first_words = (_command_line(pid).partition(b"\0")[0].decode(errors="replace") for pid in running(marker))
    return {word for word in first_words if word.startswith(marker)}


def _is_below_this(pid: int) -> bool:
    """Climb from parent to parent, from the start again if one ends meanwhile: its children have another then."""
    at = pid
    while at not in (0, os.getpid()):
        try:
            at = int(Path(f"/proc/{at}/stat").read_bytes().rpartition(b") ")[2].split()[1])
        except OSError:
            if at == pid:
                return False
            at = pid
    return at != 0


def _command_line(pid: int) -> bytes:
    """Its words, with NUL after each; empty for a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def below(*markers: str, of: int | None = None) -> list[psutil.Process]:
    """Running processes below this one, or below `of`, whose command line contains one of the markers."""
    matching: list[psutil.Process] = []
    for child in psutil.Process(of).children(recursive=True):
        with suppress(psutil.Error):  # ended meanwhile
            command_line = " ".join(child.cmdline())
            if child.status() != psutil.STATUS_ZOMBIE and any(marker in command_line for marker in markers):
                matching.append(child)
    return matching


def is_alive(pid: int) -> bool:
    """False for a process that has ended, including a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def until(is_true: Callable[[], bool], limit_s: float = WAIT_LIMIT_S) -> None:
    """Poll every 10 ms for a condition without an event."""
    looks = seldom(is_true)
    async with asyncio.timeout(limit_s):
        while not looks():  # noqa: ASYNC110 - processes and files of others set no asyncio event
            await asyncio.sleep(0.01)


async def file_appears(file: Path, limit_s: float = WAIT_LIMIT_S) -> None:
    """Commands of an engine that starts on a busy machine take their time.

    A file appears before a shell writes to it: what is read afterwards comes by `mv`, or from a file written before.
    """
    await until(file.exists, limit_s)


@contextmanager
def little_memory(megabytes: int) -> Generator[Path]:
    """A control group's file: a process joins by writing its id to it.

    Skips the test if control groups are unavailable.
    """
    group = _GROUPS / f"errand-test-{uuid4().hex}"
    limit = str(megabytes * 1024 * 1024)
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(limit)
    except OSError:
        pytest.skip("this user may not make a control group")
    memory_and_swap = group / "memory.memsw.limit_in_bytes"
    if memory_and_swap.exists():
        memory_and_swap.write_text(limit)
    try:
        yield group / "cgroup.procs"
    finally:
        subprocess.run(["rmdir", str(group)], check=False)


def nobody() -> tuple[str, ...]:
    """The command prefix that runs a command as the user `nobody`; skips the test if that is impossible."""
    prefix = _prefix()
    if prefix is None:
        pytest.skip("needs Linux, the superuser and setpriv: a second user is played by `nobody`")
    return prefix


@contextmanager
def folder_of_nobody() -> Generator[Path]:
    """A folder that belongs to `nobody`."""
    folder = Path(tempfile.mkdtemp(prefix="errand-nobody-"))
    os.chown(folder, NOBODY, NOBODY)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _prefix() -> tuple[str, ...] | None:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    return next((prefix for prefix in (_USER, _READER) if _works(prefix)), None)


def _works(prefix: tuple[str, ...]) -> bool:
    program = "import subprocess, sys, app; subprocess.run([sys.executable, '-c', 'import sqlalchemy'], check=True)"
    command = [*prefix, sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, cwd=Path(__file__).parents[2], check=False).returncode == 0


def adopt_orphans() -> None:
    """Become the subreaper of orphaned descendants, so that they are found (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def adopts_orphans() -> bool:
    if sys.platform != "linux":
        return False
    flag = ctypes.c_int()
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    return bool(flag.value)


def reap_orphans() -> None:
    """Reap adopted processes that had ended before the last call.

    Nothing else does, and each takes its time whenever processes are counted. Those that ended since may still be
    waited for by who started them.
    """
    if not has_proc() or not _has_children():
        return
    ended = {pid for pid in children_of(os.getpid()) if not _is_alive(pid)}
    for pid in ended & _ended:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    _ended.clear()
    _ended.update(ended)


async def leaked_tasks() -> list[str]:
    """The asyncio tasks of this loop except the current one."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, others = await asyncio.wait(others, timeout=_GRACE_S)
    return sorted(repr(task) for task in others)


def watch_generators() -> list[str]:
    """Names of the program's async generators that were not closed; the list grows while this loop runs.

    Such a generator keeps its resources, a connection for example, until it is collected. Then the loop creates a task
    that closes it.
    """
    left: list[str] = []

    def make(
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[object, object, _T] | Generator[asyncio.Future[object] | None, None, _T],
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        if type(coroutine).__name__ == "async_generator_athrow":
            generator = cast("AsyncGeneratorType[object, object]", gc.get_referents(coroutine)[0])
            if generator.ag_code.co_filename.startswith(_PROGRAM):
                left.append(f"async generator {generator.__qualname__}, not closed by who took it")
        return asyncio.Task(coroutine, loop=loop, context=context)

    asyncio.get_running_loop().set_task_factory(make)
    return left


def threads() -> set[threading.Thread]:
    """The running threads, except a library's that live as long as the process."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("litellm-logging")}


def leaked_threads(before: set[threading.Thread]) -> list[str]:
    """The threads that did not exist before."""
    give_up_at = time.monotonic() + _GRACE_S
    for thread in threads() - before:
        while thread.is_alive() and time.monotonic() < give_up_at:
            end_idle()  # a thread reports its result a moment before it is idle
            thread.join(_LOOK_S)
    return sorted(repr(thread) for thread in threads() - before)


def processes() -> set[int]:
    """The processes below this one, without ended ones."""
    if not _has_children():
        return set()
    return {pid for pid in _descendants() if _is_alive(pid)}


def _descendants(of: int = 0) -> set[int]:
    """All descendants, found from parent to child if the system supports it.

    That takes a hundredth of the time of a scan of the whole machine.
    """
    if not has_proc():
        return {child.pid for child in psutil.Process(of or None).children(recursive=True)}
    pids, rest = set[int](), children_of(of or os.getpid())
    while rest:
        pid = rest.pop()
        pids.add(pid)
        rest += children_of(pid)
    return pids


def leaked_processes(before: set[int], kept_homes: Iterable[Path], kept_pids: Iterable[int]) -> list[str]:
    """The processes that did not exist before, killed by this call.

    Engines on the kept data directories may stay, and so may these processes with those below them.
    """
    give_up_at = time.monotonic() + _GRACE_S
    while left := processes() - before:
        left -= _engines(kept_homes)
        for pid in kept_pids:
            left -= {pid, *(_descendants(pid) if pid in left else ())}
        if not left or time.monotonic() > give_up_at:
            return sorted(_end(pid) for pid in left)
        time.sleep(_LOOK_S)
    return []


def end_tasks() -> None:
    """End the processes that the test's commands left behind, and forget their marks.

    Otherwise the next test would find them.
    """
    task_ids = {mark.task_id for mark in all_marks()}
    if task_ids:
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            for task_id in task_ids:
                runner.run(ProcessSweep(task_id).end())


def _has_children() -> bool:
    """A cheap check: False if a scan of the process table would find nothing."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    if not has_proc():
        return is_alive(pid)
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return state not in b"ZX"


def _engines(homes: Iterable[Path]) -> set[int]:
    """The engines on these data directories, and the processes below them."""
    pids: set[int] = set()
    for home in homes:
        try:
            engine = psutil.Process(msgspec.json.decode((home / "run" / "engine.json").read_bytes())["pid"])
            pids |= {engine.pid, *(child.pid for child in engine.children(recursive=True))}
        except (OSError, psutil.NoSuchProcess):
            pass  # none runs
    return pids


def _end(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        command_line = " ".join(process.cmdline())
        process.kill()
    except psutil.NoSuchProcess:
        return f"{pid}, ended meanwhile"
    return f"{pid} {command_line[:200]}"

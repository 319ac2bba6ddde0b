"""System calls that no sandboxed command may make: made by real commands, and by the filter of each architecture."""

import asyncio
import ctypes
import errno
import os
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from errand.engine.sandbox.seccomp import filter_program
from errand.engine.tools.context import ToolContext
from errand.engine.tools.python.session import PythonSession
from tests.engine.sandbox.conftest import run_shell
from tests.support.loop_parts import run, task_of, text_of, tool_of
from tests.support.processes import PYTHON

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seccomp is of Linux")

_ALLOW, _ERRNO = 0x7FFF_0000, 0x0005_0000
_X86_64, _I386, _AARCH64, _ARM, _RISCV64 = 0xC000_003E, 0x4000_0003, 0xC000_00B7, 0x4000_0028, 0xC000_00F3

# Prints what each call answers: the number of the error, or "done".
_CALLS = """
import ctypes, errno, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    result = libc.syscall(*map(ctypes.c_long, arguments))
    print(name, errno.errorcode[ctypes.get_errno()] if result < 0 else "done")
text = ctypes.create_string_buffer(b"user")
address = ctypes.addressof(text)
call("add_key", {add_key}, address, address, address, 4, -3)
call("request_key", {request_key}, address, address, 0, 0)
call("keyctl", {keyctl}, 0, -3, 0, 0, 0)
call("perf_event_open", {perf_event_open}, 0, 0, -1, -1, 0)
call("bpf", {bpf}, 0, 0, 0)
call("userfaultfd", {userfaultfd}, 1)
call("io_uring_setup", 425, 1, 0)
call("TIOCSTI", {ioctl}, 0, 0x5412, address)
call("TIOCSTI with high bits", {ioctl}, 0, 0x5412 | 1 << 32, address)
call("TIOCLINUX", {ioctl}, 0, 0x541C, address)
call("vsock", {socket}, 40, 1, 0)
call("packets of the kernel's cryptography", {socket}, 38, 5, 0)
call("stream", {socket}, 2, 1, 0)
call("getpid", {getpid})
""".format(
    **(
        dict(add_key=248, request_key=249, keyctl=250, perf_event_open=298, bpf=321, userfaultfd=323, ioctl=16)
        | dict(socket=41, getpid=39)
        if os.uname().machine == "x86_64"
        else dict(add_key=217, request_key=218, keyctl=219, perf_event_open=241, bpf=280, userfaultfd=282, ioctl=29)
        | dict(socket=198, getpid=172)
    )
)
_ANSWERS = {
    "add_key": "EPERM",
    "request_key": "EPERM",
    "keyctl": "EPERM",
    "perf_event_open": "EPERM",
    "bpf": "EPERM",
    "userfaultfd": "EPERM",
    "io_uring_setup": "ENOSYS",
    "TIOCSTI": "EPERM",
    "TIOCSTI with high bits": "EPERM",
    "TIOCLINUX": "EPERM",
    "vsock": "EAFNOSUPPORT",
    "packets of the kernel's cryptography": "EAFNOSUPPORT",
    "stream": "done",
    "getpid": "done",
}
# Machine code for x86-64 that makes a call of the 32-bit ABI, `add_key` with nothing.
_COMPATIBLE = """
import ctypes, mmap
code = bytes.fromhex("53 31db 31c9 31d2 31f6 b81e010000 cd80 5b c3")
memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
made = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
print(made)
"""


def _answers(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines())


async def test_a_command_makes_none_of_them(boxed: ToolContext) -> None:
    (boxed.workspace / "calls.py").write_text(_CALLS)
    assert _answers(await run_shell(boxed, f"{PYTHON} calls.py")) == _ANSWERS


async def test_what_a_command_leaves_running_makes_none_of_them(boxed: ToolContext) -> None:
    (boxed.workspace / "calls.py").write_text(_CALLS)
    async with task_of(boxed):
        await run_shell(
            boxed, f"(setsid {PYTHON} calls.py > out.txt; touch ended) & wait; until [ -e ended ]; do :; done"
        )
    assert _answers((boxed.workspace / "out.txt").read_text()) == _ANSWERS


async def test_a_python_session_makes_none_of_them(boxed: ToolContext) -> None:
    try:
        printed = text_of(await run(tool_of(boxed, "python"), {"code": _CALLS}))
    finally:
        await boxed.sessions.close(PythonSession)
    assert {name: _answers_of(printed).get(name) for name in _ANSWERS} == _ANSWERS


def _answers_of(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if line.rpartition(" ")[0] in _ANSWERS)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the 32-bit ABI of x86-64")
async def test_a_command_makes_none_of_them_by_the_32_bit_abi(boxed: ToolContext) -> None:
    (boxed.workspace / "compatible.py").write_text(_COMPATIBLE)
    if (await asyncio.to_thread(subprocess.run, [PYTHON, boxed.workspace / "compatible.py"], check=False)).returncode:
        pytest.skip("this kernel runs no 32-bit programs")
    assert await run_shell(boxed, f"{PYTHON} compatible.py") == str(-errno.EPERM)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the x32 ABI of x86-64")
async def test_a_command_makes_no_call_of_x32(boxed: ToolContext) -> None:
    code = "import ctypes as c; c.CDLL(None, use_errno=True).syscall(0x40000000 + 250, 0); print(c.get_errno())"
    assert await run_shell(boxed, f'{PYTHON} -c "{code}"') == str(errno.ENOSYS)


async def test_a_command_can_use_what_tools_need(boxed: ToolContext) -> None:
    """Pipes between processes, terminals and the socket pairs of event loops."""
    code = (
        "import asyncio, multiprocessing, pty, socket\n"
        "socket.socketpair()[0].close()\n"
        "asyncio.run(asyncio.sleep(0))\n"
        "pty.openpty()\n"
        "ours, theirs = multiprocessing.Pipe()\n"
        "multiprocessing.get_context('fork').Process(target=theirs.send, args=(7,)).start()\n"
        "print(ours.recv())\n"
    )
    (boxed.workspace / "needs.py").write_text(code)
    assert await run_shell(boxed, f"{PYTHON} needs.py") == "7"


def _decision(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return the kernel's decision on a call; only the classic BPF instructions of the filter are interpreted."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    instructions, index, word = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, if_true, if_false, value = instructions[index]
        index += 1
        match code:
            case 0x20:
                (word,) = struct.unpack_from("=I", data, value)
            case 0x54:
                word &= value
            case 0x15:
                index += if_true if word == value else if_false
            case 0x35:
                index += if_true if word >= value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(f"instruction {code:#x}")


# keyctl, ioctl, socket, socketpair, getpid by asm/unistd.h of each architecture.
_NUMBERS = {
    ("x86_64", _X86_64): (250, 16, 41, 53, 39),
    ("x86_64", _I386): (288, 54, 359, 360, 20),
    ("i686", _I386): (288, 54, 359, 360, 20),
    ("aarch64", _AARCH64): (219, 29, 198, 199, 172),
    ("aarch64", _ARM): (311, 54, 281, 288, 20),
    ("armv7l", _ARM): (311, 54, 281, 288, 20),
    ("riscv64", _RISCV64): (219, 29, 198, 199, 172),
}


@pytest.mark.parametrize(("machine", "architecture"), _NUMBERS)
def test_the_filter_of_each_architecture_refuses_them(machine: str, architecture: int) -> None:
    keyctl, ioctl, socket_, socketpair, getpid = _NUMBERS[machine, architecture]
    program = filter_program(machine, unix_sockets=True)
    assert _decision(program, architecture, keyctl, 0) == _ERRNO | errno.EPERM
    assert _decision(program, architecture, ioctl, 0, 0x5412) == _ERRNO | errno.EPERM
    assert _decision(program, architecture, ioctl, 0, 0x5413) == _ALLOW
    assert _decision(program, architecture, socket_, 40) == _ERRNO | errno.EAFNOSUPPORT
    assert [_decision(program, architecture, socket_, family) for family in (1, 2, 10, 16)] == [_ALLOW] * 4
    assert _decision(program, architecture, socketpair, 1, 2) == _ALLOW
    assert _decision(program, architecture, getpid) == _ALLOW


@pytest.mark.parametrize(("machine", "architecture"), _NUMBERS)
def test_without_unix_sockets_none_has_an_address(machine: str, architecture: int) -> None:
    _, _, socket_, socketpair, _ = _NUMBERS[machine, architecture]
    program = filter_program(machine, unix_sockets=False)
    refused = _ERRNO | errno.EAFNOSUPPORT
    assert [_decision(program, architecture, socket_, family) for family in (1, 2)] == [refused, _ALLOW]
    close_on_exec = 0x80000
    kinds = [_decision(program, architecture, socketpair, 1, kind | close_on_exec) for kind in (1, 2, 3, 5)]
    assert kinds == [_ALLOW, refused, refused, _ALLOW]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_calls_of_an_architecture_without_a_list_are_refused(machine: str) -> None:
    s390x = 0x8000_0016
    assert _decision(filter_program(machine, unix_sockets=True), s390x, 20) == _ERRNO | errno.ENOSYS


def test_sockets_by_one_call_for_all_are_refused_where_their_arguments_lie_in_memory() -> None:
    assert _decision(filter_program("x86_64", unix_sockets=True), _I386, 102, 1) == _ERRNO | errno.ENOSYS


@pytest.fixture
def planted_key() -> Iterator[str]:
    """A key in the keyring of this process's session, as a login leaves them."""
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"errand-{os.getpid()}"
    number = libc.syscall(ctypes.c_long(248), b"user", name.encode(), b"sk-planted", ctypes.c_size_t(10), -4)
    if number < 0:
        pytest.skip("no keyring here")
    yield name
    libc.syscall(ctypes.c_long(250), 21, ctypes.c_long(number), 0, 0, 0)  # KEYCTL_INVALIDATE


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the calls")
async def test_a_key_of_the_person_is_not_found(boxed: ToolContext, planted_key: str) -> None:
    (boxed.workspace / "find.py").write_text(
        "import ctypes\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "search = lambda ring: c.syscall(ctypes.c_long(250), 10, ctypes.c_long(ring), b'user', "
        f"b'{planted_key}', 0)\n"
        "print(list(map(search, (-3, -4))))\n"
    )
    assert await run_shell(boxed, f"{PYTHON} find.py") == "[-1, -1]"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the calls")
async def test_the_names_of_keys_are_not_listed(sandboxed: ToolContext, planted_key: str) -> None:
    assert planted_key not in await run_shell(sandboxed, "cat /proc/keys")

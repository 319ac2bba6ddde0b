"""The first process of a standing sandbox: starts one command after another for the engine.

It runs without the rest of the app and imports none of it, with the rights of a command and no others. Commands cannot
end it, since no signal reaches process 1 from inside, nor read its memory, since it cannot be dumped. Its argument is
the descriptor of the connection to the engine (`standing.py`): it receives `request` messages with the descriptors of
the command, and sends `ready`, `exit CODE STATE`, and `empty` when the last process of a command has ended.
"""

import array
import ctypes
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

if sys.platform != "win32":
    import fcntl
    import resource

# A message has at most this size, with at most this many descriptors.
MAX_REQUEST_BYTES, MAX_DESCRIPTORS = 128 * 1024, 16
# Numbers that a command's descriptors may have; the process holds them above until the command has started.
MAX_DESCRIPTOR = 255
# What of the command is left: nothing, processes, or something that the next command must not find.
EMPTY, OCCUPIED, USED = "empty", "occupied", "used"

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_WALL = 0x4000_0000  # linux/wait.h: children of any kind
_FAILED = 1
_LIMITS = range(16)  # asm-generic/resource.h: RLIM_NLIMITS
_IPC = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
_SOCKETS = ("/proc/net/sockstat", "/proc/net/sockstat6")
# Folders in memory that commands can write.
_SHARED_MEMORY, _QUEUES = "/dev/shm", "/dev/mqueue"


class Request(NamedTuple):
    """A command: its program's path, folder, words, `NAME=value` variables and limit of message queues.

    `numbers` are those that its descriptors have in the command.
    """

    program: bytes
    folder: bytes
    stamp: int
    numbers: list[int]
    arguments: list[bytes]
    variables: list[bytes]


def encoded(
    program: bytes,
    folder: bytes,
    stamp: int,
    numbers: Sequence[int],
    arguments: Sequence[bytes],
    variables: list[bytes],
) -> bytes:
    """Return the message of a request. Raises `ValueError` for a NUL in one of its parts."""
    parts = [b"%d" % stamp, b",".join(b"%d" % number for number in numbers), b"%d" % len(arguments), program, folder]
    data = b"\0".join((*parts, *arguments, *variables))
    if data.count(b"\0") != len(parts) + len(arguments) + len(variables) - 1:
        raise ValueError("embedded null byte")
    return data


def decoded(data: bytes) -> Request:
    stamp, numbers, count, program, folder, *rest = data.split(b"\0")
    end = int(count)
    return Request(program, folder, int(stamp), [*map(int, numbers.split(b","))], rest[:end], rest[end:])


def main(arguments: Sequence[str]) -> int:
    """Start commands until the connection is closed, which ends all processes of the sandbox."""
    connection = socket.socket(fileno=int(arguments[0]))
    connection.set_inheritable(False)
    _forbid_dumps()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, _ignore)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    _Init(connection, wake).run()
    return 0


def _ignore(number: int, frame: object) -> None:
    pass


class _Init:
    """Runs commands. `_pid` is that of the one that runs, None without one; `_is_occupied` if it left processes."""

    def __init__(self, connection: socket.socket, wake: int) -> None:
        self._connection = connection
        self._wake = wake
        self._pid: int | None = None
        self._is_occupied = False
        # The kernel reports each change of the mounts since this file was opened.
        self._mounts = select.poll()
        self._mounts.register(os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC), select.POLLPRI)
        self._before = _traces()

    def run(self) -> None:
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        self._send("ready")
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wake in ready:
                _drain(self._wake)
                if (self._pid is not None or self._is_occupied) and not self._reap():
                    return
            if self._connection.fileno() in ready and not self._take():
                return

    def _take(self) -> bool:
        """Start the command that the engine sends. False if this process must end."""
        data, descriptors = _received(self._connection)
        if not data or self._pid is not None or self._is_occupied:
            return False
        if self._mounts.poll(0):
            self._send(USED)
            return False
        try:
            self._start(decoded(data), descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, request: Request, descriptors: Sequence[int]) -> None:
        above = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, MAX_DESCRIPTOR + 1) for descriptor in descriptors]
        limits = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
        try:
            os.chdir(request.folder)
            if request.stamp:
                resource.setrlimit(resource.RLIMIT_MSGQUEUE, (request.stamp, limits[1]))
            self._pid = os.posix_spawn(
                request.program,
                request.arguments,
                _environment(request.variables),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, descriptor, number)
                    for descriptor, number in zip(above, request.numbers, strict=True)
                ],
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],  # what Python changes
            )
        except OSError as error:
            name = os.fsdecode(error.filename or request.program)
            text = f"{name}: {error.strerror}\n".encode(errors="replace")
            for descriptor, number in zip(above, request.numbers, strict=True):
                if number == sys.stderr.fileno():
                    os.write(descriptor, text)
            self._send(f"exit {_FAILED} {EMPTY}")
        finally:
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, limits)
            os.chdir("/")
            for descriptor in above:
                os.close(descriptor)

    def _reap(self) -> bool:
        """Wait for what has ended, and tell the engine. False if this process must end."""
        code: int | None = None
        is_empty = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | _WALL)
            except ChildProcessError:
                is_empty = True
                break
            if pid == 0:
                break
            if pid == self._pid:
                code, self._pid = _exit_code(status), None
        if self._pid is not None or not (is_empty or code is not None):
            return True
        is_used = is_empty and (_traces() != self._before or bool(self._mounts.poll(0)))
        state = OCCUPIED if not is_empty else USED if is_used else EMPTY
        self._send(state if code is None else f"exit {code} {state}")
        self._is_occupied = not is_empty
        return not is_used

    def _send(self, text: str) -> None:
        self._connection.send(text.encode())


def _received(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Return a message and its descriptors, which no command inherits (socket.recv_fds ignores its flags)."""
    numbers = array.array("i")
    room = socket.CMSG_LEN(MAX_DESCRIPTORS * numbers.itemsize)
    data, parts, _, _ = connection.recvmsg(MAX_REQUEST_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    for _, _, content in parts:
        numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    return data, list(numbers)


def _exit_code(status: int) -> int:
    """Return the exit code as bubblewrap gives it, and shells: 128 and the number of a signal."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _environment(variables: Sequence[bytes]) -> Mapping[bytes, bytes]:
    return {name: value for name, _, value in (variable.partition(b"=") for variable in variables)}


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4_096):
            pass
    except BlockingIOError:
        pass


def _traces() -> list[object]:
    """Return all that a command can leave behind, apart from processes and files in folders that it may change.

    A command has the same user, and may lower the limits and priorities of this process.
    """
    folder = os.stat("/dev")
    return [
        [resource.getrlimit(number) for number in _LIMITS],
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        os.sched_getaffinity(0),
        _read("/proc/self/oom_score_adj"),
        (folder.st_mode, folder.st_mtime_ns, folder.st_ctime_ns),
        [(os.stat(path).st_mode, os.listdir(path)) for path in (_SHARED_MEMORY, _QUEUES) if os.path.isdir(path)],
        [_read(path) for path in _IPC],
        [_counts(_read(path)) for path in _SOCKETS],
    ]


def _counts(text: bytes) -> list[bytes]:
    """Return the fields that count sockets of this network alone: those in use, and connections that rest."""
    counts: list[bytes] = []
    for line in text.splitlines():
        name, *fields = line.split()
        values = dict(zip(fields[::2], fields[1::2], strict=False))
        counts += [name, values.get(b"inuse", b""), values.get(b"tw", b""), values.get(b"used", b"")]
    return counts


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _forbid_dumps() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

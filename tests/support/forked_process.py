"""Starts programs as a user does, without the time of their imports where that makes no difference."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence

from tests.support.warm_errand import Command, can_fork, fork

# Qt draws on a screen that a fork does not have.
_WINDOWS = ((), ("window",), ("quick",))


async def start_program(
    command: Command, streams: tuple[int, int, int] = (PIPE, PIPE, PIPE), prefix: tuple[str, ...] = ()
) -> asyncio.subprocess.Process:
    """Start it with these descriptors, or new pipes, as standard streams, by the program `prefix` if there is one."""
    if not prefix and command.arguments[:1] not in _WINDOWS and can_fork(command.environment):
        return await _fork_with_streams(command, streams)
    return await asyncio.create_subprocess_exec(
        *prefix,
        sys.executable,
        "-m",
        command.module,
        *command.arguments,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        cwd=command.folder,
        env=command.environment,
        start_new_session=command.new_session,
    )


class _ForkedProcess(asyncio.subprocess.Process):
    """A child of this process that was not started by asyncio, which reaps its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.stdin = self.stdout = self.stderr = None
        self._code: int | None = None
        self._has_ended = asyncio.Event()
        self._watched = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._watched, self._reap)

    @property
    def returncode(self) -> int | None:
        return self._code

    async def wait(self) -> int:
        await self._has_ended.wait()
        assert self._code is not None
        return self._code

    async def communicate(self, input: bytes | bytearray | memoryview | None = None) -> tuple[bytes, bytes]:
        out, err, _, _ = await asyncio.gather(_all(self.stdout), _all(self.stderr), self._type(input), self.wait())
        return out, err

    def send_signal(self, signal: int) -> None:
        if self._code is None:
            os.kill(self.pid, signal)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def _type(self, text: bytes | bytearray | memoryview | None) -> None:
        if self.stdin is None:
            return
        try:
            if text:
                self.stdin.write(text)
                await self.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended without reading all of it
        self.stdin.close()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._watched)
        os.close(self._watched)
        self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._has_ended.set()


async def _fork_with_streams(command: Command, streams: Sequence[int]) -> _ForkedProcess:
    theirs, ours = list(streams), [-1, -1, -1]
    for number, stream in enumerate(streams):
        if stream == PIPE:
            reading, writing = os.pipe()
            theirs[number], ours[number] = (reading, writing) if number == 0 else (writing, reading)
        elif stream == DEVNULL:
            theirs[number] = os.open(os.devnull, os.O_RDWR)
    process = _ForkedProcess(fork(command, theirs))
    for number, stream in enumerate(streams):
        if stream in (PIPE, DEVNULL):
            os.close(theirs[number])
    process.stdin = await _writer(ours[0])
    process.stdout, process.stderr = await _reader(ours[1]), await _reader(ours[2])
    return process


async def _writer(descriptor: int) -> asyncio.StreamWriter | None:
    if descriptor < 0:
        return None
    loop = asyncio.get_running_loop()
    protocol = asyncio.streams.FlowControlMixin(loop=loop)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(descriptor, "wb", 0))
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(descriptor: int) -> asyncio.StreamReader | None:
    if descriptor < 0:
        return None
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    await loop.connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", 0))
    return reader


async def _all(stream: asyncio.StreamReader | None) -> bytes:
    return await stream.read() if stream is not None else b""

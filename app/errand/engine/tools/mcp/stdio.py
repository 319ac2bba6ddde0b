"""A server as a child process: messages are lines on its standard input and output, its standard error is its log."""

import asyncio
import os
from collections import deque
from collections.abc import Callable

from errand.engine.core.errors import ConfigurationError
from errand.engine.core.fair_share import Slice
from errand.engine.core.json_input.foreign_json import size_text
from errand.engine.sandbox.launch import Launch
from errand.engine.tools.mcp.json_rpc import McpError, RpcPeer
from errand.engine.tools.mcp.lines import MAX_MESSAGE_BYTES, EndlessLine, LineBuffer, LongLine
from errand.engine.tools.mcp.server_log import ServerLog
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep, adopt_orphans
from errand.text.notice_text import exit_text

# What waits for a server that does not read.
_MAX_WAITING_BYTES = 32 * 1024 * 1024
# Time to end by itself once its input is closed, as the protocol asks.
_ORDERLY_S = 0.2
# Messages that were read and wait to be decoded; the server waits while there are more.
_MAX_UNDECODED_BYTES = 2 * MAX_MESSAGE_BYTES


class StdioTransport:
    """One process and its descendants. `ended` is called once, when it ended or broke the protocol."""

    def __init__(self, owner: str, ended: Callable[[str], None], log: ServerLog) -> None:
        self._owner = owner
        self._ended = ended
        self._log = log
        self._peer: RpcPeer | None = None
        self._child: spawn.Child | None = None
        self._input: int | None = None
        self._waiting: deque[memoryview] = deque()
        self._waiting_size = 0
        self._is_writing = False
        self._lines = LineBuffer()
        self._received: deque[bytes | LongLine] = deque()
        self._received_bytes = 0
        self._end_reason = ""
        self._decoding: asyncio.Task[None] | None = None
        self._is_over = False

    def deliver_to(self, peer: RpcPeer) -> None:
        """Must be called before `start`."""
        self._peer = peer

    async def start(self, launch: Launch) -> None:
        """Raises `ConfigurationError` if the system refuses."""
        adopt_orphans()
        mark = marks.new_mark(self._owner)
        theirs, ours = os.pipe()
        try:
            self._child = spawn.start(launch, mark, self._on_output, self._log.write, stdin=theirs)
        except (OSError, ValueError) as error:
            os.close(ours)
            marks.forget((mark,))
            reason = error.strerror if isinstance(error, OSError) else str(error)
            program = launch.arguments[0]
            if isinstance(error, FileNotFoundError):
                raise ConfigurationError(f"There is no program {program} here. Is it installed?") from error
            raise ConfigurationError(f"{program} could not be started: {reason}.") from error
        finally:
            os.close(theirs)
            launch.close()
        os.set_blocking(ours, False)
        self._input = ours
        self._child.exit.add_done_callback(self._on_exit)

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def send(self, data: bytes, request_id: int | None) -> None:
        if self._input is None:
            return
        if self._waiting_size + len(data) > _MAX_WAITING_BYTES:
            self._break("it does not read what is sent to it")
            return
        self._waiting.append(memoryview(data + b"\n"))
        self._waiting_size += len(data) + 1
        if not self._is_writing:
            self._write()

    def forget(self, request_id: int) -> None:
        pass

    async def close(self) -> None:
        """Close its input, wait for its end for a moment, then end all that is left of it."""
        self._is_over = True
        self._close_input()
        if self._decoding is not None:
            self._decoding.cancel()
            await asyncio.wait((self._decoding,))
        child = self._child
        if child is None:
            return
        if not child.exit.done():
            await asyncio.wait((child.exit,), timeout=_ORDERLY_S)
        await ProcessSweep(self._owner).end()
        child.stdout.discard()
        child.stderr.discard()

    def _write(self) -> None:
        assert self._input is not None
        try:
            while self._waiting:
                sent = os.write(self._input, self._waiting[0])
                self._waiting_size -= sent
                if sent < len(self._waiting[0]):
                    self._waiting[0] = self._waiting[0][sent:]
                else:
                    self._waiting.popleft()
        except BlockingIOError:
            if not self._is_writing:
                self._is_writing = True
                asyncio.get_running_loop().add_writer(self._input, self._write)
            return
        except OSError:
            self._close_input()  # its exit tells why
            return
        if self._is_writing:
            self._is_writing = False
            asyncio.get_running_loop().remove_writer(self._input)

    def _close_input(self) -> None:
        if self._input is None:
            return
        if self._is_writing:
            self._is_writing = False
            asyncio.get_running_loop().remove_writer(self._input)
        os.close(self._input)
        self._input = None
        self._waiting.clear()

    def _on_output(self, data: bytes) -> None:
        if self._is_over or self._end_reason:
            return
        try:
            for line in self._lines.feed(data):
                self._put(line)
        except EndlessLine as problem:
            self._end_after_messages(str(problem))

    def _put(self, line: bytes | LongLine) -> None:
        if isinstance(line, bytes) and not line.strip():
            return
        self._received.append(line)
        self._received_bytes += len(line) if isinstance(line, bytes) else 0
        if self._received_bytes > _MAX_UNDECODED_BYTES and self._child is not None:
            self._child.stdout.pause()
        if self._decoding is None:
            self._decoding = asyncio.get_running_loop().create_task(self._decode(), name=f"messages to {self._owner}")

    async def _decode(self) -> None:
        """Handle what was read, in order, until nothing is left."""
        assert self._peer is not None
        piece = Slice()
        try:
            while self._received and not self._is_over:
                line = self._received.popleft()
                if isinstance(line, LongLine):
                    self._peer.refuse(line.head, line.tail, size_text(MAX_MESSAGE_BYTES))
                else:
                    await self._peer.receive(line)
                    self._received_bytes -= len(line)
                if self._received_bytes <= _MAX_UNDECODED_BYTES and self._child is not None:
                    self._child.stdout.resume()
                if piece.is_over:
                    await piece.renew()
        finally:
            self._decoding = None
        if self._end_reason:
            self._break(self._end_reason)

    def _on_exit(self, exit_code: asyncio.Future[int]) -> None:
        if self._is_over or exit_code.cancelled():
            return
        assert self._child is not None
        self._child.stdout.read_available()
        self._child.stderr.read_available()
        code = exit_code.result()
        self._end_after_messages(f"it ended with exit code {code}" if code >= 0 else f"it was {exit_text(code)}")

    def _end_after_messages(self, reason: str) -> None:
        """The connection is over once what was read is handled."""
        self._end_reason = self._end_reason or reason
        if self._decoding is None:
            self._break(self._end_reason)

    def _break(self, why: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._close_input()
            self._ended(why)


def broken(why: str) -> McpError:
    return McpError(f"The connection is over: {why}.")

"""A server as a child process: messages are lines on its standard input and output, its standard error is its log."""

import asyncio
import os
from collections import deque
from collections.abc import Callable

from errand.engine.core.errors import ConfigurationError
from errand.engine.sandbox.launch import Launch
from errand.engine.tools.mcp.json_rpc import LARGEST_MESSAGE, McpError
from errand.engine.tools.mcp.server_log import ServerLog
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep, adopt_orphans
from errand.notice_text import exit_text

# What waits for a server that does not read.
_MOST_WAITING = 32 * 1024 * 1024
# Time to end by itself once its input is closed, as the protocol asks.
_ORDERLY_S = 0.2
_LONGEST_SHOWN = 200


class StdioTransport:
    """One process and its descendants. `ended` is called once, when it ended or broke the protocol."""

    def __init__(
        self, owner: str, receive: Callable[[bytes], bool], ended: Callable[[str], None], log: ServerLog
    ) -> None:
        self._owner = owner
        self._receive = receive
        self._ended = ended
        self._log = log
        self._child: spawn.Child | None = None
        self._input: int | None = None
        self._waiting: deque[memoryview] = deque()
        self._waiting_size = 0
        self._is_writing = False
        self._line: list[bytes] = []
        self._line_size = 0
        self._is_over = False

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
        if self._waiting_size + len(data) > _MOST_WAITING:
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
        if self._is_over:
            return
        first, *others = data.split(b"\n")
        self._line.append(first)
        self._line_size += len(first)
        if self._line_size > LARGEST_MESSAGE:
            self._break(f"it sent a line of more than {LARGEST_MESSAGE // 1_048_576} MB")
            return
        if not others:
            return
        lines = [b"".join(self._line), *others[:-1]]
        self._line, self._line_size = [others[-1]], len(others[-1])
        for line in lines:
            if line.strip() and not self._is_over and not self._receive(line):
                self._log.note(f"no message: {line[:_LONGEST_SHOWN].decode('utf-8', 'replace')}")

    def _on_exit(self, exit_code: asyncio.Future[int]) -> None:
        if self._is_over or exit_code.cancelled():
            return
        assert self._child is not None
        self._child.stdout.read_available()
        self._child.stderr.read_available()
        code = exit_code.result()
        self._break(f"it ended with exit code {code}" if code >= 0 else f"it was {exit_text(code)}")

    def _break(self, why: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._close_input()
            self._ended(why)


def broken(why: str) -> McpError:
    return McpError(f"The connection is over: {why}.")

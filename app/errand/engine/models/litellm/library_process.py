"""The engine's side of the process in which litellm runs: streams over one socket, its start and its end."""

import asyncio
import logging
import struct
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import Protocol

import msgspec

import errand
from errand.engine.models.deadline import Deadline
from errand.engine.models.litellm import library_child
from errand.engine.tools.processes.helper import start_helper

IDLE_S = 300.0
LEAVE_S = 20.0
STABLE_S = 30.0
_PACKAGE = "litellm"
_SUBCOMMAND = "model-library"
_HEAD = struct.Struct(">IIc")
_COUNT = struct.Struct(">I")
# The library's import takes 2 s, four times that on a busy machine.
_START_LIMIT_S = 120.0
# A frame has at most a chunk, or the start of a refusal's body.
_MAX_FRAME_BYTES = 8 * 1024 * 1024

_logger = logging.getLogger(__name__)


class FailureReport(msgspec.Struct, frozen=True, rename="camel"):
    """The report of the process about a request that failed.

    `kind` is the name of litellm's error class, or one of the process; `status` the provider's HTTP status (0: none).
    `text` is the start of the provider's answer, unless it `is_raw`: the library's own words, for the log alone.
    """

    kind: str
    status: int = 0
    text: str = ""
    headers: dict[str, str] = {}
    is_raw: bool = False


class LibraryFailure(Exception):
    """A request failed in the process, which goes on."""

    def __init__(self, report: FailureReport) -> None:
        super().__init__(report.kind)
        self.report = report


class LibraryEnded(Exception):
    """The process has ended, or could not be started: another one is started for the next request."""


class LibraryUnusable(Exception):
    """The library is not there, or cannot be imported: "is not installed. Install …"."""


class Helper(Protocol):
    """A process whose standard input is the other end of `connection`."""

    @property
    def pid(self) -> int: ...

    @property
    def connection(self) -> socket: ...

    async def end(self) -> None:
        """Kill it, and wait until it is gone."""
        ...


async def start_library() -> Helper:
    """Start the process; it imports the library then. Raises `LibraryUnusable`, OSError or ValueError."""
    if sys.platform == "win32":
        raise LibraryUnusable("does not run on Windows yet. Choose a model of another provider.")
    spec = await asyncio.to_thread(find_spec, _PACKAGE)
    if spec is None or spec.origin is None:
        raise LibraryUnusable("is not installed. Install Errand again.")
    folders = (str(Path(file).parents[1]) for file in (spec.origin, errand.__file__))
    return await start_helper("library", library_child.__file__, tuple(folders), subcommand=_SUBCOMMAND)


def _no_file() -> str:
    return ""


class LibraryProcess:
    """One for the engine. Several requests stream at once; the process ends `idle_s` after the last one.

    `ca_file` gives the setting of that name. The process has to say within `leave_s` that it has left a stream:
    otherwise it hangs, and is ended. One that dies is replaced at once, unless it has lived for less than `stable_s`.
    """

    def __init__(
        self,
        ca_file: Callable[[], str] = _no_file,
        idle_s: float = IDLE_S,
        leave_s: float = LEAVE_S,
        stable_s: float = STABLE_S,
        start: Callable[[], Awaitable[Helper]] = start_library,
    ) -> None:
        self._ca_file = ca_file
        self._idle_s = idle_s
        self._leave_s = leave_s
        self._stable_s = stable_s
        self._start_helper = start
        self._connection: _Connection | None = None
        self._starting: asyncio.Task[_Connection] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._practised: set[bytes] = set()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The id of the process, while it runs."""
        return self._connection.helper.pid if self._connection is not None else None

    def prepare(self, practice: bytes) -> None:
        """Start the process ahead of a request, in the background.

        `practice` are the arguments of a request that is never sent: what it needs is imported and built.
        """
        if self._is_closed:
            return
        self._practised.add(practice)
        if self._connection is not None:
            self._connection.practise(practice)
            self._touch()
        else:
            self._started()

    async def chunks(
        self, arguments: bytes, watch: Deadline, limit_s: Callable[[], float]
    ) -> AsyncGenerator[bytes, None]:
        """Stream one completion: each chunk as JSON in OpenAI's format. `arguments` are JSON.

        Raises `LibraryFailure`, `LibraryEnded`, `LibraryUnusable`, and the exceptions of the deadline; the request is
        closed whenever the generator is left.
        """
        async with watch.within(_START_LIMIT_S):
            connection = await self._ready()
        try:
            connection.trust(self._ca_file())
            with connection.opened(arguments) as inbox:
                self._stop_idle()
                while True:
                    async with watch.within(limit_s()):
                        await inbox.wait()
                    taken = 0
                    while inbox.chunks:
                        chunk = inbox.chunks.popleft()
                        taken += len(chunk)
                        yield chunk
                    if inbox.has_ended and not inbox.chunks:
                        break
                    inbox.confirm(taken)
            if inbox.failure is not None:
                raise inbox.failure
        finally:
            self._touch()

    async def close(self) -> None:
        """End the process; its streams fail."""
        self._is_closed = True
        self._stop_idle()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait((self._starting,))
        self._end()
        if self._ending:
            await asyncio.wait(self._ending)

    async def _ready(self) -> "_Connection":
        """Return the connection to a process with the library. A cancelled call does not stop one that starts."""
        if self._is_closed:
            raise LibraryEnded
        self._stop_idle()
        return self._connection or await asyncio.shield(self._started())

    def _started(self) -> "asyncio.Task[_Connection]":
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start(), name="start of litellm")
            self._starting.add_done_callback(self._on_started)
        return self._starting

    async def _start(self) -> "_Connection":
        if self._ending:  # its memory first
            await asyncio.wait(self._ending)
        try:
            helper = await self._start_helper()
        except (OSError, ValueError) as error:
            raise LibraryEnded from error
        connection = _Connection(helper, self._leave_s, self._on_lost)
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: connection, sock=helper.connection)
            async with asyncio.timeout(_START_LIMIT_S):
                await connection.ready
        except BaseException as error:
            connection.close()
            helper.connection.close()
            await helper.end()
            if isinstance(error, TimeoutError):
                raise LibraryEnded from error
            raise
        return connection

    def _on_started(self, starting: "asyncio.Task[_Connection]") -> None:
        self._starting = None
        if starting.cancelled():
            return
        error = starting.exception()
        if error is not None:
            _logger.warning("litellm did not start: %s %s", type(error).__name__, error)
            return
        self._connection = starting.result()
        self._connection.trust(self._ca_file())
        for practice in self._practised:
            self._connection.practise(practice)
        self._touch()

    def _on_lost(self, connection: "_Connection") -> None:
        """Handle the end of the process, whatever ended it."""
        if connection is not self._connection:
            return
        _logger.warning("the process of litellm has ended")
        self._end()
        if connection.age_s >= self._stable_s and not self._is_closed:
            self._started()

    def _touch(self) -> None:
        """Begin to count the time without use, if there is no stream."""
        self._stop_idle()
        if self._connection is not None and not self._connection.is_busy and not self._is_closed:
            self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._end)

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _end(self) -> None:
        self._stop_idle()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.close()
        ending = asyncio.get_running_loop().create_task(connection.helper.end(), name="end of litellm")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


class _Inbox:
    """The events of one stream that were not taken yet."""

    def __init__(self, confirm: Callable[[int], None]) -> None:
        self.chunks: deque[bytes] = deque()
        self.has_ended = False
        self.failure: Exception | None = None
        self.confirm = confirm
        self._has_news = asyncio.Event()

    def put(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self._has_news.set()

    def end(self, failure: Exception | None) -> None:
        self.has_ended, self.failure = True, failure
        self._has_news.set()

    async def wait(self) -> None:
        if not self.chunks and not self.has_ended:
            self._has_news.clear()
            await self._has_news.wait()


class _Connection(asyncio.Protocol):
    """The socket of one process."""

    def __init__(self, helper: Helper, leave_s: float, on_lost: "Callable[[_Connection], None]") -> None:
        self.helper = helper
        self._leave_s = leave_s
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_lost = on_lost
        self._began = time.monotonic()
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._inboxes: dict[int, _Inbox] = {}
        self._leaving: dict[int, asyncio.TimerHandle] = {}
        self._count = 0
        self._ca_file = ""

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_busy(self) -> bool:
        return bool(self._inboxes)

    @contextmanager
    def opened(self, arguments: bytes) -> Generator[_Inbox]:
        """Send a request, and leave it at the end of the block if it still runs."""
        self._count += 1
        number = self._count
        inbox = self._inboxes[number] = _Inbox(lambda count: self._send(number, b"t", _COUNT.pack(count)))
        if self._transport is None:
            inbox.end(LibraryEnded())
        self._send(number, b"r", arguments)
        try:
            yield inbox
        finally:
            del self._inboxes[number]
            if not inbox.has_ended:
                self._send(number, b"x", b"")
                loop = asyncio.get_running_loop()
                self._leaving[number] = loop.call_later(self._leave_s, self._on_hang)

    def trust(self, ca_file: str) -> None:
        if ca_file != self._ca_file:
            self._ca_file = ca_file
            self._send(0, b"a", ca_file.encode())

    def practise(self, arguments: bytes) -> None:
        self._send(0, b"p", arguments)

    def close(self) -> None:
        """Close without the callback of a lost connection; all streams end."""
        self._on_lost = _ignore
        self._lose()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        start = 0
        while len(self._received) - start >= _HEAD.size:
            size, number, kind = _HEAD.unpack_from(self._received, start)
            end = start + _HEAD.size + size
            if size > _MAX_FRAME_BYTES:
                self._lose()
                return
            if len(self._received) < end:
                break
            self._take(number, kind, bytes(self._received[start + _HEAD.size : end]))
            start = end
        del self._received[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()

    def _take(self, number: int, kind: bytes, data: bytes) -> None:
        if kind == b"i" and not self.ready.done():
            if data:
                _logger.warning("litellm cannot be loaded: %s", msgspec.json.decode(data, type=str))
                self.ready.set_exception(LibraryUnusable("cannot be loaded; the log says why. Install Errand again."))
            else:
                self.ready.set_result(None)
        elif kind == b"e":
            if (timer := self._leaving.pop(number, None)) is not None:
                timer.cancel()
            if (inbox := self._inboxes.get(number)) is not None:
                inbox.end(LibraryFailure(msgspec.json.decode(data, type=FailureReport)) if data else None)
        elif kind == b"c" and (inbox := self._inboxes.get(number)) is not None:
            inbox.put(data)

    def _send(self, number: int, kind: bytes, data: bytes) -> None:
        if self._transport is not None:
            self._transport.writelines((_HEAD.pack(len(data), number, kind), data))

    def _on_hang(self) -> None:
        _logger.warning("the process of litellm does not answer and is ended")
        self._lose()

    def _lose(self) -> None:
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        if not self.ready.done():
            self.ready.set_exception(LibraryEnded())
            self.ready.exception()  # nobody may wait for it any more
        for timer in self._leaving.values():
            timer.cancel()
        self._leaving.clear()
        for inbox in self._inboxes.values():
            if not inbox.has_ended:
                inbox.end(LibraryEnded())
        on_lost, self._on_lost = self._on_lost, _ignore
        on_lost(self)


def _ignore(connection: _Connection) -> None:
    pass

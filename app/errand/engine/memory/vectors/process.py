"""A store of vectors in a process of its own, which starts with the first call: what all such stores have in common.

The process gets length-prefixed JSON on a socket, answered in order. Its first message says what to open.
"""

import asyncio
import base64
import signal
import struct
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import msgspec

from errand.engine.memory.vectors.base import (
    VectorFilter,
    VectorHit,
    VectorPoint,
    VectorsError,
    VectorsUnavailable,
    check_point,
    check_vector,
    conditions,
    id_of,
    ids_of,
    nearest_entries,
    numbers_of,
    surplus_ids,
)
from errand.engine.tools.context import Vector
from errand.engine.tools.processes.helper import HelperProcess, start_helper
from errand.engine.tools.processes.termination import ProcessSweep
from errand.text.printable import reason

IDLE_S = 300.0
_BATCH = 64
_IDS = 10_000
_OPENING_S = 30.0
_CALL_S = 30.0
_OPTIMISE_S = 900.0
_CLOSING_S = 3.0
_MAX_WAITING_CALLS = 256
_MAX_ANSWER_BYTES = 4 * 1024 * 1024
# How a process ends that reads a damaged file. SIGBUS has another number on macOS.
_CRASHES = tuple(-number for number in (signal.SIGILL, signal.SIGABRT, signal.SIGFPE, signal.SIGSEGV, 7, 10))


class StoreAnswer(msgspec.Struct, frozen=True):
    """An answer; `kind` names an error, empty if there is none."""

    kind: str = ""
    error: str = ""
    hits: tuple[tuple[int, float], ...] = ()
    ids: tuple[int, ...] = ()
    following: int | None = None
    count: int = 0


@dataclass(frozen=True, slots=True)
class StartedProcess:
    """A process with its socket; `stderr` holds the end of what it wrote on its standard error."""

    helper: HelperProcess
    stderr: deque[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class ProcessVectors(ABC):
    """A `VectorStore` in a process, which ends `idle_s` after the last call."""

    def __init__(self, dimensions: int, model: str, idle_s: float = IDLE_S, call_s: float = _CALL_S) -> None:
        self._dimensions = dimensions
        self._model = model
        self._idle_s = idle_s
        self._call_s = call_s
        self._process: StoreProcess | None = None
        self._lock = asyncio.Lock()
        self._opening: asyncio.Task[StoreProcess] | None = None
        self._idle: asyncio.Task[None] | None = None
        self._closed = False

    @abstractmethod
    async def start(self) -> StartedProcess:
        """Start the process. Raises a `VectorsError`."""

    @abstractmethod
    def opening_request(self) -> dict[str, object]:
        """Return the first message."""

    @abstractmethod
    def refusal(self, answer: StoreAnswer) -> VectorsError:
        """Return the error that an answer of the process stands for."""

    @property
    def pid(self) -> int | None:
        """The id of the process, while it runs."""
        return None if self._process is None or self._process.has_ended else self._process.pid

    async def upsert(self, points: Sequence[VectorPoint]) -> None:
        for point in points:
            check_point(point, self._dimensions)
        remaining = iter(points)
        while batch := tuple(islice(remaining, _BATCH)):
            await self._ask({"op": "upsert", "points": [_stored(point) for point in batch]})
        await self._delete(surplus_ids(points))
        if points:
            await self._ask({"op": "flush"})

    async def search(self, vector: Vector, limit: int, where: VectorFilter | None = None) -> tuple[VectorHit, ...]:
        check_vector(vector, self._dimensions)
        request = {"op": "search", "vector": _packed(vector), "where": conditions(where)}

        async def nearest(amount: int) -> Sequence[tuple[int, float]]:
            return (await self._ask({**request, "limit": amount})).hits

        return await nearest_entries(limit, nearest)

    async def delete(self, numbers: Collection[int]) -> None:
        await self._delete(ids_of(numbers))

    async def numbers(self) -> frozenset[int]:
        entry_numbers: set[int] = set()
        following: int | None = 0
        while following is not None:
            answer = await self._ask({"op": "ids", "start": following, "limit": _IDS})
            entry_numbers.update(numbers_of(answer.ids))
            following = answer.following
        return frozenset(entry_numbers)

    async def count(self) -> int:
        return (await self._ask({"op": "count"})).count

    async def optimise(self) -> None:
        await self._ask({"op": "optimise"}, _OPTIMISE_S)

    async def purge(self) -> None:
        await self._ask({"op": "purge"}, _OPTIMISE_S)

    async def use(self, dimensions: int, model: str) -> None:
        async with self._lock:
            await self._end()
            self._dimensions, self._model = dimensions, model

    async def clear(self) -> None:
        async with self._lock:
            await self._end()
            await self._opened(clear=True)

    async def close(self) -> None:
        self._closed = True
        self._stop_idle()
        async with self._lock:
            await self._end()

    async def _delete(self, ids: Iterable[int]) -> None:
        remaining = iter(ids)
        while batch := tuple(islice(remaining, _IDS)):
            await self._ask({"op": "delete", "ids": batch})

    async def _ask(self, request: dict[str, object], timeout_s: float | None = None) -> StoreAnswer:
        process = await self._ready()
        self._stop_idle()
        try:
            return await process.ask(request, timeout_s or self._call_s)
        finally:
            if not process.is_busy and not self._closed:
                self._stop_idle()
                self._idle = asyncio.get_running_loop().create_task(self._end_when_idle())

    async def _ready(self) -> "StoreProcess":
        """Return the process with the index open. One that is being started goes on when the call is cancelled."""
        async with self._lock:
            if self._process is not None and self._process.has_ended:
                await self._end()
            return self._process or await self._opened(clear=False)

    async def _opened(self, *, clear: bool) -> "StoreProcess":
        if self._closed:
            raise VectorsUnavailable("The index of vectors has been closed.")
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open(clear=clear))
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        finally:
            if opening.done():
                self._opening = None

    async def _open(self, *, clear: bool) -> "StoreProcess":
        process = StoreProcess(await self.start(), self.refusal)
        try:
            await process.ask({**self.opening_request(), "clear": clear}, _OPENING_S)
        except VectorsError as error:
            await process.end()
            if process.was_late:
                raise self.refusal(StoreAnswer("crash", "it did not open in time")) from error
            raise
        self._process = process
        return process

    async def _end(self) -> None:
        if self._opening is not None:  # its caller was cancelled
            with suppress(VectorsError):
                await asyncio.shield(self._opening)
            self._opening = None
        if self._process is not None:
            await self._process.end()
            self._process = None

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(self._idle_s)
        async with self._lock:
            if self._process is not None and not self._process.is_busy:
                self._idle = None
                await self._end()

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


class StoreProcess:
    """The process of a store. Answers come in the order of the questions, so a cancelled question needs no message."""

    def __init__(
        self,
        started: StartedProcess,
        refusal: "Callable[[StoreAnswer], VectorsError]",
    ) -> None:
        self.was_late = False
        self._is_ending = False
        self._refusal = refusal
        self._helper = started.helper
        self._exit = started.helper.child.exit
        self._stderr = started.stderr
        self._reader = started.reader
        self._writer = started.writer
        self._waiting: deque[asyncio.Future[StoreAnswer]] = deque()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @property
    def pid(self) -> int:
        return self._helper.pid

    @property
    def has_ended(self) -> bool:
        return self._is_ending or self._reading.done() or self._exit.done()

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    async def ask(self, request: dict[str, object], timeout_s: float) -> StoreAnswer:
        if len(self._waiting) >= _MAX_WAITING_CALLS:
            raise VectorsUnavailable("The index of vectors is busy. Try again later.")
        if self.has_ended:
            raise VectorsUnavailable("The process of the index of vectors has ended. Try again.")
        data = msgspec.json.encode(request)
        answered = asyncio.get_running_loop().create_future()
        self._waiting.append(answered)
        self._writer.write(struct.pack(">I", len(data)) + data)
        try:
            async with asyncio.timeout(timeout_s):
                with suppress(ConnectionError):
                    await self._writer.drain()
                answer = await answered
        except TimeoutError as error:
            self.was_late = True
            await ProcessSweep(self._helper.owner).end()
            raise VectorsUnavailable(f"The index of vectors did not answer in {timeout_s:.0f} s.") from error
        if answer.kind:
            raise self._refusal(answer)
        return answer

    async def end(self) -> None:
        """Let it write what it holds and end; kill it if it takes too long."""
        self._is_ending = True
        self._writer.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._exit), _CLOSING_S)
        await self._helper.end()
        await self._reading

    async def _read(self) -> None:
        try:
            while True:
                (size,) = struct.unpack(">I", await self._reader.readexactly(4))
                if size > _MAX_ANSWER_BYTES:
                    break
                answer = msgspec.json.decode(await self._reader.readexactly(size), type=StoreAnswer)
                answered = self._waiting.popleft()
                if not answered.done():
                    answered.set_result(answer)
        except (asyncio.IncompleteReadError, msgspec.DecodeError, OSError):
            pass
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._exit), _CLOSING_S)
        ended = self._exit.result() if self._exit.done() else 0
        for answered in self._waiting:
            if not answered.done():
                answered.set_exception(
                    self._crash(ended, b"".join(self._stderr).decode(errors="replace")[-300:].strip())
                )
        self._waiting.clear()

    def _crash(self, code: int, stderr: str) -> VectorsError:
        """`stderr` is the end of what the process wrote on its standard error."""
        how = f"its process ended with {code}{f', {stderr}' if stderr else ''}"
        if code in _CRASHES:
            return self._refusal(StoreAnswer("crash", how))
        return VectorsUnavailable(f"The index of vectors does not answer: {how}. Try again.")


async def started_process(kind: str, program: str, arguments: Sequence[str] = ()) -> StartedProcess:
    """Start a process, which waits for what to open. It has no sandbox: it runs only our code and a library."""
    stderr: deque[bytes] = deque(maxlen=4)
    try:
        helper = await start_helper(kind, program, arguments, on_stderr=stderr.append)
    except (OSError, ValueError) as error:
        raise VectorsUnavailable(f"The index of vectors could not be started: {reason(error)}") from error
    reader, writer = await asyncio.open_connection(sock=helper.connection)
    return StartedProcess(helper, stderr, reader, writer)


def _stored(point: VectorPoint) -> dict[str, object]:
    return {
        "id": id_of(point),
        "vector": _packed(point.vector),
        "conversation": point.conversation_id,
        "folder": point.folder,
        "kind": point.kind,
        "at": point.at,
    }


def _packed(vector: Vector) -> str:
    return base64.b64encode(array("f", vector).tobytes()).decode()

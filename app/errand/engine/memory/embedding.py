"""Embeds texts: a vector for each, by a model in a process that starts with the first texts."""

import asyncio
import re
import struct
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory import embedding_child
from errand.engine.memory.embedding_models import (
    MODEL_SOURCE,
    NOT_INSTALLED,
    SIMPLE,
    ModelKind,
    kind_of,
    missing_files,
    package_folder,
)
from errand.engine.tools.context import Vector
from errand.engine.tools.processes.helper import HelperProcess, start_helper
from errand.engine.tools.results import ToolError
from errand.text.printable import reason

IDLE_S = 60.0
_TIMEOUT_S = 60.0
# The model reads 256 tokens, about 1,000 characters of English; text that no tokenizer would reach is not sent.
_MAX_TEXT_LENGTH = 4_096
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")
# Texts are sent in batches that take about 0.1 s: a query waits for one at most. Batches do not speed up long texts.
_BATCH, _BATCH_BYTES = 8, 1_024
# While throttled, background texts get a fifth of the time.
_REST = 4.0
_MAX_ANSWER_BYTES = 16 * 1024 * 1024
# The library downloads nothing: without a network it would try for 39 s.
_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
_NO_ANSWER = (asyncio.IncompleteReadError, msgspec.DecodeError, OSError)


class _Answer(msgspec.Struct, frozen=True):
    ready: bool = False
    vectors: tuple[Vector, ...] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Process:
    helper: HelperProcess
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    kind: ModelKind
    folder: Path


class Embedder:
    """The embedder of the engine; calls take turns, batch by batch. The process ends `idle_s` after its last use.

    `folder` returns where the model of the person is now; `simple_model` is the folder of the one that serves without
    it. While `throttled` (tasks run), background texts leave the processor free most of the time.
    """

    def __init__(
        self,
        folder: Callable[[], Path],
        idle_s: float = IDLE_S,
        simple_model: Path | None = None,
    ) -> None:
        self._folder = folder
        self._simple_model = simple_model
        self._idle_s = idle_s
        self.throttled = False
        self._process: _Process | None = None
        self._lock = asyncio.Lock()
        self._idle: asyncio.Task[None] | None = None
        self._is_closed = False
        self._urgent = 0
        self._none_urgent = asyncio.Event()
        self._none_urgent.set()

    @property
    def pid(self) -> int | None:
        return self._process.helper.pid if self._process is not None else None

    @property
    def has_simple_model(self) -> bool:
        return self._simple_model is not None

    @property
    def kind(self) -> ModelKind | None:
        """The best model that is there now: the files of a folder may come and go. None without any."""
        folder = self._folder()
        if package_folder() is not None and not missing_files(folder):
            return kind_of(folder)
        return SIMPLE if self._simple_model is not None else None

    async def embed(
        self, texts: tuple[str, ...], cancel: CancelSignal, background: bool = False, kind: ModelKind | None = None
    ) -> tuple[Vector, ...]:
        """Return a vector of length 1 for each text, by the best model or that of a kind. Vectors of two kinds cannot
        be compared. Of a long text, the first tokens count.

        With `background`, all other calls go first, and `throttled` applies. Raises `ToolError`, which says how to get
        what is missing; also when `cancel` is set, which ends the process.
        """
        chosen = kind or self.kind or kind_of(self._folder())
        work = asyncio.get_running_loop().create_task(self._embed_all(texts, chosen, background))
        unsubscribe = cancel.subscribe(lambda: _cancel(work))
        try:
            return await work
        except asyncio.CancelledError as error:
            if cancel.is_set:
                raise ToolError("Operation aborted") from error
            raise
        finally:
            unsubscribe()

    async def close(self) -> None:
        """End the process. Calls that wait or come later fail."""
        self._is_closed = True
        self._stop_idle()
        await self._end()
        async with self._lock:  # by then, calls that use or end the process have noticed that it is gone
            self._stop_idle()

    async def _embed_all(self, texts: tuple[str, ...], kind: ModelKind, background: bool) -> tuple[Vector, ...]:
        """Return the vectors. The shortest texts go first: those of a batch are padded to its longest."""
        shortened = [_encoded_start(text) for text in texts]
        vectors_by_number: dict[int, Vector] = {}
        with nullcontext() if background else self._urgently():
            for batch in _batches([len(data) for data in shortened]):
                if background:
                    await self._none_urgent.wait()
                began = time.monotonic()
                vectors = await self._embed(tuple(shortened[number].decode() for number in batch), kind)
                vectors_by_number.update(zip(batch, vectors, strict=True))
                if background and self.throttled and len(vectors_by_number) < len(texts):
                    await asyncio.sleep(_REST * (time.monotonic() - began))
        return tuple(vectors_by_number[number] for number in range(len(texts)))

    @contextmanager
    def _urgently(self) -> Generator[None]:
        self._urgent += 1
        self._none_urgent.clear()
        try:
            yield
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._none_urgent.set()

    async def _embed(self, texts: tuple[str, ...], kind: ModelKind) -> tuple[Vector, ...]:
        async with self._lock:
            if self._is_closed:
                raise ToolError("The engine ends: no more texts are embedded.")
            self._stop_idle()
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    answer = await self._ask_again_once(texts, kind)
            except TimeoutError as error:
                await self._end()
                raise ToolError(
                    f"The process that embeds texts gave no answer in {_TIMEOUT_S:.0f} s. Try again when the machine "
                    "is less busy."
                ) from error
            except _NO_ANSWER as error:
                await self._end()
                raise ToolError(
                    "The process that embeds texts has ended. The machine may lack memory: close other programs."
                ) from error
            except BaseException:
                await self._end()
                raise
            self._idle = asyncio.get_running_loop().create_task(self._end_when_idle())
        if answer.vectors is None:
            raise ToolError(f"The texts could not be embedded: {answer.error}")
        if len(answer.vectors) != len(texts) or any(len(vector) != kind.dimensions for vector in answer.vectors):
            raise ToolError(
                f"The model in {self._folder()} is another one than all-MiniLM-L6-v2: get it from {MODEL_SOURCE}."
            )
        return answer.vectors

    async def _ask_again_once(self, texts: tuple[str, ...], kind: ModelKind) -> _Answer:
        """Ask, and once more if the process of earlier calls has ended meanwhile, for instance for lack of memory."""
        was_there = self._process is not None
        try:
            return await self._ask(texts, kind)
        except _NO_ANSWER:
            if not was_there:
                raise
            await self._end()
            return await self._ask(texts, kind)

    async def _ask(self, texts: tuple[str, ...], kind: ModelKind) -> _Answer:
        process = await self._ready(kind)
        data = msgspec.json.encode(texts)
        process.writer.write(struct.pack(">I", len(data)) + data)
        await process.writer.drain()
        return await _read(process.reader)

    async def _ready(self, kind: ModelKind) -> _Process:
        process = self._process
        folder = self._folder() if kind != SIMPLE else self._simple_model
        if folder is None:
            raise ToolError("The simple embedding model is not installed: install Errand again.", "no embedding model")
        if (
            process is not None
            and not process.helper.child.exit.done()
            and (process.kind, process.folder) == (kind, folder)
        ):
            return process
        await self._end()
        packages = folder.parent if kind == SIMPLE else await asyncio.to_thread(_checked, folder, kind)
        process = self._process = await _started(folder, packages, kind)
        answer = await _read(process.reader)
        if not answer.ready:
            raise ToolError(f"The model in {folder} cannot be loaded: {answer.error}")
        return process

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(self._idle_s)
        async with self._lock:
            self._idle = None
            await self._end()

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.writer.close()
        await process.helper.end()


def _cancel(work: "asyncio.Task[tuple[Vector, ...]]") -> None:
    work.cancel()


def _encoded_start(text: str) -> bytes:
    """Return the beginning of a text as it is sent: characters that are not valid in UTF-8 are replaced."""
    return _WHITE_SPACE.sub(" ", text[: 4 * _MAX_TEXT_LENGTH])[:_MAX_TEXT_LENGTH].encode(errors="replace")


def _batches(sizes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the numbers of texts with these sizes, in batches of like sizes, the smallest first."""
    batch: list[int] = []
    for number in sorted(range(len(sizes)), key=lambda number: sizes[number]):
        if batch and (len(batch) == _BATCH or (len(batch) + 1) * sizes[number] > _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _checked(folder: Path, kind: ModelKind) -> Path:
    """Return where the package lies that runs the model of this kind in a folder.

    Raises `ToolError` that says how to get what is missing.
    """
    packages = package_folder()
    if packages is None:
        raise ToolError(NOT_INSTALLED, "fastembed is not installed")
    if not folder.is_dir():
        raise ToolError(f"There is no folder {folder} for the embedding model.", "no embedding model")
    if missing := missing_files(folder):
        raise ToolError(
            f"There is no embedding model in {folder}: {', '.join(missing)} is missing. The person can download it: "
            "errand memory download. Or set `embedding_folder` to where the files of "
            f"{MODEL_SOURCE} are.",
            "no embedding model",
        )
    if kind_of(folder) != kind:
        raise ToolError(f"The folder {folder} has another embedding model now. Try again.", "another embedding model")
    return packages


async def _started(folder: Path, packages: Path, kind: ModelKind) -> _Process:
    """Return the process, whose model is being loaded. It runs our code and the library alone, so it has no sandbox."""
    arguments = (str(folder), str(packages), "" if kind == SIMPLE else kind.name, str(kind.tokens), *kind.files)
    try:
        helper = await start_helper("embedding", embedding_child.__file__, arguments, variables=_OFFLINE)
    except (OSError, ValueError) as error:
        raise ToolError(f"The process that embeds texts could not be started: {reason(error)}") from error
    reader, writer = await asyncio.open_connection(sock=helper.connection)
    return _Process(helper, reader, writer, kind, folder)


async def _read(reader: asyncio.StreamReader) -> _Answer:
    (size,) = struct.unpack(">I", await reader.readexactly(4))
    if size > _MAX_ANSWER_BYTES:
        raise ToolError("The process that embeds texts answered with too much.")
    return msgspec.json.decode(await reader.readexactly(size), type=_Answer)

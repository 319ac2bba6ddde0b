"""Embeds texts: 384 numbers for each, by a model in a process that starts with the first texts."""

import asyncio
import re
import struct
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory import embedding_child
from errand.engine.tools.context import Vector
from errand.engine.tools.processes.helper import HelperProcess, start_helper
from errand.engine.tools.results import ToolError
from errand.system.paths import Paths
from errand.text.printable import reason

DIMENSIONS = 384
IDLE_S = 60.0
MODEL_NAME = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "fastembed"
MODEL_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json")
MODEL_REPOSITORY = "Qdrant/all-MiniLM-L6-v2-onnx"
MODEL_SOURCE = f"https://huggingface.co/{MODEL_REPOSITORY}"


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A model by its name in the library; of its `files` the first is the graph. Of a text it reads `tokens`."""

    name: str
    files: tuple[str, ...]
    tokens: int


ENGLISH = ModelKind(MODEL_NAME, MODEL_FILES, 256)
# Of https://huggingface.co/Qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q: about 50 languages, 220 MB.
MULTILINGUAL = ModelKind(
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    ("model_optimized.onnx", "tokenizer.json", "tokenizer_config.json"),
    128,
)
NOT_INSTALLED = (
    "The package fastembed is not installed. It comes with Errand on Linux (x86-64, ARM64) and macOS (Apple silicon) "
    "with Python 3.11 to 3.14: install Errand again there."
)
_TIMEOUT_S = 60.0
# The model reads 256 tokens, about 1,000 characters of English; text that no tokenizer would reach is not sent.
_MAX_TEXT_LENGTH = 4_096
# The entry `location` of an initialiser whose data is in another file, in ONNX: its length and its name.
_EXTERNAL_DATA = re.compile(rb"\n\x08location\x12(.)([ -~]+)", re.DOTALL)
_MAX_BARE_GRAPH_BYTES = 4 * 1024 * 1024
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
    folder: Path


class Embedder:
    """The embedder of the engine; calls take turns, batch by batch. The process ends `idle_s` after its last use.

    `folder` returns where the model is now, which is of one `kind` as long as the engine runs: vectors of two models
    cannot be compared. While `throttled` (tasks run), background texts leave the processor free
    most of the time.
    """

    def __init__(self, folder: Callable[[], Path], idle_s: float = IDLE_S, kind: ModelKind = ENGLISH) -> None:
        self.kind = kind
        self._folder = folder
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

    async def embed(self, texts: tuple[str, ...], cancel: CancelSignal, background: bool = False) -> tuple[Vector, ...]:
        """Return a vector of 384 numbers for each text, of length 1. Of a long text, the first 256 tokens count.

        With `background`, all other calls go first, and `throttled` applies. Raises `ToolError`, which says how to get
        what is missing; also when `cancel` is set, which ends the process.
        """
        work = asyncio.get_running_loop().create_task(self._embed_all(texts, background))
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

    async def _embed_all(self, texts: tuple[str, ...], background: bool) -> tuple[Vector, ...]:
        """Return the vectors. The shortest texts go first: those of a batch are padded to its longest."""
        shortened = [_encoded_start(text) for text in texts]
        vectors_by_number: dict[int, Vector] = {}
        with nullcontext() if background else self._urgently():
            for batch in _batches([len(data) for data in shortened]):
                if background:
                    await self._none_urgent.wait()
                began = time.monotonic()
                vectors = await self._embed(tuple(shortened[number].decode() for number in batch))
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

    async def _embed(self, texts: tuple[str, ...]) -> tuple[Vector, ...]:
        async with self._lock:
            if self._is_closed:
                raise ToolError("The engine ends: no more texts are embedded.")
            self._stop_idle()
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    answer = await self._ask_again_once(texts)
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
        if len(answer.vectors) != len(texts) or any(len(vector) != DIMENSIONS for vector in answer.vectors):
            raise ToolError(
                f"The model in {self._folder()} is another one than all-MiniLM-L6-v2: get it from {MODEL_SOURCE}."
            )
        return answer.vectors

    async def _ask_again_once(self, texts: tuple[str, ...]) -> _Answer:
        """Ask, and once more if the process of earlier calls has ended meanwhile, for instance for lack of memory."""
        was_there = self._process is not None
        try:
            return await self._ask(texts)
        except _NO_ANSWER:
            if not was_there:
                raise
            await self._end()
            return await self._ask(texts)

    async def _ask(self, texts: tuple[str, ...]) -> _Answer:
        process = await self._ready()
        data = msgspec.json.encode(texts)
        process.writer.write(struct.pack(">I", len(data)) + data)
        await process.writer.drain()
        return await _read(process.reader)

    async def _ready(self) -> _Process:
        process, folder = self._process, self._folder()
        if process is not None and not process.helper.child.exit.done() and process.folder == folder:
            return process
        await self._end()
        packages = await asyncio.to_thread(_installed, folder)
        if kind_of(folder) != self.kind:
            raise ToolError(
                f"The folder {folder} has another embedding model, {kind_of(folder).name}. It is used when the engine "
                "has started again (errand engine --stop); the vectors are made anew then.",
                "another embedding model",
            )
        process = self._process = await _started(folder, packages, self.kind)
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


def is_installed() -> bool:
    """Return True if the package that runs the model is there."""
    return find_spec(_PACKAGE) is not None


def missing_files(folder: Path) -> list[str]:
    """Return the names of the files that the model in this folder lacks, with those that hold the graph's weights."""
    files = kind_of(folder).files
    missing = [name for name in files if not (folder / name).is_file()]
    if files[0] not in missing:
        missing += [name for name in _weights_files(folder / files[0]) if not (folder / name).is_file()]
    return missing


def kind_of(folder: Path) -> ModelKind:
    """Return the kind of the model in a folder, by the name of its graph; the English one without any."""
    graphs = {kind: (folder / kind.files[0]).is_file() for kind in (ENGLISH, MULTILINGUAL)}
    return MULTILINGUAL if graphs[MULTILINGUAL] and not graphs[ENGLISH] else ENGLISH


def _weights_files(graph: Path) -> list[str]:
    """Return the files beside the graph that hold its weights; none for a graph that holds them itself."""
    try:
        if graph.stat().st_size > _MAX_BARE_GRAPH_BYTES:
            return []
        data = graph.read_bytes()
    except OSError:
        return []
    names = {match[2][: match[1][0]].decode("ascii", "replace") for match in _EXTERNAL_DATA.finditer(data)}
    return sorted(names)


def folder_of_model(setting: str, paths: Paths) -> Path:
    """Return the folder that a person set, else that of the data directory."""
    return Path(setting).expanduser() if setting else paths.embedding


def _installed(folder: Path) -> Path:
    """Return the folder in which the package lies. Raises `ToolError` that says how to get what is missing."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
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
    return Path(spec.origin).parents[1]


async def _started(folder: Path, packages: Path, kind: ModelKind) -> _Process:
    """Return the process, whose model is being loaded. It runs our code and the library alone, so it has no sandbox."""
    arguments = (str(folder), str(packages), kind.name, str(kind.tokens))
    try:
        helper = await start_helper("embedding", embedding_child.__file__, arguments, variables=_OFFLINE)
    except (OSError, ValueError) as error:
        raise ToolError(f"The process that embeds texts could not be started: {reason(error)}") from error
    reader, writer = await asyncio.open_connection(sock=helper.connection)
    return _Process(helper, reader, writer, folder)


async def _read(reader: asyncio.StreamReader) -> _Answer:
    (size,) = struct.unpack(">I", await reader.readexactly(4))
    if size > _MAX_ANSWER_BYTES:
        raise ToolError("The process that embeds texts answered with too much.")
    return msgspec.json.decode(await reader.readexactly(size), type=_Answer)

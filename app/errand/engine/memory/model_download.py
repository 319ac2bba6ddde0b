"""Downloads the embedding model in the background: resumed, checked, and moved into place when it is complete.

It writes only into the data directory. `Embedder` checks for the model when it is used.
"""

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal
from urllib.parse import urlsplit

import msgspec

from errand.engine.core.outgoing import UnusableRoute, proxy_of
from errand.engine.memory.embedding import MODEL_FILES, MODEL_SOURCE, folder_of_model, is_installed
from errand.engine.models.http_pool import HttpPool
from errand.protocol.memory import EmbeddingModel
from errand.system.paths import Paths

if TYPE_CHECKING:
    import aiohttp

_REVISION = "5f1b8cd78bc4fb444dd171e59b18f3a3af89a079"
_CONNECT_S = 10.0
# A cut connection is resumed as long as bytes arrive.
_ATTEMPTS, _PAUSE_S = 10, 1.0
# After a failure, only a person can start it earlier.
_RETRY_AFTER_S = 900.0
_CHUNK = 1024 * 1024
_PROGRESS_S = 0.2
_SPARE_BYTES = 16 * 1024 * 1024
_NOT_INSTALLED = (
    "Memory finds words only: the package fastembed is not installed. Install it into Errand's own Python: "
    "pip install 'errand-desktop[memory]'"
)
_TRUE = ("1", "on", "yes", "true")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file to download, with its size in bytes and its SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str


FILES = (
    ModelFile("config.json", 650, "1b4d8e2a3988377ed8b519a31d8d31025a25f1c5f8606998e8014111438efcd7"),
    ModelFile("special_tokens_map.json", 695, "5d5b662e421ea9fac075174bb0688ee0d9431699900b90662acd44b2a350503a"),
    ModelFile("tokenizer_config.json", 1_433, "bd2e06a5b20fd1b13ca988bedc8763d332d242381b4fbc98f8fead4524158f79"),
    ModelFile("tokenizer.json", 711_661, "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0"),
    ModelFile("model.onnx", 90_387_630, "bbd7b466f6d58e646fdc2bd5fd67b2f5e93c0b687011bd4548c420f7bd46f0c5"),
)


class ModelState(msgspec.Struct, frozen=True):
    """`done` and `total` are bytes, while it is downloading; `reason` says to a person why it failed."""

    status: Literal["missing", "downloading", "ready", "failed"]
    done: int = 0
    total: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The address of the files, without the slash at the end, and time limits. The last file completes the model."""

    url: str = f"{MODEL_SOURCE}/resolve/{_REVISION}"
    files: Sequence[ModelFile] = FILES
    silent_s: float = 30.0
    limit_s: float = 3_600.0


class _Failed(Exception):
    """The reason is for a person."""


class _Interrupted(Exception):
    """The connection ended early; what has arrived is kept."""


class ModelDownload:
    """The download of the engine. `setting` returns the folder that a person set, empty for the data directory."""

    def __init__(
        self, setting: Callable[[], str], paths: Paths, pool: HttpPool, source: ModelSource | None = None
    ) -> None:
        self._setting = setting
        self._paths = paths
        self._pool = pool
        self._source = source or ModelSource()
        self._part = paths.embedding.with_name(paths.embedding.name + ".part")
        self._arrived: dict[str, int] = {}
        self._reason = ""
        self._failed_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[ModelState], None]] = []
        self._notified_at = 0.0

    @property
    def state(self) -> ModelState:
        if self._task is not None:
            total = sum(file.size for file in self._source.files)
            return ModelState("downloading", min(sum(self._arrived.values()), total), total)
        folder = folder_of_model(self._setting(), self._paths)
        if all((folder / name).is_file() for name in MODEL_FILES):
            return ModelState("ready")
        return ModelState("failed", reason=self._reason) if self._reason else ModelState("missing")

    def model(self) -> EmbeddingModel:
        """Return the state for a person, with the folder. Without the package that runs the model there is none."""
        folder = str(folder_of_model(self._setting(), self._paths))
        if not is_installed():
            return EmbeddingModel(status="missing", reason=_NOT_INSTALLED, folder=folder)
        state = self.state
        return EmbeddingModel(
            status=state.status, done=state.done, total=state.total, reason=state.reason, folder=folder
        )

    def subscribe(self, listener: Callable[[ModelState], None]) -> Callable[[], None]:
        """Call `listener` when the state changes, and with the progress a few times a second."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def start(self, by_person: bool = False) -> None:
        """Download what is missing, unless it is there or under way.

        Without `by_person` there is no new try for 15 minutes after a failure, since the machine may be offline; with
        HF_HUB_OFFLINE in the environment there is none at all.
        """
        recently = bool(self._reason) and time.monotonic() - self._failed_at < _RETRY_AFTER_S
        if self.state.status in ("ready", "downloading") or (recently and not by_person):
            return
        self._reason = self._obstacle()
        if self._reason:
            self._failed_at = time.monotonic()
            self._notify()
            return
        self._arrived = {}
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._on_end)
        self._notify()

    async def cancel(self) -> None:
        """End the download, if there is one. What has arrived is kept for the next."""
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _obstacle(self) -> str:
        setting = self._setting()
        if setting:
            return (
                f"The folder {setting} of the setting “Embedding model” lacks files of the model. Put them there, or "
                "leave the setting empty: then the model can be downloaded."
            )
        if os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
            return "HF_HUB_OFFLINE is set, so the embedding model is not downloaded."
        return ""

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self._source.limit_s):
                await self._download()
        except TimeoutError:
            self._reason = (
                f"The model did not arrive within {self._source.limit_s / 60:.0f} minutes. Start it again: it goes on."
            )
        except _Failed as error:
            self._reason = str(error)
        except OSError as error:
            self._reason = f"The embedding model could not be stored in {self._part}: {error.strerror or error}."

    def _on_end(self, _: "asyncio.Task[None]") -> None:
        self._task = None
        self._failed_at = time.monotonic()
        self._notify()

    async def _download(self) -> None:
        await asyncio.to_thread(self._prepare)
        for file in self._source.files:
            await self._fetch(file)
        await asyncio.to_thread(self._put_in_place)

    def _prepare(self) -> None:
        self._part.mkdir(parents=True, exist_ok=True)
        self._arrived = {file.name: _size(self._part / file.name) for file in self._source.files}
        needed = sum(file.size for file in self._source.files) - sum(self._arrived.values()) + _SPARE_BYTES
        if shutil.disk_usage(self._part).free < needed:
            raise _Failed(
                f"The embedding model needs {needed / 1e6:.0f} MB more on the disk of {self._part.parent}. Free some "
                "space, or set the folder “Embedding model” to another disk."
            )

    async def _fetch(self, file: ModelFile) -> None:
        part = self._part / file.name
        for attempt in range(_ATTEMPTS):
            before = self._arrived[file.name]
            try:
                await self._receive(file, part)
                break
            except _Interrupted as error:
                if self._arrived[file.name] <= before or attempt == _ATTEMPTS - 1:
                    raise _Failed(
                        f"{file.name} was cut off ({error}). Start the download again: it goes on."
                    ) from error
                await asyncio.sleep(_PAUSE_S * attempt)
        if self._arrived[file.name] != file.size or await asyncio.to_thread(_sha256, part) != file.sha256:
            part.unlink(missing_ok=True)
            raise _Failed(f"{file.name} from {self._host} is not the file that is expected. It was thrown away.")

    async def _receive(self, file: ModelFile, part: Path) -> None:
        """Get what is left of a file. Raises `_Interrupted` and `_Failed`."""
        import aiohttp

        have = self._arrived[file.name]
        if have == file.size:
            return
        url = f"{self._source.url}/{file.name}"
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if 0 < have < file.size else {})
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=self._source.silent_s)
        try:
            async with self._pool.session.get(
                url, headers=headers, timeout=limits, proxy=proxy_of(url), max_redirects=5
            ) as response:
                self._arrived[file.name] = have = self._begin(file, have, response)
                await self._store(file, part, response, "ab" if have else "wb")
        except UnusableRoute as error:
            raise _Failed(str(error)) from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise _Failed(
                f"{self._host} cannot be reached ({error}). Start the download again when the machine is online, or "
                f"put the files of the model into {self._paths.embedding}."
            ) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _Interrupted(str(error) or type(error).__name__) from error

    def _begin(self, file: ModelFile, have: int, response: "aiohttp.ClientResponse") -> int:
        """Return how many bytes of the file are kept."""
        if response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            resumed_bytes = have
        elif response.status == 200:
            resumed_bytes = 0
        else:
            raise _Failed(f"{self._host} answered HTTP {response.status} for {file.name}. Try again later.")
        length = response.content_length
        if length is not None and resumed_bytes + length != file.size:
            raise _Failed(
                f"{self._host} has another {file.name} than is expected: {resumed_bytes + length:,} bytes instead of "
                f"{file.size:,}. Look for a newer version of Errand."
            )
        return resumed_bytes

    async def _store(
        self, file: ModelFile, part: Path, response: "aiohttp.ClientResponse", mode: Literal["ab", "wb"]
    ) -> None:
        with part.open(mode) as target:
            async for chunk in response.content.iter_chunked(_CHUNK):
                await asyncio.to_thread(target.write, chunk)
                self._arrived[file.name] += len(chunk)
                if self._arrived[file.name] > file.size:
                    break
                if time.monotonic() - self._notified_at > _PROGRESS_S:
                    self._notify()
            await asyncio.to_thread(_to_disk, target)

    def _put_in_place(self) -> None:
        """Move the files, the last one at the end: it makes the model complete."""
        target = self._paths.embedding
        target.mkdir(parents=True, exist_ok=True)
        (target / self._source.files[-1].name).unlink(missing_ok=True)
        for file in self._source.files:
            (self._part / file.name).replace(target / file.name)
        shutil.rmtree(self._part, ignore_errors=True)

    @property
    def _host(self) -> str:
        return urlsplit(self._source.url).netloc

    def _notify(self) -> None:
        self._notified_at = time.monotonic()
        state = self.state
        for listener in tuple(self._listeners):
            listener(state)


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())

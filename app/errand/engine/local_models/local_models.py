"""The models of this machine: what there is, their downloads and removal, and the server that runs one of them."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from errand.engine.background import Background
from errand.engine.core.errors import Conflict, InvalidParams, NotFound
from errand.engine.core.setting_values import SettingValues
from errand.engine.download import Downloader, DownloadFailed, RemoteFile, received_bytes
from errand.engine.local_models.catalogue import CATALOGUE, CatalogueModel
from errand.engine.local_models.entries import ModelEntry, ModelsHere, look_for_models, recommended_model
from errand.engine.local_models.machine import Machine, this_machine
from errand.engine.local_models.server_process import RunningServer, ServerOptions, start_server
from errand.engine.local_models.server_program import ServerProgram, archive_for
from errand.engine.local_models.server_queue import ServerQueue
from errand.engine.models.catalog import model_facts
from errand.engine.models.servers.local_servers import LocalModelFailed
from errand.engine.models.servers.served_models import ServedModel, ServerAddress, ServerStatus
from errand.protocol.local_models import LocalModel, LocalModelListResult, LocalServerProgram
from errand.system.paths import Paths

if TYPE_CHECKING:
    from errand.engine.models.http_pool import HttpPool

_PROVIDER = "local/"
# Of a limit on what it may allocate, above what it should take.
_LIMIT_MARGIN_BYTES = 1_000_000_000
_SECONDS_PER_MINUTE = 60
_OTHER_WAY = (
    "give the address of a mirror in the setting model_hub, or put a GGUF file into the folder of the setting "
    "local_models_folder"
)


@dataclass(slots=True)
class _Download:
    """A download of this engine, under way or failed."""

    state: Literal["preparing", "downloading", "checking", "failed"]
    received_bytes: int = 0
    problem: str = ""
    advice: str = ""
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)


class LocalModels:
    """Answers for `local/…` models. `publish` is called with a model whenever one changes.

    `home` has the files of other programs, `machine` says what there is; both are for tests to replace.
    """

    def __init__(
        self,
        paths: Paths,
        settings: Callable[[], SettingValues],
        publish: Callable[[LocalModel], object],
        background: Background,
        *,
        home: Path,
        catalogue: tuple[CatalogueModel, ...] | None = None,
        machine: Callable[[], Machine] = this_machine,
    ) -> None:
        self._folder = paths.local_models
        self._settings = settings
        self._publish = publish
        self._background = background
        self._home = home
        self._catalogue = CATALOGUE if catalogue is None else catalogue
        self._look_at_machine = machine
        self._machine = Machine(0, 1, has_gpu=False)
        self._program_path: Path | None = None
        self._pool: HttpPool | None = None
        self._downloader = Downloader(self._connections)
        self._program = ServerProgram(self._folder / "server", self._downloader, archive_for(has_gpu=False))
        self._entries: dict[str, ModelEntry] = {}
        self._installed: frozenset[str] = frozenset()
        self._downloads: dict[str, _Download] = {}
        self._speeds: dict[str, float] = {}
        # Until a server crashes when it arranges weights for the processor.
        self._repacks = True
        self._queue = ServerQueue(
            self._start, lambda: settings().local_model_idle_minutes * _SECONDS_PER_MINUTE, self._changed
        )

    @property
    def running(self) -> str:
        """The name of the model in memory; empty for none."""
        return self._queue.running

    async def close(self) -> None:
        """End the server; downloads keep what has come."""
        downloads = [download.task for download in self._downloads.values() if download.task is not None]
        for task in downloads:
            task.cancel()
        if downloads:
            await asyncio.wait(downloads)
        await self._queue.close()
        if self._pool is not None:
            await self._pool.close()

    async def names(self) -> tuple[str, ...]:
        """Return the models that can run, the one to prefer first: the best of our own that fits, then all others."""
        await self._refresh()
        if self._program_path is None:
            return ()
        ready = [entry for entry in self._entries.values() if entry.name in self._installed]
        ours = [entry for entry in reversed(ready) if entry.catalogue is not None]
        others = [entry for entry in ready if entry.catalogue is None]
        return tuple(entry.name for entry in sorted((*ours, *others), key=lambda entry: not self._fits(entry)))

    async def status(self, name: str) -> ServerStatus | None:
        """Return what there is to know of an installed model, and begin to load it if no other one is in use."""
        await self._refresh()
        status = self.known_status(name)
        if status is None or self._program_path is None:
            return None
        return replace(status, is_loading=self._queue.is_loading(name))

    def known_status(self, name: str) -> ServerStatus | None:
        entry = self._entries.get(name)
        if entry is None or name not in self._installed:
            return None
        return ServerStatus("llama_cpp", (self._served(entry),))

    def context_tokens(self, name: str) -> int | None:
        entry = self._entries.get(name)
        return None if entry is None else self._context_of(entry)

    def note_speed(self, name: str, tokens_per_second: float) -> None:
        self._speeds[name] = tokens_per_second

    @asynccontextmanager
    async def serve(self, name: str) -> AsyncGenerator[ServerAddress]:
        """Keep the model's server for the block. Raises `LocalModelFailed`."""
        async with self._queue.use(name) as server:
            yield ServerAddress(server.base_url, server.key)

    async def list(self) -> LocalModelListResult:
        await self._refresh()
        disk_bytes = await asyncio.to_thread(_free_bytes, self._folder)
        # No waiting from here on: an event that came in between would be newer than this answer.
        named, program = self._settings().llama_server, self._program_path
        return LocalModelListResult(
            models=tuple(self._describe(entry) for entry in self._entries.values()),
            program=LocalServerProgram(
                path=str(program or named),
                size_bytes=0 if program is not None else self._program.missing_bytes(),
                available=program is not None or (self._program.archive is not None and not named),
            ),
            memory_bytes=self._machine.memory_bytes,
            disk_bytes=disk_bytes,
            folder=str(self._folder),
        )

    async def install(self, model_id: str) -> None:
        """Begin the download, or go on with it. Returns at once; does nothing while it is under way."""
        entry = await self._entry(model_id)
        download = self._downloads.get(entry.name)
        if download is not None and download.task is not None:
            return
        download = self._downloads[entry.name] = _Download(
            "downloading" if self._program_path is not None else "preparing", received_bytes(entry.path)
        )
        download.task = self._background.start(self._install(entry, download), f"download of {entry.name}")
        self._changed(entry.name)

    async def cancel(self, model_id: str) -> None:
        """Cancel the download; what has come stays."""
        entry = await self._entry(model_id)
        download = self._downloads.pop(entry.name, None)
        if download is not None and download.task is not None:
            download.task.cancel()
            await asyncio.wait((download.task,))
        self._changed(entry.name)

    async def remove(self, model_id: str) -> None:
        """Delete what was downloaded.

        Raises `InvalidParams` for a file of somebody else, `Conflict` while the model answers.
        """
        entry = await self._entry(model_id)
        if entry.catalogue is None:
            raise InvalidParams(
                f"{entry.name} is in {entry.path}, which Errand did not download. Remove it with the program that did."
            )
        if not await self._queue.end(entry.name):
            raise Conflict(f"{entry.name} is answering. Stop the tasks that use it, or wait for them, and try again.")
        await self.cancel(model_id)
        await asyncio.to_thread(shutil.rmtree, entry.path.parent, True)
        await self._refresh()
        if not self._installed and not self._downloads:
            await asyncio.to_thread(self._program.remove)
            await self._refresh()
        self._changed(entry.name)

    async def _entry(self, model_id: str) -> ModelEntry:
        name = model_id.removeprefix(_PROVIDER)
        await self._refresh()
        if name not in self._entries:
            raise NotFound(f"There is no model {model_id!r} for this machine. There are: {', '.join(self._entries)}.")
        return self._entries[name]

    async def _refresh(self) -> None:
        """Look at the disk and the memory again."""
        self._machine, models, self._program_path = await asyncio.to_thread(self._inspect)
        self._entries, self._installed = models.entries, models.installed
        self._program.archive = archive_for(self._machine.has_gpu)
        served = (self._served(self._entries[name]) for name in self._installed)
        model_facts.register_served({f"{_PROVIDER}{model.name}": model.facts(model_facts.FREE) for model in served})

    def _served(self, entry: ModelEntry) -> ServedModel:
        return ServedModel(
            entry.name,
            server="llama_cpp",
            context_tokens=self._context_of(entry),
            trained_tokens=entry.context_tokens or None,
            calls_tools=entry.calls_tools,
            is_loaded=entry.name == self._queue.running,
            parameters=entry.parameters,
        )

    def _inspect(self) -> "tuple[Machine, ModelsHere, Path | None]":
        """Return the machine, the models, and the program that runs them.

        Reads the file system: call it in a thread.
        """
        values = self._settings()
        models = look_for_models(self._catalogue, self._folder / "models", self._home, values.local_models_folder)
        return self._look_at_machine(), models, self._program.find(values.llama_server)

    async def _install(self, entry: ModelEntry, download: _Download) -> None:
        try:
            await self._fetch(entry, download)
            self._downloads.pop(entry.name, None)
        except DownloadFailed as error:
            download.state, download.problem, download.advice = "failed", str(error), error.advice
            download.received_bytes = received_bytes(entry.path)
        finally:
            download.task = None
        await self._refresh()
        self._changed(entry.name)

    async def _fetch(self, entry: ModelEntry, download: _Download) -> None:
        """Download what is missing: the program that runs it, then the model. Raises `DownloadFailed`."""
        values = self._settings()
        await self._program.install(values.llama_server, values.llama_cpp_downloads, lambda received: None)
        model = entry.catalogue
        if model is None:
            return
        download.state = "downloading"
        last_percent = -1

        def progress(received: int) -> None:
            nonlocal last_percent
            download.received_bytes = received
            percent = 100 * received // model.size_bytes
            if percent != last_percent:
                last_percent = percent
                self._changed(entry.name)

        def checking() -> None:
            download.state = "checking"
            self._changed(entry.name)

        url = f"{values.model_hub.rstrip('/')}/{model.repository}/resolve/{model.revision}/{model.file}"
        remote = RemoteFile(url, model.size_bytes, model.sha256, _OTHER_WAY)
        await self._downloader.fetch(remote, entry.path, progress, checking)

    async def _start(self, name: str) -> RunningServer:
        await self._refresh()
        entry, program = self._entries.get(name), self._program_path
        if entry is None or name not in self._installed:
            raise LocalModelFailed(
                f"The model {name} is not on this machine.",
                f"Download it with `errand models install {name}`, or in the settings under Models.",
            )
        if program is None:
            raise LocalModelFailed(
                "llama.cpp's server, which runs models on this machine, is not there.",
                f"Get it with `errand models install {name}`, or in the settings under Models.",
            )
        values = self._settings()
        context_tokens = self._context_of(entry)
        needed_bytes = entry.memory_bytes(context_tokens)
        if needed_bytes > self._machine.memory_bytes:
            raise LocalModelFailed(
                f"{name} needs about {needed_bytes / 1e9:.1f} GB of memory, and {self._machine.memory_bytes / 1e9:.1f} "
                "GB are free.",
                "Close other programs, or choose a smaller model.",
            )
        options = ServerOptions(
            name=name,
            model=entry.path,
            context_tokens=context_tokens,
            threads=self._machine.cores,
            gpu_layers=values.local_model_gpu_layers,
            memory_limit_bytes=0 if self._machine.has_gpu else needed_bytes + _LIMIT_MARGIN_BYTES,
            repacks=self._repacks,
        )
        server = await start_server(program, options, self._connections())
        self._repacks = server.options.repacks
        return server

    def _context_of(self, entry: ModelEntry) -> int:
        """Return the context that the model has or gets: what the person set, else the largest that fits."""
        if entry.name == self._queue.running:
            return self._queue.context_tokens
        if chosen := self._settings().local_model_context:
            return min(chosen, entry.max_context)
        return entry.largest_context(self._machine.memory_bytes)

    def _fits(self, entry: ModelEntry) -> bool:
        return entry.name == self._queue.running or entry.fits(self._machine.memory_bytes)

    def _describe(self, entry: ModelEntry) -> LocalModel:
        download = self._downloads.get(entry.name)
        context_tokens = self._context_of(entry)
        measured = self._speeds.get(entry.name, 0.0)
        estimated = self._machine.tokens_per_second(entry.size_bytes * entry.active_share)
        model, found_file = entry.catalogue, entry.found_file
        is_ready = entry.name in self._installed and self._program_path is not None
        state = download.state if download is not None else "installed" if is_ready else "available"
        received = entry.size_bytes if entry.name in self._installed else received_bytes(entry.path)
        return LocalModel(
            id=f"{_PROVIDER}{entry.name}",
            title=model.title if model is not None else (found_file.facts.name if found_file else "") or entry.name,
            source=found_file.source if found_file is not None else "catalogue",
            state=state,
            size_bytes=entry.size_bytes,
            memory_bytes=entry.memory_bytes(context_tokens),
            context_tokens=context_tokens,
            licence=model.licence if model is not None else "",
            good_for=model.good_for if model is not None else "",
            path=str(entry.path) if state == "installed" else "",
            received_bytes=download.received_bytes if download is not None else received,
            problem=download.problem if download is not None else "",
            advice=download.advice if download is not None else "",
            fits=self._fits(entry),
            recommended=entry.name == recommended_model(self._entries.values(), self._machine, self.running),
            running=entry.name == self._queue.running,
            tokens_per_second=round(measured or estimated, 1),
            measured=bool(measured),
        )

    def _changed(self, name: str) -> None:
        if (entry := self._entries.get(name)) is not None:
            self._publish(self._describe(entry))

    def _connections(self) -> "HttpPool":
        from errand.engine.models.http_pool import HttpPool

        if self._pool is None:
            self._pool = HttpPool(lambda: self._settings().ca_file)
        return self._pool


def _free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk on which the folder is or will be."""
    existing = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    return shutil.disk_usage(existing).free

"""Small GGUF files, a hub that serves them, and a program in place of llama.cpp's server."""

import asyncio
import hashlib
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from aiohttp import web

from errand.engine.background import Background
from errand.engine.core.setting_values import SettingValues
from errand.engine.local_models.catalogue import CatalogueModel
from errand.engine.local_models.local_models import LocalModels
from errand.engine.local_models.machine import Machine
from errand.protocol.local_models import LocalModel
from errand.system.paths import Paths
from tests.support import stand_in_llama_server
from tests.support.limits import WAIT_LIMIT_S
from tests.support.processes import PYTHON

_STRING, _ARRAY, _UINT32 = 8, 9, 4


def gguf(
    architecture: str = "llama", context_tokens: int = 8_192, padding: bytes = b"", template: str = "{{ tools }}"
) -> bytes:
    """Return a file that says what a model is, with `padding` in place of its weights."""

    def text(value: str) -> bytes:
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    strings = {"general.architecture": architecture, "general.name": "A Model"}
    numbers = {
        "context_length": context_tokens,
        "block_count": 2,
        "embedding_length": 64,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
    }
    pairs = [text(name) + struct.pack("<I", _STRING) + text(value) for name, value in strings.items()]
    pairs += [text(f"{architecture}.{name}") + struct.pack("<II", _UINT32, value) for name, value in numbers.items()]
    pairs.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", _ARRAY, _STRING, 2) + text("a") + text("b"))
    pairs.append(text("tokenizer.ggml.scores") + struct.pack("<IIQ", _ARRAY, _UINT32, 2) + bytes(8))
    pairs.append(text("tokenizer.chat_template") + struct.pack("<I", _STRING) + text(template))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs) + padding


def catalogue_model(name: str, data: bytes, *, parameters: float = 1.0, sha256: str = "") -> CatalogueModel:
    return CatalogueModel(
        name=name,
        title=name.upper(),
        good_for="Tests.",
        licence="MIT",
        repository=f"tests/{name}",
        revision="main",
        file=f"{name}.gguf",
        size_bytes=len(data),
        sha256=sha256 or hashlib.sha256(data).hexdigest(),
        parameters=parameters,
        active_parameters=parameters,
        cache_bytes=100,
        context_tokens=8_192,
    )


@dataclass(slots=True)
class Hub:
    """Serves files by name. `cuts` are the sizes after which answers end, one for each; `refuses` is a status.

    With `is_abrupt` the connection breaks off there: what was not read yet is lost. While `gate` is there and not set,
    an answer stops after its first half. `ranges` are those that were asked for.
    """

    files: Mapping[str, bytes]
    url: str = ""
    cuts: list[int] = field(default_factory=list[int])
    refuses: int = 0
    ignores_ranges: bool = False
    is_abrupt: bool = False
    moved_to: str = ""
    gate: asyncio.Event | None = None
    ranges: list[str] = field(default_factory=list[str])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        data = self.files.get(request.path.rpartition("/")[2])
        asked = request.headers.get("Range", "")
        self.ranges.append(asked)
        if self.moved_to and not request.path.startswith("/moved"):
            return web.Response(status=302, headers={"Location": f"{self.moved_to}/moved{request.path}"})
        if data is None or self.refuses:
            return web.Response(status=self.refuses or 404)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and not self.ignores_ranges else 0
        headers = {"Content-Length": str(len(data) - start)} if self.is_abrupt or not self.cuts else {}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        if self.cuts:
            await response.write(data[start : start + self.cuts.pop(0)])
            if self.is_abrupt:
                assert request.transport is not None
                request.transport.close()
            return response
        half = start + (len(data) - start) // 2
        await response.write(data[start:half])
        if self.gate is not None:
            await self.gate.wait()
        await response.write(data[half:])
        return response


@asynccontextmanager
async def hub(files: Mapping[str, bytes]) -> AsyncGenerator[Hub]:
    server = Hub(files)
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        if server.gate is not None:
            server.gate.set()
        await runner.cleanup()


def stand_in_program(folder: Path, *options: str) -> Path:
    """Write a program that behaves like llama.cpp's server."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-server"
    arguments = " ".join(f"'{option}'" for option in options)
    program.write_text(f"#!/bin/sh\nexec '{PYTHON}' -I '{stand_in_llama_server.__file__}' {arguments} \"$@\"\n")
    program.chmod(0o755)
    return program


@dataclass(slots=True)
class LocalModelsLab:
    """Models on a machine of the test. `published` are the models that clients heard of."""

    models: LocalModels
    values: SettingValues
    published: list[LocalModel]
    machine: Machine
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def state(self, name: str) -> LocalModel:
        listing = await self.models.list()
        return next(model for model in listing.models if model.id == f"local/{name}")

    async def until(self, name: str, *states: str) -> LocalModel:
        """Wait until clients hear that the model is in one of these states."""
        async with asyncio.timeout(WAIT_LIMIT_S):
            while True:
                heard = [model for model in self.published if model.id == f"local/{name}"]
                if heard and heard[-1].state in states:
                    return heard[-1]
                self.heard.clear()
                await self.heard.wait()

    def set(self, **values: object) -> None:
        self.values = msgspec.structs.replace(self.values, **values)


@asynccontextmanager
async def local_models(
    folder: Path, catalogue: tuple[CatalogueModel, ...] = (), **values: object
) -> AsyncGenerator[LocalModelsLab]:
    background = Background()
    lab: LocalModelsLab

    def publish(model: LocalModel) -> None:
        lab.published.append(model)
        lab.heard.set()

    models = LocalModels(
        Paths(folder / "data"),
        lambda: lab.values,
        publish,
        background,
        home=folder / "home",
        catalogue=catalogue,
        machine=lambda: lab.machine,
    )
    settings = msgspec.structs.replace(SettingValues(), **values)
    lab = LocalModelsLab(models, settings, [], Machine(8_000_000_000, 4, has_gpu=False))
    try:
        yield lab
    finally:
        await background.close()
        await models.close()

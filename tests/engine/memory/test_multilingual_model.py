"""The multilingual model by its folder: with a package in the place of fastembed, and what fastembed says of it."""

import asyncio
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH, MULTILINGUAL, kind_of, missing_files
from errand.engine.memory.passages import vectors_of
from errand.protocol.memory import MemorySearchParams
from tests.support.engine_parts import engine_parts, remembered
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

_ABOUT = """
import json, sys
from fastembed import TextEmbedding
descriptions = [about for about in TextEmbedding.list_supported_models() if about["model"] == sys.argv[1]]
print(json.dumps([[about["dim"], about["model_file"]] for about in descriptions]))
"""


@pytest.fixture
def multilingual(model: Path) -> Path:
    """A folder with the files of the multilingual model."""
    (model / "model.onnx").rename(model / "model_optimized.onnx")
    return model


async def test_its_vectors_have_a_length_of_one(multilingual: Path) -> None:
    assert kind_of(multilingual) == MULTILINGUAL
    assert missing_files(multilingual) == []
    embedder = Embedder(lambda: multilingual)
    try:
        boat, reordered, corn = await embedder.embed(("das rote Boot", "Boot rote das", "maïs prix"), CancelSignal())
    finally:
        await embedder.close()
    assert [sum(x * x for x in vector) for vector in (boat, corn)] == pytest.approx([1.0, 1.0], abs=1e-3)
    assert boat == reordered and len(boat) == ENGLISH.dimensions


async def test_a_running_engine_makes_the_vectors_anew_when_the_model_in_its_folder_is_another(
    tmp_path: Path, model: Path
) -> None:
    assert vectors_of(ENGLISH) != vectors_of(MULTILINGUAL)
    async with engine_parts(tmp_path / "home", ModelServer(answer=lambda request: Reply(text="Aha."))) as engine:
        engine.services.settings.set("embedding_folder", str(model))
        for graph in ("model.onnx", "model_optimized.onnx"):
            await asyncio.to_thread((model / "model.onnx").rename, model / graph)
            for text in ("Das Boot liegt im Hafen", "Wo ist der Schlüssel?", "我把潮汐表放在厨房的抽屉里了。"):
                await engine.watcher.end((await engine.start(text, mode="chat")).id)
            await remembered(engine)
            memory = engine.services.memory
            async with asyncio.timeout(WAIT_LIMIT_S):
                while (stats := await memory.stats()).to_embed:  # noqa: ASYNC110 -- it sets no event
                    await asyncio.sleep(0.05)
            assert (stats.model.status, stats.vectors, stats.problem) == ("ready", stats.entries, "")
            result = await memory.reader.search(MemorySearchParams(text="Boot im Hafen"), CancelSignal())
            assert result.remark == "" and result.hits[0].text == "Das Boot liegt im Hafen"
            assert stats.other_languages == (graph == "model.onnx")
            about = tmp_path / "home" / "data" / "memory" / "vectors" / "index.json"
            assert json.loads(about.read_bytes())["model"] == vectors_of(kind_of(model))


@pytest.mark.skipif(find_spec("fastembed") is None, reason="fastembed is not installed")
async def test_fastembed_has_it_with_this_graph_and_as_many_numbers() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _ABOUT, MULTILINGUAL.name, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert json.loads(output) == [[ENGLISH.dimensions, MULTILINGUAL.files[0]]]

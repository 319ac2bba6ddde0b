"""The real model all-MiniLM-L6-v2: what its vectors say about texts. Needs `make model`."""

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH
from errand.engine.tools.context import Vector
from tests.support.minilm import minilm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

_NEAR = (
    ("The cat sits on the mat.", "A cat is sitting on a mat."),
    ("How do I reset my password?", "I forgot my password and need a new one."),
    ("The tests fail since the upgrade of the library.", "After upgrading the library, the tests no longer pass."),
)
_FAR = (
    ("The cat sits on the mat.", "Interest rates rose by a quarter of a percent."),
    ("How do I reset my password?", "The soup needs more salt and an hour on the stove."),
    ("The tests fail since the upgrade of the library.", "We walked along the beach at sunset."),
)


@pytest.fixture
def folder() -> Path:
    model_folder = minilm()
    if model_folder is None:
        pytest.skip("the real embedding model is not there: `make model` builds it, or ERRAND_MINILM names its folder")
    return model_folder


@pytest.fixture
async def embedder(folder: Path) -> AsyncGenerator[Embedder]:
    new_embedder = Embedder(lambda: folder)
    yield new_embedder
    await new_embedder.close()


def cosine(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


async def test_texts_that_say_the_same_are_near_and_others_are_not(embedder: Embedder) -> None:
    texts = [text for pair in (*_NEAR, *_FAR) for text in pair]
    vectors = await embedder.embed(tuple(texts), CancelSignal())
    assert {len(vector) for vector in vectors} == {ENGLISH.dimensions}
    assert [cosine(vector, vector) for vector in vectors] == pytest.approx([1.0] * len(texts), abs=1e-3)
    pairs = [cosine(first, second) for first, second in zip(vectors[::2], vectors[1::2], strict=True)]
    assert min(pairs[: len(_NEAR)]) > 0.6, pairs
    assert max(pairs[len(_NEAR) :]) < 0.2, pairs


async def test_a_text_has_the_same_vector_alone_and_among_others(embedder: Embedder) -> None:
    texts = ("boat", "The quick brown fox jumps over the lazy dog. " * 9, "", "Où est la gare ? 駅はどこ")
    among = await embedder.embed(texts, CancelSignal())
    for text, vector in zip(texts, among, strict=True):
        (alone,) = await embedder.embed((text,), CancelSignal())
        assert alone == pytest.approx(vector, abs=1e-4), text


async def test_the_first_256_tokens_of_a_text_count(embedder: Embedder) -> None:
    read = "boat " * 254  # with the marks of the beginning and the end: 256
    texts = (read, read + "The stock market fell.", "boat " * 253 + "market")
    full, longer, other = await embedder.embed(texts, CancelSignal())
    assert full == longer
    assert full != other


async def test_a_long_batch_does_not_make_the_process_large(embedder: Embedder) -> None:
    await embedder.embed(("boat",), CancelSignal())
    assert embedder.pid is not None
    process = psutil.Process(embedder.pid)
    before = process.memory_info().rss
    await embedder.embed(("The quick brown fox jumps over the lazy dog. " * 50,) * 16, CancelSignal(), background=True)
    assert process.memory_info().rss - before < 80_000_000

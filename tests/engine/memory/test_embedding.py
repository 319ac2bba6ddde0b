"""Embedding in a process of its own: with a small package in the place of fastembed, which has its real interface."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH
from errand.engine.tools.context import ModelAccess, ToolContext
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonValue
from tests.support.engine_parts import engine_parts
from tests.support.loop_parts import failure, make_tool_context, run, text_of, tool_of
from tests.support.model_replies import results
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import below, is_alive, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")


@pytest.fixture
async def embedder(model: Path) -> AsyncGenerator[Embedder]:
    new_embedder = Embedder(lambda: model)
    yield new_embedder
    await new_embedder.close()


async def test_each_text_gets_384_numbers_and_like_texts_are_near(embedder: Embedder) -> None:
    boat, reordered, corn = await embedder.embed(("the red boat", "boat red the", "prices of corn"), CancelSignal())
    assert [len(vector) for vector in (boat, reordered, corn)] == [ENGLISH.dimensions] * 3
    assert sum(a * b for a, b in zip(boat, reordered, strict=True)) == pytest.approx(1.0, abs=1e-4)
    assert sum(a * b for a, b in zip(boat, corn, strict=True)) < 0.1


async def test_the_process_is_not_the_engine_and_serves_the_next_call_too(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "fastembed", raising=False)  # another test may have imported it
    await embedder.embed(("a",), CancelSignal())
    pid = embedder.pid
    await embedder.embed(("b",), CancelSignal())
    assert pid is not None and embedder.pid == pid != os.getpid()
    assert "fastembed" not in sys.modules
    await embedder.close()
    assert not is_alive(pid)


async def test_the_process_ends_when_it_is_not_used(model: Path) -> None:
    embedder = Embedder(lambda: model, idle_s=0.05)
    await embedder.embed(("a",), CancelSignal())
    await until(lambda: embedder.pid is None)
    assert len(await embedder.embed(("a",), CancelSignal())) == 1
    await embedder.close()


async def test_work_that_waits_starts_no_process_after_the_end(model: Path) -> None:
    embedder = Embedder(lambda: model)
    calls = [
        asyncio.create_task(embedder.embed(("slow",) * 80, CancelSignal(), background=number == 0))
        for number in range(3)
    ]
    await until(lambda: (model / "batches").exists())
    await embedder.close()
    for call in calls:
        with pytest.raises(ToolError, match=r"has ended|no more texts"):
            await call
    assert embedder.pid is None


async def test_a_stop_ends_the_process_at_once(embedder: Embedder) -> None:
    await embedder.embed(("a",), CancelSignal())
    pid, cancel = embedder.pid, CancelSignal()
    assert pid is not None
    asyncio.get_running_loop().call_later(0.05, cancel.set)
    with pytest.raises(ToolError, match="Operation aborted"):
        await embedder.embed(("sleep",), cancel)
    assert not is_alive(pid)
    assert len(await embedder.embed(("a",), CancelSignal())) == 1, "the next call starts another"


async def test_what_fails_inside_is_said_and_does_not_last(embedder: Embedder) -> None:
    with pytest.raises(ToolError, match="could not be embedded: RuntimeError: out of order"):
        await embedder.embed(("fail",), CancelSignal())
    with pytest.raises(ToolError, match="has ended"):
        await embedder.embed(("die",), CancelSignal())
    await embedder.embed(("a",), CancelSignal())
    assert embedder.pid is not None
    pid = embedder.pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_alive(pid))
    assert len(await embedder.embed(("a",), CancelSignal())) == 1


async def test_a_query_goes_before_all_that_is_left_of_background_work(embedder: Embedder, model: Path) -> None:
    work = tuple(f"slow number {number}" for number in range(80))
    background = asyncio.create_task(embedder.embed(work, CancelSignal(), background=True))
    await until(lambda: (model / "batches").exists())
    query = await embedder.embed(tuple(f"query {number}" for number in range(24)), CancelSignal())
    assert not background.done()
    assert len(query) == 24
    assert len(await background) == 80
    batches = (model / "batches").read_text(encoding="utf-8").split()
    assert "query query query" in " ".join(batches), "three batches, nothing between them"
    assert batches[-1] == "slow"
    assert (len(batches), batches.count("query")) == (13, 3)


async def test_each_text_gets_its_own_vector_whatever_the_batches(embedder: Embedder) -> None:
    texts = tuple(f"{'word ' * (number * 37 % 50)}{number}" for number in range(50))
    vectors = await embedder.embed(texts, CancelSignal())
    for text, vector in zip(texts, vectors, strict=True):
        assert (await embedder.embed((text,), CancelSignal())) == (vector,)


async def test_throttled_background_work_rests_most_of_the_time(embedder: Embedder) -> None:
    embedder.throttled = True
    await embedder.embed(("a",), CancelSignal())
    began = time.monotonic()
    await embedder.embed(("slow",) * 24, CancelSignal(), background=True)
    assert time.monotonic() - began >= 3 * 0.08 + 2 * 4 * 0.08


async def test_of_a_huge_text_only_what_the_model_can_read_is_sent(embedder: Embedder) -> None:
    huge, spaces = "word " * 2_000_000, " \n" * 5_000 + "word"
    texts = (huge, huge[:4_096], spaces, "\ud800 word")
    huge_vector, cut_vector, spaces_vector, surrogate_vector = await embedder.embed(texts, CancelSignal())
    assert huge_vector == cut_vector
    assert [len(vector) for vector in (spaces_vector, surrogate_vector)] == [ENGLISH.dimensions] * 2


async def test_without_the_package_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ToolError, match=r"fastembed is not installed.*install Errand again"):
        await Embedder(lambda: tmp_path).embed(("a",), CancelSignal())


async def test_without_the_model_the_error_says_how_to_get_it(embedder: Embedder, model: Path) -> None:
    (model / "tokenizer.json").unlink()
    with pytest.raises(ToolError, match=r"tokenizer.json is missing.*errand memory download.*https://"):
        await embedder.embed(("a",), CancelSignal())


@pytest.mark.parametrize(("size", "error"), [("0", "cannot be loaded: ValueError: no graph"), ("7", "is another one")])
async def test_a_wrong_model_is_said(embedder: Embedder, model: Path, size: str, error: str) -> None:
    (model / "model.onnx").write_text(size, encoding="utf-8")
    with pytest.raises(ToolError, match=error):
        await embedder.embed(("a",), CancelSignal())


def _stored(file: Path) -> list[list[float]]:
    return msgspec.json.decode(file.read_bytes(), type=list[list[float]])


def tool_context(folder: Path, embedder: Embedder) -> ToolContext:
    return replace(make_tool_context(folder), models=ModelAccess(embed=embedder.embed))


async def test_the_tool_gives_few_vectors_and_stores_many(tmp_path: Path, embedder: Embedder) -> None:
    tool = tool_of(tool_context(tmp_path, embedder), "python_inference")
    few = await run(tool, {"action": "embed", "texts": ["one\0", "two"]})
    vectors = msgspec.json.decode(text_of(few), type=list[list[float]])
    assert [len(vector) for vector in vectors] == [ENGLISH.dimensions] * 2
    assert few.summary == "2 vectors"
    many = await run(tool, {"action": "embed", "texts": [*["word " * 1_600] * 64]})
    file = Path(text_of(many).rpartition(" in ")[2])
    assert file.is_relative_to(tmp_path / "outputs")
    assert len(await asyncio.to_thread(_stored, file)) == 64


@pytest.mark.parametrize(
    ("texts", "error"),
    [([], "give 1 to 64"), (["a"] * 65, "give 1 to 64"), ([" "], "is empty"), (["a" * 8_001], "at most 8,000")],
)
async def test_wrong_texts_are_refused(tmp_path: Path, embedder: Embedder, texts: list[JsonValue], error: str) -> None:
    tool = tool_of(tool_context(tmp_path, embedder), "python_inference")
    assert error in str(await failure(tool, {"action": "embed", "texts": texts}))


async def test_an_agent_embeds_without_asking_and_the_engine_ends_the_process(tmp_path: Path, model: Path) -> None:
    calls = (Call("python_inference", {"action": "embed", "texts": ["a", "b", "c", "d"]}),)
    async with engine_parts(tmp_path, ModelServer(turns=[Reply(calls=calls), Reply(text="Done.")])) as engine:
        engine.services.settings.set("embedding_folder", str(model))
        await engine.watcher.end((await engine.start(approve="ask", mode="chat")).id)
        (result,) = results(engine.watcher.nodes())
        running = await asyncio.to_thread(below, "embedding_child")
    assert (result.is_error, result.summary) == (False, "4 vectors")
    (child,) = running
    await until(lambda: not is_alive(child.pid))

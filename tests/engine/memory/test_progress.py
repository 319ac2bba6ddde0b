"""A search while vectors are made again: it says of how many entries there are some."""

import asyncio
import re
from pathlib import Path

from errand.engine.core.cancel import CancelSignal
from errand.protocol.memory import MemorySearchParams
from tests.engine.memory.test_memory import said
from tests.support.engine_parts import engine_parts, remembered
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer, Reply

_LONG = "slow " + " ".join(f"kettle{number}" for number in range(1_000))


async def test_a_search_says_how_many_entries_have_vectors_while_these_are_made(tmp_path: Path, model: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        for number in range(40):
            await said(engine, f"{number} {_LONG}")
        await remembered(engine)
        engine.services.settings.set("embedding_folder", str(model))
        engine.services.memory.rules_changed()
        remarks: list[str] = []
        async with asyncio.timeout(WAIT_LIMIT_S):
            # A question goes before the vectors that are made: nobody asks for more than is needed to see that.
            while left := (await engine.services.memory.stats()).to_embed:
                result = await engine.services.memory.reader.search(MemorySearchParams(text="kettle1"), CancelSignal())
                remarks.append(result.remark)
                while (await engine.services.memory.stats()).to_embed == left:  # noqa: ASYNC110 - nothing tells it
                    await asyncio.sleep(0.01)
        result = await engine.services.memory.reader.search(MemorySearchParams(text="kettle1"), CancelSignal())
    percents = [int(match[1]) for remark in remarks if (match := re.search(r"is being made \((\d+) %\)", remark))]
    assert percents and percents == sorted(percents) and percents[-1] < 100
    assert result.remark == ""


async def test_a_search_without_the_model_says_that_alone(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        await remembered(engine)
        result = await engine.services.memory.reader.search(MemorySearchParams(text="kettle"), CancelSignal())
    advice = "The embedding model is not downloaded yet (errand memory download)."
    assert result.remark == f"Only words were searched. {advice}"

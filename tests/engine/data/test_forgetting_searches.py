"""Forgetting a text while a task searches memory, or has found the text and not stored the result yet."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import AgentBusy
from errand.protocol.base import JsonObject
from errand.protocol.blocks import ToolResultBlock
from errand.protocol.memory import MemoryItem, MemorySearchParams, MemorySearchResult
from tests.engine.data.test_forgetting import ASKED, forget, places, says, worked
from tests.support.engine_parts import branch, engine_parts
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply


def answer_when(gate: asyncio.Event) -> ModelServer:
    """A person's "look" is answered by a search of memory beside a sub-agent, which ends when `gate` is set."""

    def answer(request: ReceivedRequest) -> Reply:
        last = request.messages[-1]
        if last["role"] == "user" and "look" in str(last["content"]):
            order: JsonObject = {"description": "Wait", "prompt": "wait for it"}
            return Reply(calls=(Call("search_memory", {"query": "walrus zeppelin"}), Call("task", order)))
        if last["role"] == "user" and "wait for it" in str(last["content"]):
            return Reply(text="Waited.", gate=gate)
        return Reply(text="Noted.")

    return ModelServer(answer=answer)


async def test_while_a_task_has_found_a_text_and_not_stored_it_forgetting_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, text_found = asyncio.Event(), asyncio.Event()
    async with engine_parts(tmp_path, answer_when(gate)) as engine:
        first = await worked(engine, ASKED)
        (source, *_) = await branch(engine, first.conversation_id)
        search = engine.services.memory.reader.search

        async def searched(
            params: MemorySearchParams,
            cancel: CancelSignal,
            skip: Callable[[MemoryItem], bool],
            not_folders: tuple[str, ...] = (),
        ) -> MemorySearchResult:
            result = await search(params, cancel, skip, not_folders)
            text_found.set()
            return result

        monkeypatch.setattr(engine.services.memory.reader, "search", searched)
        looking = await engine.start("look")
        async with asyncio.timeout(WAIT_LIMIT_S):
            await text_found.wait()
        with pytest.raises(AgentBusy, match="an agent works in “look”, where this text stands or was recalled"):
            await forget(engine, source)
        gate.set()
        await engine.watcher.end(looking.id)
        assert (await forget(engine, source)).recalls == 1
        assert places(engine.services.paths.home, "Ethelbert") == {}


async def test_a_search_during_which_its_hit_is_forgotten_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_parts(
        tmp_path,
        says(Reply(text="One."), Reply(calls=(Call("search_memory", {"query": "walrus"}),)), Reply(text="No.")),
    ) as engine:
        first = await worked(engine, ASKED)
        (source, *_) = await branch(engine, first.conversation_id)
        search, hits = engine.services.memory.reader.search, list[list[str]]()

        async def slow_search(
            params: MemorySearchParams,
            cancel: CancelSignal,
            skip: Callable[[MemoryItem], bool],
            not_folders: tuple[str, ...] = (),
        ) -> MemorySearchResult:
            result = await search(params, cancel, skip, not_folders)
            hits.append([hit.node_id for hit in result.hits])
            if source.id in hits[-1]:
                await forget(engine, source)
            return result

        monkeypatch.setattr(engine.services.memory.reader, "search", slow_search)
        other = await engine.start("look")
        await engine.watcher.end(other.id)
        result = (await branch(engine, other.conversation_id))[2].blocks[0]
        assert isinstance(result, ToolResultBlock) and not result.is_error
        assert source.id in hits[0] and source.id not in hits[1] and len(hits) == 2
        assert places(engine.services.paths.home, "Ethelbert") == {}

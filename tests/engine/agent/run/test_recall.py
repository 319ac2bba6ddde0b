"""What memory has on each message of a person that a task reads."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from errand.engine.record.diff import compare
from errand.engine.record.format import read
from errand.engine.record.replay import replay
from errand.protocol.asks import AskAnswerParams
from errand.protocol.base import JsonObject
from errand.protocol.blocks import RecallBlock, TextBlock, ToolResultBlock
from errand.protocol.tasks.groups import QueuedKind
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts, remembered
from tests.support.local_servers import llama_cpp
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.recorded_tasks import record_of

TIDES = "The tide tables of the harbour are in /srv/tides.csv"
KETTLE = "The copper kettle of the workshop leaks at its spout"
ASK_TIDES = "where are the tide tables of the harbour?"
ASK_KETTLE = "what about the copper kettle of the workshop?"


class Model:
    """Answers with the replies in order, then "Noted."; `requests` are those that it got."""

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.replies: list[Reply] = []

    def server(self) -> ModelServer:
        return ModelServer(answer=self._answer)

    def _answer(self, request: ReceivedRequest) -> Reply:
        self.requests.append(request)
        return self.replies.pop(0) if self.replies else Reply(text="Noted.")

    def last_messages(self) -> list[str]:
        """The content of the last message of each request."""
        return [str(request.messages[-1]["content"]) for request in self.requests]


async def say_earlier(engine: EngineParts, *texts: str) -> None:
    """Hold conversations that memory has."""
    for text in texts:
        await engine.watcher.end((await engine.start(text, mode="chat")).id)
    await remembered(engine)


async def recalled(engine: EngineParts, conversation_id: str) -> list[tuple[str, list[str]]]:
    """The text before each recall of a branch, and the texts that were recalled."""
    nodes = await branch(engine, conversation_id)
    by_id = {node.id: node for node in nodes}
    recalls: list[tuple[str, list[str]]] = []
    for node in nodes:
        for block in node.blocks:
            if isinstance(block, RecallBlock):
                above = by_id[node.parent_id or ""].blocks[0]
                text = above.text if isinstance(above, TextBlock | ToolResultBlock) else ""
                recalls.append((text, [entry.text for entry in block.entries]))
    return recalls


def assert_prefixes_hold(requests: Sequence[ReceivedRequest]) -> None:
    """Each request begins with the messages of the one before it, after the system prompt."""
    for earlier, later in pairwise(request.sent_messages[1:] for request in requests):
        assert later[: len(earlier)] == earlier


async def _read_while_running(home: Path, kind: QueuedKind) -> None:
    model, gate = Model(), asyncio.Event()
    async with engine_parts(home, model.server()) as engine:
        await say_earlier(engine, TIDES)
        model.requests.clear()
        model.replies += [Reply(text="Begun.", calls=(Call("shell", {"command": "echo one"}),), gate=gate)]
        model.replies += [shell("echo two"), Reply(text="It is there.")]
        task = await engine.start("hello there", mode="chat")
        await engine.watcher.task(task.id, lambda task: task.progress.step_count == 1)
        await engine.say(task.id, ASK_TIDES, kind)
        gate.set()
        await engine.watcher.end(task.id)
        assert await recalled(engine, task.conversation_id) == [(ASK_TIDES, [TIDES])]
        again = await engine.start("thank you", mode="chat", conversation_id=task.conversation_id)
        await engine.watcher.end(again.id)
    contents = model.last_messages()
    assert [content for content in contents if ASK_TIDES in content and "/srv/tides.csv" in content]
    assert "/srv/tides.csv" not in contents[0]
    assert_prefixes_hold(model.requests)


async def test_a_message_that_steers_is_looked_up(tmp_path: Path) -> None:
    await _read_while_running(tmp_path, "steer")


async def test_a_message_that_follows_up_is_looked_up(tmp_path: Path) -> None:
    await _read_while_running(tmp_path, "follow_up")


async def test_an_answer_to_a_question_is_looked_up(tmp_path: Path) -> None:
    model = Model()
    async with engine_parts(tmp_path, model.server()) as engine:
        await say_earlier(engine, TIDES)
        model.requests.clear()
        model.replies += [Reply(calls=(Call("ask_user", {"question": "Which one?"}),)), shell("echo two"), DONE]
        task = await engine.start("fetch the file", attended=True)
        ask = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(
            AskAnswerParams(ask_id=ask.id, text="that with the tide tables of the harbour"), "a person"
        )
        await engine.watcher.end(task.id)
        assert [texts for _, texts in await recalled(engine, task.conversation_id)] == [[TIDES]]
        again = await engine.start("thank you", mode="chat", conversation_id=task.conversation_id)
        await engine.watcher.end(again.id)
    assert "/srv/tides.csv" in model.last_messages()[1]
    assert model.requests[1].messages[-1]["role"] == "tool"
    assert_prefixes_hold(model.requests)


async def test_no_entry_is_recalled_twice_in_a_branch(tmp_path: Path) -> None:
    model, gate = Model(), asyncio.Event()
    async with engine_parts(tmp_path, model.server()) as engine:
        await say_earlier(engine, TIDES, KETTLE)
        model.replies += [Reply(text="Begun.", gate=gate)]
        task = await engine.start(ASK_TIDES, mode="chat")
        await engine.watcher.task(task.id, lambda task: task.progress.step_count == 1)
        await engine.say(task.id, f"{ASK_TIDES} And {ASK_KETTLE}", "follow_up")
        gate.set()
        await engine.watcher.end(task.id)
    async with engine_parts(tmp_path, model.server()) as engine:  # what it knows of the branch is read again
        again = await engine.start(ASK_TIDES, mode="chat", conversation_id=task.conversation_id)
        await engine.watcher.end(again.id)
        texts = [texts for _, texts in await recalled(engine, task.conversation_id)]
    assert texts == [[TIDES], [KETTLE]]


@pytest.mark.parametrize(("window", "count"), [(32_768, 1), (2_048, 0)])
async def test_what_is_recalled_takes_a_small_share_of_the_window(tmp_path: Path, window: int, count: int) -> None:
    server = ModelServer(answer=lambda request: DONE, pages=llama_cpp("test-model", window=window))
    async with engine_parts(tmp_path, server) as engine:
        await say_earlier(engine, f"{TIDES}. {'They hold for the north quay as well as for the south quay. ' * 8}")
        task = await engine.start(ASK_TIDES)
        await engine.watcher.end(task.id)
        assert len(await recalled(engine, task.conversation_id)) == count


async def test_the_words_of_the_engine_and_orders_of_sub_agents_are_not_looked_up(tmp_path: Path) -> None:
    model = Model()
    async with engine_parts(tmp_path, model.server()) as engine:
        await say_earlier(engine, TIDES)
        order: JsonObject = {"description": "Look", "prompt": ASK_TIDES}
        model.replies += [Reply(calls=(Call("task", order),)), Reply(text="In the file."), DONE]
        task = await engine.start("hello there")
        await engine.watcher.end(task.id)
        assert not [block for node in engine.watcher.nodes() for block in node.blocks if isinstance(block, RecallBlock)]
    assert not [content for content in model.last_messages() if "/srv/tides.csv" in content and "recalled" in content]


async def test_a_task_resumed_after_an_answer_was_looked_up_sends_the_same_again(tmp_path: Path) -> None:
    model, gate = Model(), asyncio.Event()
    async with engine_parts(tmp_path / "before", model.server()) as engine:
        await say_earlier(engine, TIDES)
        model.requests.clear()
        model.replies += [Reply(calls=(Call("ask_user", {"question": "Which one?"}),)), Reply(text="…", gate=gate)]
        task = await engine.start("fetch the file", attended=True)
        ask = await engine.watcher.ask(task.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text=ASK_TIDES), "a person")
        await engine.watcher.task(task.id, lambda task: task.progress.step_count == 2)
        await engine.model.request(2)  # beside that of the earlier conversation
        await engine.services.log.flush()
        crash(engine, tmp_path / "after")
        gate.set()
    async with engine_parts(tmp_path / "after", model.server()) as engine:
        model.replies += [DONE]
        await engine.services.runner.resume(task.id)
        await engine.watcher.end(task.id)
    assert model.requests[-1].messages == model.requests[1].messages
    assert "/srv/tides.csv" in str(model.requests[-1].messages[-1]["content"])


async def test_a_record_with_recalled_entries_is_replayed_without_a_difference(tmp_path: Path) -> None:
    model, gate = Model(), asyncio.Event()
    async with engine_parts(tmp_path, model.server()) as engine:
        await say_earlier(engine, TIDES, KETTLE)
        model.replies += [Reply(text="Begun.", calls=(Call("shell", {"command": "echo one"}),), gate=gate), DONE]
        task = await engine.start(ASK_TIDES)
        await engine.watcher.task(task.id, lambda task: task.progress.step_count == 1)
        await engine.say(task.id, ASK_KETTLE)
        gate.set()
        await engine.watcher.end(task.id)
        assert len(await recalled(engine, task.conversation_id)) == 2
        record = read((await record_of(engine, task.id)).lines())
    differences = compare(record, await replay(record, tmp_path / "replay"))
    assert differences == [], "\n".join(differences)

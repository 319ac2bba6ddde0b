"""Which commands of a task have the network, by the conversation's option and by who allowed them."""

from pathlib import Path

import pytest

from errand.engine.sandbox.detection import find_sandbox
from errand.protocol.asks import AskAnswerParams
from errand.protocol.tasks.groups import NetworkMode
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.skipif(find_sandbox().form != "bubblewrap", reason="bubblewrap has a network of its own")
# It succeeds only where the proxy is.
_CURL = "curl -s --noproxy '*' -o out --max-time 5 http://${HTTP_PROXY#*@}/ && cat out"
_THERE = "This proxy takes CONNECT"


def told(engine: EngineParts) -> str:
    """The result of the command, as the model got it."""
    return str(engine.model.requests[1].messages[-1]["content"])


async def test_a_command_that_a_person_allowed_has_the_network_and_the_approval_says_so(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell(_CURL), DONE])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        assert ask.approval is not None
        assert ask.approval.sandbox == "runs in the sandbox (bubblewrap), with the network"
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "the test")
        await engine.watcher.end(started.id)
        assert _THERE in told(engine)


async def test_a_command_that_needs_no_network_is_approved_without_it(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch it"), DONE])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        assert ask.approval is not None
        assert ask.approval.sandbox == "runs in the sandbox (bubblewrap), without the network"
        await engine.services.runner.stop(started.id, "the test")
        await engine.watcher.end(started.id)


async def test_where_everything_is_allowed_nobody_gave_the_network(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell(_CURL), DONE])) as engine:
        await engine.watcher.end((await engine.start(approve="all")).id)
        assert _THERE not in told(engine)
        assert "this command had no network" in told(engine) and "--network on" in told(engine)


@pytest.mark.parametrize(("mode", "has"), [("on", True), ("off", False), ("asked", False)])
async def test_the_option_of_the_conversation_decides_about_its_next_tasks(
    tmp_path: Path, mode: NetworkMode, has: bool
) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("true"), DONE, shell(_CURL), DONE])) as engine:
        first = await engine.watcher.end((await engine.start(network=mode)).id)
        conversation = await engine.services.database.conversations.get(first.conversation_id)
        assert conversation is not None and (conversation.network, first.request.network) == (mode, mode)
        second = await engine.start(conversation_id=first.conversation_id)
        assert (await engine.watcher.end(second.id)).request.network == mode
        texts = str([request.messages[-1]["content"] for request in engine.model.requests])
        assert (_THERE in texts) is has

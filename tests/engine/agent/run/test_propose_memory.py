"""The tool `propose_memory`: what an agent proposes waits for a person, and a flood of proposals is bounded."""

from pathlib import Path

import msgspec
import pytest

from errand.protocol.base import JsonObject
from errand.protocol.blocks import RecallBlock
from errand.protocol.events import ConversationUpdate, FactUpdate
from errand.protocol.memory import Fact
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts, remembered
from tests.support.loop_parts import failure, make_tool_context, tool_of
from tests.support.model_replies import DONE, LONG_TEXT, results, shell
from tests.support.model_server import Call, ModelServer, Reply

TABS: JsonObject = {"text": "Use tabs.", "scope": "always"}


def propose(*arguments: JsonObject) -> Reply:
    return Reply(calls=tuple(Call("propose_memory", proposal) for proposal in arguments))


async def told(engine: EngineParts, task: Task) -> list[str]:
    """The results of the task's proposals."""
    await engine.watcher.end(task.id)
    blocks = results([node for node in engine.watcher.nodes() if node.task_id == task.id])
    return [block.text for block in blocks if block.tool == "propose_memory"]


async def test_a_proposed_fact_waits_for_a_person_and_knows_where_it_came_from(tmp_path: Path) -> None:
    here: JsonObject = {"fact": "The tests need  Docker.", "scope": "folder"}
    server = ModelServer(replies=[propose(here), DONE, Reply(text="Hello.")])
    async with engine_parts(tmp_path, server) as engine:
        task = await engine.start(approve="ask")
        (text,) = await told(engine, task)
        assert (
            text == "Proposed. It waits for the person to accept it; until then no agent is told. Go on with the work."
        )
        (fact,) = await engine.services.database.facts.all()
        nodes = engine.watcher.nodes()
        called = next(node for node in nodes if node.role == "assistant" and node.task_id == task.id)
        assert fact == Fact(
            id=fact.id,
            scope="folder",
            text="The tests need Docker.",
            status="proposed",
            at=fact.at,
            folder=task.request.workspace,
            by="Assistant",
            conversation_id=task.conversation_id,
            node_id=called.id,
        )
        assert [event.fact for event in engine.watcher.events if isinstance(event, FactUpdate)] == [fact]
        await engine.watcher.end((await engine.start(conversation_id=task.conversation_id, mode="chat")).id)
        assert "pinned" not in str(server.requests[2].messages[0]["content"])


async def test_an_equal_text_is_proposed_once(tmp_path: Path) -> None:
    equal: JsonObject = {"text": "use  TABS.", "scope": "always"}
    server = ModelServer(replies=[propose(TABS, equal), propose(TABS), DONE, propose(TABS), DONE])
    async with engine_parts(tmp_path, server) as engine:
        first, *again = await told(engine, await engine.start())
        assert first.startswith("Proposed.")
        assert all(text.startswith("The same was proposed before") for text in again) and len(again) == 2
        (fact,) = await engine.services.database.facts.all()
        await engine.services.facts.change(fact.id, "me", text=None, scope=None, folder=None)
        (text,) = await told(engine, await engine.start())
        assert text == "The person has pinned the same already: every agent is told."


async def test_a_task_can_propose_only_a_few_facts(tmp_path: Path) -> None:
    flood: list[JsonObject] = [{"text": f"It is {number}.", "scope": "me"} for number in range(20)]
    async with engine_parts(tmp_path, ModelServer(replies=[propose(*flood), DONE])) as engine:
        texts = await told(engine, await engine.start())
        assert [text.startswith("Proposed.") for text in texts].count(True) == 5
        assert texts[-1] == "This task has proposed 5 facts, which is the most. Go on with the work."
        assert len(await engine.services.database.facts.all()) == 5


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"text": " \n", "scope": "me"}, "this one is empty"),
        ({"text": LONG_TEXT, "scope": "me"}, "more than 500 characters"),
        ({"text": "a\x1b]8;;b", "scope": "me"}, "U+001B"),
        ({"text": "The token is ghp_0123456789abcdefghij.", "scope": "me"}, "key or a password"),
        ({"text": "Use tabs.", "scope": "everywhere"}, "scope"),
        ({"text": ["Use tabs."], "scope": "always"}, "text"),
        ({"text": "Use tabs."}, "scope"),
    ],
)
async def test_what_cannot_be_proposed_is_refused_with_the_reason(
    tmp_path: Path, arguments: JsonObject, reason: str
) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[propose(arguments), DONE])) as engine:
        (text,) = await told(engine, await engine.start())
        assert reason in text and len(text) < 1_000
        assert await engine.services.database.facts.all() == ()


async def test_a_proposal_that_a_crash_interrupted_is_stored_once(tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    async with engine_parts(tmp_path, ModelServer(replies=[propose(TABS), shell("sleep 30")])) as engine:
        task = await engine.start()
        await engine.watcher.task(task.id, lambda now: now.activity.current_tool == "shell")
        port = crash(engine, later)
        await engine.services.runner.stop(task.id, "me")
        await engine.watcher.end(task.id)
    async with engine_parts(later, ModelServer(replies=[propose(TABS), DONE], port=port)) as engine:
        (fact,) = await engine.services.database.facts.all()
        assert fact.text == "Use tabs."
        (text,) = await told(engine, await engine.start())
        assert text.startswith("The same was proposed before")


async def test_nothing_can_be_proposed_where_there_is_no_task(tmp_path: Path) -> None:
    tool = tool_of(make_tool_context(tmp_path), "propose_memory")
    assert str(await failure(tool, TABS)) == "Nothing can be proposed here."
    assert msgspec.json.encode(tool.parameters)


async def test_what_a_person_says_should_bind_later_is_proposed_for_the_folder(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        task = await engine.start("The tests fail. Always run the linter before you commit.", mode="chat")
        await engine.watcher.end(task.id)
        await engine.watcher.end((await engine.start("and now?", conversation_id=task.conversation_id)).id)
        (fact,) = await engine.services.database.facts.all()
        assert (fact.text, fact.status, fact.scope, fact.folder, fact.conversation_id) == (
            "Always run the linter before you commit.",
            "proposed",
            "folder",
            task.request.workspace,
            task.conversation_id,
        )
        await engine.services.facts.unpin(fact.id, "me")
        earlier = await engine.services.database.conversations.get(task.conversation_id)
        assert earlier is not None
        forgetful = msgspec.structs.replace(earlier, remembers=False)
        engine.services.log.publish(ConversationUpdate(conversation=forgetful))
        await engine.services.log.flush()
        again = await engine.start("Never touch the lock file.", conversation_id=task.conversation_id)
        await engine.watcher.end(again.id)
        assert await engine.services.database.facts.all() == ()


async def test_a_proposal_is_forgotten_with_the_message_it_quotes(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        earlier = await engine.start("The deploy script of the harbour is in /srv/deploy.sh", mode="chat")
        await engine.watcher.end(earlier.id)
        await remembered(engine)
        text = "Always run the deploy script of the harbour in /srv/deploy.sh twice."
        task = await engine.start(text, mode="chat")
        await engine.watcher.end(task.id)
        nodes = await branch(engine, task.conversation_id)
        assert any(isinstance(block, RecallBlock) for node in nodes for block in node.blocks)
        assert [fact.text for fact in await engine.services.database.facts.all()] == [text]
        (message,) = [node for node in nodes if node.role == "user"]
        await engine.services.forgetter.forget((message.id,), "me")
        assert await engine.services.database.facts.all() == ()

"""The personality of an agent: chosen with a task, kept for the next ones, and its effect on tasks."""

from pathlib import Path

import pytest

from errand.engine.agent.prompt.personalities import BUILTIN_PERSONALITIES
from errand.engine.core.errors import NotFound
from errand.protocol.agents import Personality
from errand.protocol.blocks import NoticeBlock
from errand.protocol.events import AgentUpdate, PersonalityDeleted, PersonalityUpdate
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer, Reply

PIRATE = Personality(
    id="pirate", name="Pirate", system_prompt="Talk like a pirate.", tools=("code",), thinking_level="low", color="red"
)


def hello() -> ModelServer:
    return ModelServer(answer=lambda request: Reply(text="Ahoy."))


async def prompt_and_tools(engine: EngineParts) -> tuple[str, set[str]]:
    """The model's last input."""
    body = engine.model.requests[-1].body
    tools = body["tools"]
    assert isinstance(tools, list)
    return str(engine.model.requests[-1].messages[0]["content"]), {str(tool) for tool in tools}


async def test_builtin_personalities_exist_at_every_start_and_keep_changes(tmp_path: Path) -> None:
    changed = Personality(id="coder", name="Coder", system_prompt="Mine.")
    async with engine_parts(tmp_path, hello()) as engine:
        assert await engine.services.database.personalities.all() == BUILTIN_PERSONALITIES
        engine.services.log.publish(PersonalityUpdate(personality=changed))
        await engine.services.log.flush()
    async with engine_parts(tmp_path, hello()) as engine:
        assert await engine.services.database.personalities.get("coder") == changed
        assert len(await engine.services.database.personalities.all()) == len(BUILTIN_PERSONALITIES)


async def test_a_task_sets_the_personality_of_its_agent_from_then_on(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, hello()) as engine:
        engine.services.log.publish(PersonalityUpdate(personality=PIRATE))
        await engine.services.log.flush()
        first = await engine.watcher.end((await engine.start("hello")).id)
        (began,) = await engine.services.database.agents.list(first.conversation_id)
        assert began.color == "blue"
        second = await engine.start("ahoy", conversation_id=first.conversation_id, personality_id="pirate")
        await engine.watcher.end(second.id)
        prompt, tools = await prompt_and_tools(engine)
        assert prompt.startswith("Talk like a pirate.")
        assert "'read'" in str(tools) and "'bash'" not in str(tools)
        assert second.request.thinking_level == "low"
        (agent,) = await engine.services.database.agents.list(first.conversation_id)
        updated_agents = [event.agent for event in engine.watcher.events if isinstance(event, AgentUpdate)]
        assert (agent.personality_id, agent.name, agent.color) == ("pirate", "Pirate", PIRATE.color)
        assert updated_agents[-1] == agent
        third = await engine.start("and again", conversation_id=first.conversation_id)
        await engine.watcher.end(third.id)
        assert (await prompt_and_tools(engine))[0].startswith("Talk like a pirate.")


async def test_an_agent_whose_personality_was_deleted_is_the_assistant_from_its_next_task_on(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, hello()) as engine:
        engine.services.log.publish(PersonalityUpdate(personality=PIRATE))
        await engine.services.log.flush()
        first = await engine.watcher.end((await engine.start("hello", personality_id="pirate")).id)
        engine.services.log.publish(PersonalityDeleted(personality_id="pirate"))
        await engine.services.log.flush()
        second = await engine.start("hello?", conversation_id=first.conversation_id)
        await engine.watcher.end(second.id)
        (agent,) = await engine.services.database.agents.list(first.conversation_id)
        assert agent.personality_id == "assistant"
        with pytest.raises(NotFound, match="no personality 'pirate'"):
            await engine.start("again", personality_id="pirate")


async def test_temperature_of_a_personality_is_sent_to_the_model(tmp_path: Path) -> None:
    cool = Personality(id="cool", name="Cool", system_prompt="", temperature=0.2)
    async with engine_parts(tmp_path, hello()) as engine:
        engine.services.log.publish(PersonalityUpdate(personality=cool))
        await engine.services.log.flush()
        for personality_id in (None, "cool"):
            await engine.watcher.end((await engine.start("hello", personality_id=personality_id)).id)
        assert [request.body.get("temperature") for request in engine.model.requests] == [None, 0.2]


async def test_refused_temperature_is_left_out_with_a_notice(tmp_path: Path) -> None:
    cool = Personality(id="cool", name="Cool", system_prompt="", temperature=0.2)
    refused = Reply(status=400, error="Unsupported value: 'temperature' does not support 0.2 with this model.")
    async with engine_parts(tmp_path, ModelServer(replies=[refused, Reply(text="Hello.")])) as engine:
        engine.services.log.publish(PersonalityUpdate(personality=cool))
        await engine.services.log.flush()
        ended = await engine.watcher.end((await engine.start("hello", personality_id="cool")).id)
        assert (ended.activity.status, ended.outcome.summary, ended.progress.step_count) == ("completed", "Hello.", 1)
        assert [request.body.get("temperature") for request in engine.model.requests] == [0.2, None]
        notices = [block for node in engine.watcher.nodes() for block in node.blocks if isinstance(block, NoticeBlock)]
        seen_notices = [(notice.kind, "temperature 0.2 was not sent" in notice_text(notice)) for notice in notices]
        assert seen_notices == [("model", True)]


def test_builtin_personalities_have_different_colours() -> None:
    assert len({personality.color for personality in BUILTIN_PERSONALITIES} - {""}) == len(BUILTIN_PERSONALITIES)

"""Personalities through the dispatcher."""

import msgspec

from errand.engine.storage.records.agents import ASSISTANT
from errand.engine.tools.registry import LISTED_NAMES
from errand.protocol.agents import Personality, PersonalityListResult
from errand.protocol.base import JsonObject
from errand.protocol.events import PersonalityDeleted, PersonalityUpdate
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer

PIRATE: JsonObject = {"id": "pirate", "name": "Pirate", "systemPrompt": "Talk like one.", "tools": ["code"]}
SAVED = Personality(id="pirate", name="Pirate", system_prompt="Talk like one.", tools=("code",))


async def listed(client: RawClient, request_id: int) -> PersonalityListResult:
    return msgspec.convert((await client.ask("personality/list", request_id))["result"], PersonalityListResult)


async def test_personality_is_saved_changed_announced_and_deleted(engine: EngineServer) -> None:
    async with raw_client(engine) as client, raw_client(engine, client_id="other") as other:
        await other.ask("subscribe", 1, scope="all", detail="summary")
        await client.ask("personality/save", 1, personality=PIRATE)
        assert (await listed(client, 2)).personalities == (ASSISTANT, SAVED)
        await client.ask("personality/save", 3, personality={**PIRATE, "thinkingLevel": "high"})
        await client.ask("personality/delete", 4, personalityId="pirate")
        assert (await listed(client, 5)).personalities == (ASSISTANT,)
        events = [(await other.event()).event for _ in range(3)]
    assert events == [
        PersonalityUpdate(personality=SAVED),
        PersonalityUpdate(personality=msgspec.structs.replace(SAVED, thinking_level="high")),
        PersonalityDeleted(personality_id="pirate"),
    ]


async def test_personality_list_names_builtin_ones_and_available_tools(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        result = await listed(client, 1)
    assert [personality.id for personality in result.shipped] == ["assistant", "coder", "researcher", "writer"]
    assert result.tools == LISTED_NAMES


async def test_invalid_personality_is_refused_with_a_reason(engine: EngineServer) -> None:
    wrong: list[tuple[JsonObject, str]] = [
        ({"id": "a b"}, "id:"),
        ({"id": ""}, "id:"),
        ({"name": "  "}, "name:"),
        ({"name": "One\nTwo"}, "in one line"),
        ({"name": "a\x1b[31mb"}, "in one line"),
        ({"name": "ops@home"}, "without @"),
        ({"systemPrompt": "x" * 100_001}, "100,001 characters"),
        ({"model": "gpt"}, "provider/model"),
        ({"temperature": 2.1}, "temperature: a number from 0 to 2"),
        ({"temperature": -0.1}, "temperature: a number from 0 to 2"),
        ({"color": "mauve"}, "color"),
        ({"tools": ["telepathy"]}, "telepathy"),
    ]
    async with raw_client(engine) as client:
        for number, (change, reason) in enumerate(wrong):
            answer = await client.ask("personality/save", number, personality={**PIRATE, **change})
            assert error_of(answer)[1] == "invalid_params" and reason in error_of(answer)[2]
        same_name = await client.ask("personality/save", "n", personality={**PIRATE, "name": "ASSISTANT"})
        assert error_of(same_name)[1] == "conflict"
        assert error_of(await client.ask("personality/delete", "d", personalityId="pirate"))[1] == "not_found"
        shipped = error_of(await client.ask("personality/delete", "s", personalityId="assistant"))
        assert shipped[1] == "conflict" and "comes with Errand" in shipped[2]


async def test_of_two_that_are_saved_at_once_under_one_name_one_is_refused(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        for number in range(4):  # so that four connections read at once
            await client.request("personality/list", f"list {number}")
        await client.answers(4)
        for number in range(4):
            await client.request("personality/save", number, personality={**PIRATE, "id": f"pirate{number}"})
        answers, _ = await client.answers(4)
        assert sum("result" in answer for answer in answers) == 1
        assert {error_of(answer)[1] for answer in answers if "error" in answer} == {"conflict"}
        assert [personality.name for personality in (await listed(client, 9)).personalities] == [
            ASSISTANT.name,
            "Pirate",
        ]

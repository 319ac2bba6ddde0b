"""What is made in a conversation belongs to whom the conversation belongs to."""

from pathlib import Path

import msgspec

from app.protocol.asks import AskAnswerParams
from app.protocol.events import ConversationUpdate
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer, Reply
from tests.support.records import NOW, conversation
from tests.support.task_replies import DONE, shell


async def test_tasks_agents_asks_and_grants_have_the_owner_of_their_conversation(tmp_path: Path) -> None:
    turns = [shell("touch made.txt"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        theirs = msgspec.structs.replace(
            conversation("conv_team", at=NOW), owner="team", workspace=str(engine.workspace)
        )
        engine.services.log.publish(ConversationUpdate(conversation=theirs))
        await engine.services.log.flush()
        task = await engine.start(approve="ask", conversation_id="conv_team")
        ask = await engine.watcher.ask(task.id)
        answer = AskAnswerParams(ask_id=ask.id, allow=True, remember="conversation")
        await engine.services.runner.answer(answer, "me")
        await engine.watcher.end(task.id)
        (grant,) = await engine.services.database.grants.valid()
        (agent,) = await engine.services.database.agents.list("conv_team")
        assert {task.owner, ask.owner, grant.owner, agent.owner} == {"team"}


async def test_what_is_begun_alone_is_the_local_owners(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Done."))) as engine:
        task = await engine.start()
        assert (await engine.watcher.end(task.id)).owner == "local"

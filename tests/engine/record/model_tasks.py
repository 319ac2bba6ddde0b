"""Records of tasks with unusual models or modes."""

import asyncio
from pathlib import Path

from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.record.format import TaskRecord
from errand.protocol.agents import Agent
from errand.protocol.asks import AskAnswerParams
from errand.protocol.conversations import TurnTaking
from errand.protocol.tasks.methods import TaskSetModeParams, TaskStartParams
from errand.protocol.tasks.task import Task
from tests.engine.agent.run.test_model_fallback import DOWN
from tests.engine.agent.run.test_rate_limit_wait import AT_ONCE, SECOND
from tests.engine.agent.tasks.test_rounds import company, quiet, speaking
from tests.engine.tools.test_answer_schema import SCHEMA, complete
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.recorded_tasks import record_of

_TOOL = "<tool_name>shell</tool_name><parameters><command>echo hi</command></parameters>"


async def answered_by_another(home: Path) -> TaskRecord:
    """Its provider is down, so another model answers."""
    async with (
        ModelServer([shell("echo hi"), DONE]) as other,
        engine_parts(home, ModelServer([DOWN, DOWN]), RetryPolicy(attempts=1)) as engine,
    ):
        engine.services.keys.add_environment({"OLLAMA_HOST": other.url.removesuffix("/v1")})
        engine.services.settings.set("fallback_models", "ollama/second")
        task = await engine.watcher.end((await engine.start()).id)
        return await record_of(engine, task.id)


async def limited(home: Path) -> TaskRecord:
    """It waits twice for a rate limit."""
    async with engine_parts(home, ModelServer(replies=[shell("true"), SECOND, SECOND, DONE]), AT_ONCE) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        return await record_of(engine, task.id)


async def by_schema(home: Path) -> TaskRecord:
    """Its answer follows a schema at the second attempt, after a reminder."""
    replies = [Reply(text="Two."), complete({"files": 2}), complete({"files": []})]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        params = TaskStartParams(
            prompt="list the files",
            model="openai_compatible/test-model",
            api_base=engine.model.url,
            workspace=str(engine.workspace),
            approve="all",
            answer_schema=SCHEMA,
        )
        task = await engine.watcher.end((await engine.services.runner.start(params)).id)
        return await record_of(engine, task.id)


async def tools_as_text(home: Path) -> TaskRecord:
    """Its model writes calls as text."""
    replies = [
        Reply(text=f"<thinking>Look.</thinking>{_TOOL}"),
        Reply(text="<thinking>Bad.</thinking><tool_name>shell"),
    ]
    replies += [Reply(text="<final_answer>It said hi.</final_answer>")]
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        params = TaskStartParams(
            prompt="say hi",
            model="react/openai_compatible/small",
            api_base=engine.model.url,
            workspace=str(engine.workspace),
            approve="all",
        )
        task = await engine.watcher.end((await engine.services.runner.start(params)).id)
        return await record_of(engine, task.id)


async def repeated(home: Path) -> TaskRecord:
    """It makes the same call until it is told so."""
    async with engine_parts(home, ModelServer(replies=[*[shell("true")] * 4, DONE])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        return await record_of(engine, task.id)


async def made_a_chat(home: Path) -> TaskRecord:
    """A person turns it into a chat while it runs."""
    gate = asyncio.Event()
    update = Reply(calls=(Call("send_update", {"message": "looking"}),), gate=gate)
    server = ModelServer(replies=[shell("true"), update, Reply(text="Then: 4.")])
    async with engine_parts(home, server) as engine:
        started = await engine.start()
        await server.request(1)
        await engine.services.runner.set_mode(TaskSetModeParams(task_id=started.id, mode="chat"))
        gate.set()
        await engine.watcher.end(started.id)
        return await record_of(engine, started.id)


async def made_a_task(home: Path) -> TaskRecord:
    """A person turns it into a task although it would only have answered."""
    gate = asyncio.Event()
    server = ModelServer(replies=[shell("true"), Reply(text="I could go on.", gate=gate), DONE])
    async with engine_parts(home, server) as engine:
        started = await engine.start()
        await server.request(1)
        await engine.services.runner.set_mode(TaskSetModeParams(task_id=started.id, mode="task"))
        gate.set()
        await engine.watcher.end(started.id)
        return await record_of(engine, started.id)


async def of_several(home: Path) -> TaskRecord:
    """The turn of one of several agents."""
    server = speaking(lambda name, request: Reply(text=f"I am {name}."))
    async with engine_parts(home, server) as engine:
        tasks, writer = await _round(engine, TurnTaking(rule="round_robin", limit=9))
        return await record_of(engine, next(task.id for task in tasks if task.agent_id == writer.id))


async def of_one_that_was_removed(home: Path) -> TaskRecord:
    """The turn of an agent that was removed later."""
    server = speaking(lambda name, request: Reply(text=f"I am {name}."))
    async with engine_parts(home, server) as engine:
        tasks, writer = await _round(engine, TurnTaking(rule="round_robin", limit=9))
        await engine.services.agents.delete(writer.id)
        return await record_of(engine, next(task.id for task in tasks if task.agent_id == writer.id))


async def at_the_limit_of_a_round(home: Path) -> TaskRecord:
    """The round ends with the turn of one of several agents."""
    server = speaking(lambda name, request: Reply(text=f"I am {name}. @Coder @Writer @Anna, and you?"))
    async with engine_parts(home, server) as engine:
        tasks, _ = await _round(engine, TurnTaking(rule="addressed", limit=3))
        return await record_of(engine, max(tasks, key=lambda task: task.started_at).id)


async def _round(engine: EngineParts, rule: TurnTaking) -> tuple[tuple[Task, ...], Agent]:
    """The tasks of an ended round of three, and the third agent."""
    anna, _, writer = await company(engine, rule)
    await engine.watcher.end((await engine.start("hello", conversation_id=anna.conversation_id, mode="chat")).id)
    await quiet(engine)
    return await engine.services.database.tasks.of_conversation(anna.conversation_id), writer


async def in_changing_modes(home: Path) -> TaskRecord:
    """A person allows a call, switches to plan mode while another waits, and then to accepting edits."""
    change = Call("code", {"action": "write", "path": "made", "content": "hello\n"})
    question = Reply(calls=(Call("ask_user", {"question": "Shall I?"}),))
    turns = [shell("touch a"), shell("touch b"), shell("touch c"), question, Reply(calls=(change,)), shell("touch d")]
    async with engine_parts(home, ModelServer(turns=[*turns, DONE])) as engine:
        started = await engine.start(approve="ask")
        modes, asks = engine.services.runner.modes, engine.services.asks
        first = await engine.watcher.ask(started.id)
        await asks.answer(AskAnswerParams(ask_id=first.id, allow=True), "me")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 1)
        await engine.watcher.ask(started.id)
        await modes.change(started.conversation_id, "plan", "me", attended=True)
        asked = await engine.watcher.ask(started.id)
        await modes.change(started.conversation_id, "edits", "me", attended=True)
        await asks.answer(AskAnswerParams(ask_id=asked.id, text="yes"), "me")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 5)
        await engine.watcher.ask(started.id)
        await modes.change(started.conversation_id, "all", "me", attended=True)
        task = await engine.watcher.end(started.id)
        return await record_of(engine, task.id)


async def without_an_answer(home: Path) -> TaskRecord:
    """Nobody answers in time: an approval is denied and a question stays unanswered."""
    question = Reply(calls=(Call("ask_user", {"question": "Shall I?"}),))
    async with engine_parts(home, ModelServer(turns=[shell("touch a"), question, DONE])) as engine:
        engine.services.settings.set("ask_timeout", 0.001)
        task = await engine.watcher.end((await engine.start(approve="ask")).id)
        return await record_of(engine, task.id)

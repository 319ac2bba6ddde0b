"""One message for several models, and the comparison of the resulting branches."""

import asyncio
from pathlib import Path

import pytest

from errand.engine.agent.tasks.comparison import compare_branches
from errand.engine.core.errors import ConfigurationError, InvalidParams, NotFound
from errand.protocol.comparisons import ConversationCompareParams, TaskCompareModelsParams, TaskCompareModelsResult
from errand.protocol.tasks.methods import TaskStartParams
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer, ReceivedRequest, Reply

MODELS = ("openai_compatible/one", "openai_compatible/two", "openai_compatible/three")


def by_name(gate: asyncio.Event | None = None) -> ModelServer:
    """Each model answers with its name; all of them wait for the gate."""

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(text=f"I am {request.body['model']}.", gate=gate)

    return ModelServer(answer=answer)


async def ask(
    engine: EngineParts, models: tuple[str, ...] = MODELS, task_id: str = "task_ask", conversation_id: str | None = None
) -> TaskCompareModelsResult:
    start = TaskStartParams(
        prompt="Who are you?",
        task_id=task_id,
        conversation_id=conversation_id,
        api_base=engine.model.url,
        workspace=None if conversation_id else str(engine.workspace),
    )
    params = TaskCompareModelsParams(models=models, start=start)
    return await engine.services.models.comparison.ask(params)


async def test_compared_models_answer_one_message_at_once_on_separate_branches(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, by_name(gate)) as engine:
        asked = await ask(engine)
        await engine.model.request(2)
        assert [task.id for task in engine.services.runner.running.shown()] == ["task_ask", "task_ask_2", "task_ask_3"]
        gate.set()
        ended = [await engine.watcher.end(task.id) for task in asked.tasks]
        assert [(task.request.model, task.outcome.summary) for task in ended] == [
            (model, f"I am {model.partition('/')[2]}.") for model in MODELS
        ]
        (message, *replies) = engine.watcher.nodes()
        assert message.id == asked.node_id
        assert {reply.parent_id for reply in replies} == {message.id} and len(replies) == 3
        first, *others = await engine.services.database.agents.list(asked.tasks[0].conversation_id)
        assert [agent.beside for agent in others] == [first.id, first.id]
        assert [agent.model for agent in others] == list(MODELS[1:])
        sent = [[sent_message["content"] for sent_message in request.messages[1:]] for request in engine.model.requests]
        assert sent == [["Who are you?"]] * 3


async def test_comparison_with_a_known_id_is_not_repeated(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, by_name()) as engine:
        both = await asyncio.gather(ask(engine), ask(engine))
        assert [task.id for task in both[0].tasks] == [task.id for task in both[1].tasks]
        for task in both[0].tasks:
            await engine.watcher.end(task.id)
        assert len(engine.model.requests) == 3
        assert len(await engine.services.database.agents.list(both[0].tasks[0].conversation_id)) == 3


async def test_stopping_one_compared_task_leaves_the_others_running(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, by_name(gate)) as engine:
        asked = await ask(engine)
        await engine.model.request(2)
        await engine.services.runner.stop("task_ask_2", "the test")
        assert (await engine.watcher.end("task_ask_2")).outcome.stop_reason == "manual_stop"
        assert {task.id for task in engine.services.runner.running.shown()} >= {"task_ask", "task_ask_3"}
        gate.set()
        for task in asked.tasks:
            await engine.watcher.end(task.id)


async def test_comparison_in_an_existing_conversation_reads_its_messages(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, by_name()) as engine:
        before = await engine.watcher.end((await engine.start("Hello.")).id)
        asked = await ask(engine, MODELS[:2], conversation_id=before.conversation_id)
        for task in asked.tasks:
            await engine.watcher.end(task.id)
        for request in engine.model.requests[1:]:
            assert [message["content"] for message in request.messages[1:]] == [
                "Hello.",
                "I am test-model.",
                "Who are you?",
            ]


@pytest.mark.parametrize("models", [MODELS[:1], MODELS * 3])
async def test_too_few_or_too_many_models_are_refused(tmp_path: Path, models: tuple[str, ...]) -> None:
    async with engine_parts(tmp_path, by_name()) as engine:
        with pytest.raises(InvalidParams, match="models: 2 to 8"):
            await ask(engine, models)


async def test_comparison_does_not_start_if_one_model_is_invalid(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, by_name()) as engine:
        with pytest.raises(ConfigurationError):
            await ask(engine, (MODELS[0], "nobody/knows"))
        assert engine.services.runner.running.shown() == () and engine.watcher.events == []


async def test_branch_comparison_starts_at_the_common_ancestor(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, by_name()) as engine:
        asked = await ask(engine, MODELS[:2])
        for task in asked.tasks:
            await engine.watcher.end(task.id)
        _, first, second = engine.watcher.nodes()
        comparison = await compare_branches(
            ConversationCompareParams(a_node_id=first.id, b_node_id=second.id, limit=1), engine.services.database
        )
        assert comparison.ancestor_id == asked.node_id
        assert ([node.id for node in comparison.a.nodes], [node.id for node in comparison.b.nodes]) == (
            [first.id],
            [second.id],
        )
        assert [task.id for task in comparison.b.tasks] == [second.task_id]
        assert (comparison.a.count, comparison.a.usage) == (1, first.usage)
        above = await compare_branches(
            ConversationCompareParams(a_node_id=asked.node_id, b_node_id=second.id), engine.services.database
        )
        assert (above.ancestor_id, above.a.count, above.b.count) == (asked.node_id, 0, 1)


async def test_comparison_of_unknown_or_foreign_nodes_is_refused(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, by_name()) as engine:
        for _ in range(2):
            await engine.watcher.end((await engine.start("Hello.")).id)
        first, _, other, _ = engine.watcher.nodes()
        with pytest.raises(InvalidParams, match="different conversations"):
            await compare_branches(
                ConversationCompareParams(a_node_id=first.id, b_node_id=other.id), engine.services.database
            )
        with pytest.raises(NotFound):
            await compare_branches(
                ConversationCompareParams(a_node_id=first.id, b_node_id="none"), engine.services.database
            )

"""Sub-agents: parts of the work on branches of their own, with reports, limits, stops and crashes."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from errand.protocol.agents import Personality
from errand.protocol.asks import AskAnswerParams
from errand.protocol.base import JsonValue
from errand.protocol.events import PersonalityUpdate, TaskUpdate
from errand.protocol.tasks.methods import TaskRetryParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.stored_records import on_both

CHANGED_NOTHING = "[The sub-agent has only looked: none of its calls changed anything.]"
NO_TOOL = "[The sub-agent used no tool: it has looked at nothing and done nothing.]"


def order(*titles: str) -> Reply:
    return Reply(calls=tuple(Call("task", {"description": title, "prompt": f"Do {title}."}) for title in titles))


def told(request: ReceivedRequest) -> str:
    """The order or prompt that a request works on."""
    return next(str(message["content"]) for message in request.messages if message["role"] == "user")


def answer(by_prompt: dict[str, list[Reply]]) -> Callable[[ReceivedRequest], Reply]:
    """Replies by the prompt and the turn of a request."""
    return lambda request: by_prompt[told(request)][request.turn]


def children(engine: EngineParts, parent: Task) -> dict[str, Task]:
    """The newest state of each sub-agent's task, by title."""
    tasks = [event.task for event in engine.watcher.events if isinstance(event, TaskUpdate)]
    return {task.origin.title: task for task in tasks if task.origin.parent_id == parent.id}


async def child(engine: EngineParts, parent: Task, title: str, condition: Callable[[Task], bool]) -> Task:
    await engine.watcher.until(lambda: title in children(engine, parent) and condition(children(engine, parent)[title]))
    return children(engine, parent)[title]


async def test_sub_agents_work_at_once_and_their_reports_go_to_the_task(tmp_path: Path) -> None:
    gates = {name: asyncio.Event() for name in ("a", "b")}
    replies = {
        "go": [order("a", "b"), DONE],
        "Do a.": [Reply(text="Report of a.", gate=gates["a"])],
        "Do b.": [shell("echo b"), Reply(text="Report of b.", gate=gates["b"])],
    }
    server = ModelServer(answer=answer(replies))
    async with engine_parts(tmp_path, server) as engine:
        task = await engine.start()
        await child(engine, task, "b", lambda state: state.progress.step_count == 2)
        assert children(engine, task)["a"].outcome.ended_at is None
        gates["b"].set()
        await child(engine, task, "b", lambda state: state.outcome.ended_at is not None)
        gates["a"].set()
        ended = await engine.watcher.end(task.id)
        below = children(engine, task)
        assert (ended.activity.status, ended.progress.step_count, ended.progress.delegated_turns) == ("completed", 2, 3)
        assert (ended.total_usage.input_tokens, ended.progress.usage.input_tokens) == (500, 200)
        assert [
            (state.origin.depth, state.activity.status, state.outcome.summary) for state in (below["a"], below["b"])
        ] == [
            (1, "completed", "Report of a."),
            (1, "completed", "Report of b."),
        ]
        reports = [result.text for result in results(engine.watcher.nodes()) if result.tool == "task"]
        assert reports == [f"Report of a.\n{NO_TOOL}", f"Report of b.\n{CHANGED_NOTHING}"]
        agents = await engine.services.database.agents.list(task.conversation_id)
        assert [(agent.called_by, agent.beside) for agent in agents[1:]] == [(task.id, agents[0].id)] * 2
        page = await engine.services.database.trees.forks(
            await engine.services.database.nodes.path(agents[0].head_id or "")
        )
        assert page == ()


@pytest.mark.parametrize(
    ("call", "changed_nothing"), [("ls", True), ("touch a.txt", False), ("touch a.txt; false", False)]
)
async def test_what_sub_agents_change_counts_for_the_tasks_above(
    tmp_path: Path, call: str, changed_nothing: bool
) -> None:
    replies = {
        "go": [order("a"), DONE],
        "Do a.": [order("b"), Reply(text="a")],
        "Do b.": [shell(call), Reply(text="b")],
    }
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start()
        ended = await engine.watcher.end(task.id)
        child_task = children(engine, task)["a"]
        assert [each.outcome.changed_nothing for each in (ended, child_task)] == [changed_nothing] * 2


async def test_stop_of_the_task_stops_all_below_and_waits_for_them(tmp_path: Path) -> None:
    replies = {"go": [order("a")], "Do a.": [order("b")], "Do b.": [shell("sleep 60")]}
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start()
        first = await child(engine, task, "a", lambda state: state.activity.current_tool == "task")
        second = await child(engine, first, "b", lambda state: state.activity.current_tool == "shell")
        await engine.services.runner.stop(task.id, "me")
        ended = await engine.watcher.end(task.id)
        states = (children(engine, task)["a"], children(engine, first)["b"], ended)
        assert [state.activity.status for state in states] == ["cancelled"] * 3
        assert second.origin.depth == 2
        assert engine.services.runner.running.shown() == ()


async def test_sub_agent_stopped_alone_reports_so_and_the_task_goes_on(tmp_path: Path) -> None:
    replies = {"go": [order("a"), DONE], "Do a.": [shell("sleep 60")]}
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start()
        below = await child(engine, task, "a", lambda state: state.activity.current_tool == "shell")
        await engine.services.runner.stop(below.id, "me")
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
        report = next(result for result in results(engine.watcher.nodes()) if result.tool == "task")
        assert report.is_error and report.text.startswith("The person stopped this sub-agent")
        assert report.summary == "stopped by you"


async def test_use_of_sub_agents_counts_into_the_limits_of_the_task(tmp_path: Path) -> None:
    replies = {"go": [order("a"), DONE], "Do a.": [shell(f"echo {number}") for number in range(9)]}
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start(max_turns=4)
        ended = await engine.watcher.end(task.id)
        below = children(engine, task)["a"]
        assert (below.outcome.stop_reason, below.progress.step_count) == ("iteration_limit", 3)
        assert (ended.outcome.stop_reason, ended.progress.step_count + ended.progress.delegated_turns) == (
            "iteration_limit",
            4,
        )


async def test_deepest_sub_agents_have_no_tool_to_start_others(tmp_path: Path) -> None:
    replies = {
        "go": [order("a"), DONE],
        "Do a.": [order("b"), Reply(text="a")],
        "Do b.": [order("c"), Reply(text="b")],
        "Do c.": [order("d"), Reply(text="c")],
    }
    server = ModelServer(answer=answer(replies))
    async with engine_parts(tmp_path, server) as engine:
        assert (await engine.watcher.end((await engine.start()).id)).activity.status == "completed"
        refused = next(result for result in results(engine.watcher.nodes()) if result.is_error)
        assert refused.text.startswith("Tool task not found")


def offered(engine: EngineParts, prompt: str) -> set[str]:
    """The tools of the first request with this prompt."""
    return set(next(request for request in engine.model.requests if told(request) == prompt).offered)


async def test_sub_agent_never_has_a_tool_that_its_caller_has_not(tmp_path: Path) -> None:
    def give(title: str, **more: JsonValue) -> Reply:
        return Reply(calls=(Call("task", {"description": title, "prompt": f"Do {title}.", **more}),))

    replies = {
        "go": [give("a", personality="Reader"), DONE],
        "Do a.": [give("b", personality="Worker"), give("c", tools=["shell"]), Reply(text="a")],
        "Do b.": [Reply(text="b")],
    }
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        for name, tools in (("Worker", ("shell", "task", "search_memory")), ("Reader", ("task", "search_memory"))):
            personality = Personality(id=name.lower(), name=name, system_prompt="", tools=tools)
            engine.services.log.publish(PersonalityUpdate(personality=personality))
        await engine.services.log.flush()
        task = await engine.start(personality_id="worker")
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
        refused = next(result for result in results(engine.watcher.nodes()) if result.is_error)
        assert refused.text == "None of these tools may be used here: shell."
        assert {"bash", "task", "search_memory"} <= offered(engine, "go")
        for prompt in ("Do a.", "Do b."):
            assert offered(engine, prompt) & {"bash", "task", "search_memory"} == {"task", "search_memory"}


@on_both
async def test_resumed_task_takes_up_its_sub_agents_again(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = {
        "go": [order("a", "b"), DONE],
        "Do a.": [Reply(text="Report of a.")],
        "Do b.": [shell("echo once >> log"), Reply(text="Report of b.", gate=gate)],
    }
    later = tmp_path / "later"
    later.mkdir()
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start(api_key=None)
        await child(engine, task, "a", lambda state: state.outcome.ended_at is not None)
        await child(engine, task, "b", lambda state: state.progress.step_count == 2)
        await engine.services.log.flush()
        port = crash(engine, later)
        await engine.services.runner.stop(task.id, "me")
        await engine.watcher.end(task.id)
    gate.set()
    server = ModelServer(answer=answer(replies), port=port)
    async with engine_parts(later, server) as engine:
        stored = await engine.services.database.tasks.active()
        assert {state.activity.status for state in stored} == {"interrupted"} and len(stored) == 2
        await engine.services.runner.resume(task.id)
        ended = await engine.watcher.end(task.id)
        assert ended.activity.status == "completed", ended.outcome.error
        every = await engine.services.database.tasks.of_conversation(task.conversation_id)
        assert len(every) == 3 and {state.activity.status for state in every} == {"completed"}
        reports = [result.text for result in results(engine.watcher.nodes()) if result.tool == "task"]
        assert reports == [f"Report of a.\n{NO_TOOL}", "Report of b."]
        assert ended.progress.delegated_turns == 3


async def test_stop_of_an_interrupted_task_ends_its_sub_agents(tmp_path: Path) -> None:
    replies = {"go": [order("a")], "Do a.": [Reply(text="never", gate=asyncio.Event())]}
    later = tmp_path / "later"
    later.mkdir()
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start()
        await child(engine, task, "a", lambda state: state.progress.step_count == 1)
        await engine.services.log.flush()
        crash(engine, later)
        await engine.services.runner.stop(task.id, "me")
        await engine.watcher.end(task.id)
    async with engine_parts(later, ModelServer(replies=[])) as engine:
        await engine.services.runner.stop(task.id, "me")
        assert await engine.services.database.tasks.active() == ()


async def test_pause_of_a_task_pauses_its_sub_agents(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = {
        "go": [order("a"), DONE],
        "Do a.": [Reply(calls=shell("true").calls, gate=gate), Reply(text="Report.")],
    }
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start()
        await child(engine, task, "a", lambda state: state.progress.step_count == 1)
        await engine.services.runner.pause(task.id)
        gate.set()
        await child(engine, task, "a", lambda state: state.activity.status == "paused")
        await engine.services.runner.resume(task.id)
        assert (await engine.watcher.end(task.id)).activity.status == "completed"


async def test_stop_of_a_task_whose_sub_agent_waits_for_an_approval_settles_the_ask(tmp_path: Path) -> None:
    replies = {"go": [order("a")], "Do a.": [order("b")], "Do b.": [shell("touch made")]}
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start(approve="ask")
        first = await child(engine, task, "a", lambda state: state.activity.current_tool == "task")
        second = await child(engine, first, "b", lambda state: state.activity.status == "waiting_user")
        ask = await engine.watcher.ask(second.id)
        assert (ask.conversation_id, ask.task_id) == (task.conversation_id, second.id)
        await engine.services.runner.stop(task.id, "me")
        await engine.watcher.end(task.id)
        every = await engine.services.database.tasks.of_conversation(task.conversation_id)
        assert {state.activity.status for state in every} == {"cancelled"}
        await engine.services.log.flush()
        (stored,) = await engine.services.database.asks.page(task_ids=(second.id,))
        assert stored.status == "cancelled"
        assert not (engine.workspace / "made").exists()


async def test_limit_that_sub_agents_reach_is_asked_about_once_by_the_task_at_the_top(tmp_path: Path) -> None:
    commands = [shell(f"echo {number}") for number in range(9)]
    replies = {"go": [order("a", "b"), DONE], "Do a.": [*commands, DONE], "Do b.": [*commands, DONE]}
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.start(max_turns=6, approve="edits", attended=True)
        ask = await engine.watcher.ask(task.id)
        below = children(engine, task)
        assert ask.kind == "limit" and all(state.outcome.ended_at is not None for state in below.values())
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        ended = await engine.watcher.end(task.id)
        assert ended.activity.status == "completed"
        assert [state.outcome.stop_reason for state in below.values()] == ["iteration_limit"] * 2
        assert ended.progress.step_count == 2 and ended.progress.delegated_turns == sum(
            state.progress.step_count for state in below.values()
        )


async def test_retried_reply_starts_sub_agents_of_its_own(tmp_path: Path) -> None:
    replies = {"go": [order("a"), DONE], "Do a.": [Reply(text="Report of a.")]}
    async with engine_parts(tmp_path, ModelServer(answer=answer(replies))) as engine:
        task = await engine.watcher.end((await engine.start(api_key=None)).id)
        reply = next(node for node in engine.watcher.nodes() if node.task_id == task.id and node.role == "assistant")
        again = await engine.services.runner.retry(TaskRetryParams(node_id=reply.id))
        assert (await engine.watcher.end(again.id)).activity.status == "completed"
        first, second = children(engine, task)["a"], children(engine, again)["a"]
        assert first.id != second.id and (first.activity.status, second.activity.status) == ("completed", "completed")
        agents = await engine.services.database.agents.list(task.conversation_id)
        assert [agent.name for agent in agents] == ["Assistant", "a", "a 2"]
        outline = await engine.services.database.trees.outline(
            task.conversation_id, await engine.services.database.tasks.of_conversation(task.conversation_id)
        )
        orders = [node for node in outline.nodes if node.task_from]
        replies_of = {node.id: node.task_id for node in outline.nodes}
        assert [replies_of[node.parent_id or ""] for node in orders] == [task.id, again.id]


async def test_next_task_begins_in_the_folder_of_the_last_one_and_not_in_that_of_its_sub_agents(tmp_path: Path) -> None:
    replies = {
        "go": [shell("mkdir -p one two; cd one"), order("a"), DONE],
        "Do a.": [shell("cd two"), Reply(text="Report of a.")],
    }
    server = ModelServer(answer=lambda request: DONE if request.turn > 2 else answer(replies)(request))
    async with engine_parts(tmp_path, server) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        second = await engine.start("more", conversation_id=task.conversation_id)
        assert second.progress.working_dir == task.progress.working_dir == str(engine.workspace / "one")
        await engine.watcher.end(second.id)


async def test_a_sub_agent_that_gives_no_answer_is_an_error_for_the_task(tmp_path: Path) -> None:
    thoughts = Reply(thinking="I think.")
    replies = [order("a"), thoughts, thoughts, DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        ended = await engine.watcher.end((await engine.start()).id)
        (result,) = [block for block in results(engine.watcher.nodes()) if block.tool == "task"]
        assert ended.activity.status == "completed"
        assert (result.is_error, result.summary) == (True, "no answer")
        assert "The sub-agent gave no answer" in result.text

"""How a task counts as completed: by what ran in it and how it ended, in each mode."""

import asyncio
from pathlib import Path

import pytest

from errand.protocol.asks import AskAnswerParams
from errand.protocol.blocks import TextBlock
from errand.protocol.tasks.groups import Completion, TaskMode
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply

CLAIM = Reply(text="I wrote a.txt.")
# As models answer that call tools as text or as constrained JSON.
CLAIM_WITH_COMPLETION = Reply(text="I wrote a.txt.", calls=(Call("task_complete", {"summary": "I wrote a.txt."}),))
ENDS = {"reply": CLAIM, "task_complete": DONE, "both": CLAIM_WITH_COMPLETION}
UPDATE = Reply(calls=(Call("send_update", {"message": "I begin."}),))
TODO = Reply(calls=(Call("todo", {"items": [{"text": "Write", "status": "done"}]}),))
READ = Reply(calls=(Call("code", {"action": "read", "path": "notes.txt"}),))
NO_SUCH_TOOL = Reply(calls=(Call("teleport", {"to": "Mars"}),))
WORK = {
    "nothing": (),
    "control": (UPDATE, TODO),
    "unknown tool": (NO_SUCH_TOOL,),
    "read": (READ,),
    "change": (shell("touch a.txt"),),
}


async def ended(engine: EngineParts, mode: TaskMode) -> Task:
    (engine.workspace / "notes.txt").write_text("one\n")
    return await engine.watcher.end((await engine.start(mode=mode)).id)


def engine_messages(engine: EngineParts) -> list[str | None]:
    nodes = (node for node in engine.watcher.nodes() if node.role == "user" and node.author == "engine")
    return [block.engine_message for node in nodes for block in node.blocks if isinstance(block, TextBlock)]


@pytest.mark.parametrize("end", ["reply", "task_complete", "both"])
@pytest.mark.parametrize("work", ["nothing", "control", "unknown tool"])
async def test_an_end_without_a_tool_is_an_answer_and_is_not_asked_about(tmp_path: Path, work: str, end: str) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[*WORK[work], ENDS[end]])) as engine:
        task = await ended(engine, "auto")
        assert (task.activity.status, task.outcome.completion) == ("completed", "answered")
        assert (task.progress.tool_runs, engine_messages(engine)) == (0, [])


@pytest.mark.parametrize("work", ["nothing", "read", "change"])
async def test_a_chat_without_a_tool_is_an_answer_too(tmp_path: Path, work: str) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[*WORK[work], CLAIM])) as engine:
        task = await ended(engine, "chat")
        assert task.outcome.completion == ("answered" if work == "nothing" else "replied")


@pytest.mark.parametrize("end", ["reply", "task_complete", "both"])
@pytest.mark.parametrize("work", ["read", "change"])
async def test_an_end_after_a_tool_is_a_completion(tmp_path: Path, work: str, end: str) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[*WORK[work], ENDS[end]])) as engine:
        task = await ended(engine, "auto")
        assert (task.outcome.completion, task.progress.tool_runs) == ("replied" if end == "reply" else "declared", 1)


@pytest.mark.parametrize("end", ["reply", "task_complete", "both"])
@pytest.mark.parametrize("work", ["nothing", "control", "unknown tool"])
async def test_a_task_without_work_is_asked_once_and_ends_unfinished(tmp_path: Path, work: str, end: str) -> None:
    server = ModelServer(replies=[*WORK[work], ENDS[end], ENDS[end]])
    async with engine_parts(tmp_path, server) as engine:
        task = await ended(engine, "task")
        assert (task.activity.status, task.outcome.completion) == ("completed", "no_work")
        assert engine_messages(engine) == ["no_work"]
        assert "Nothing is done yet" in str(server.requests[-1].messages[-1]["content"])


@pytest.mark.parametrize("end", ["reply", "task_complete", "both"])
async def test_a_task_that_works_when_it_is_asked_is_done_once_it_says_so(tmp_path: Path, end: str) -> None:
    replies = [ENDS[end], shell("touch a.txt"), DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        task = await ended(engine, "task")
        assert (task.outcome.completion, engine_messages(engine)) == ("declared", ["no_work"])


@pytest.mark.parametrize(
    ("replies", "completion", "messages"),
    [
        ([shell("true"), CLAIM, DONE], "declared", ["nudge"]),
        ([shell("true"), CLAIM, CLAIM], "undeclared", ["nudge"]),
        ([shell("true"), CLAIM, UPDATE, CLAIM], "undeclared", ["nudge"]),
        ([shell("true"), CLAIM, shell("true"), CLAIM, CLAIM], "undeclared", ["nudge", "nudge"]),
        ([CLAIM, shell("true"), CLAIM, CLAIM], "undeclared", ["no_work", "nudge"]),
        ([shell("true"), CLAIM_WITH_COMPLETION], "declared", []),
    ],
)
async def test_a_reply_without_a_call_is_asked_about_once_until_a_tool_has_run_again(
    tmp_path: Path, replies: list[Reply], completion: Completion, messages: list[str]
) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        task = await ended(engine, "task")
        assert (task.outcome.completion, engine_messages(engine)) == (completion, messages)


MISSING = Reply(calls=(Call("code", {"action": "read", "path": "missing.txt"}),))
NO_MATCH = shell("grep nothing notes.txt")
DENIED = shell("rm -rf /")
PATCH_MISSING = Reply(calls=(Call("code", {"action": "patch", "path": "notes.txt", "old": "two", "new": "three"}),))
PATCH = Reply(calls=(Call("code", {"action": "patch", "path": "notes.txt", "old": "one", "new": "two"}),))
PROPOSE = Reply(calls=(Call("propose_memory", {"text": "They write in German.", "scope": "me"}),))


@pytest.mark.parametrize("end", ["reply", "task_complete", "both"])
@pytest.mark.parametrize(
    ("calls", "failed"),
    [
        ([shell("exit 3")], True),
        ([MISSING], True),
        ([shell("true"), NO_SUCH_TOOL], True),
        ([shell("cat missing.txt")], True),
        ([shell("exit 3"), UPDATE], True),
        ([shell("exit 3"), shell("touch a.txt")], False),
        ([shell("exit 3"), shell("true")], True),
        ([shell("exit 3"), READ, NO_MATCH], True),
        ([PATCH_MISSING, READ], True),
        ([PATCH_MISSING, MISSING, shell("touch a.txt")], False),
        ([MISSING, READ], False),
        ([NO_MATCH], False),
        ([shell("diff notes.txt other.txt")], False),
        ([shell("true"), DENIED], False),
        ([shell("true"), UPDATE], False),
    ],
)
async def test_a_last_call_that_failed_is_kept_with_the_task(
    tmp_path: Path, calls: list[Reply], failed: bool, end: str
) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[*calls, ENDS[end]])) as engine:
        (engine.workspace / "other.txt").write_text("two\n")
        task = await ended(engine, "auto")
        assert (task.outcome.completion, task.progress.last_call_failed) == (
            "replied" if end == "reply" else "declared",
            failed,
        )


@pytest.mark.parametrize("mode", ["auto", "task"])
@pytest.mark.parametrize(
    ("calls", "changed_nothing"),
    [
        ((READ,), True),
        ((MISSING, READ), True),
        ((shell("cat notes.txt | wc -l"), UPDATE, TODO), True),
        ((NO_MATCH,), True),
        ((PATCH_MISSING, READ), True),
        ((PATCH, READ), False),
        ((PATCH, PATCH_MISSING), False),
        ((shell("python3 -c 'print(1)'"),), False),
        ((shell("cat notes.txt > copy.txt"),), False),
        ((shell("exit 3"), READ), False),
        ((PROPOSE,), False),
    ],
)
async def test_a_task_whose_calls_only_looked_has_changed_nothing(
    tmp_path: Path, calls: tuple[Reply, ...], changed_nothing: bool, mode: TaskMode
) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[*calls, DONE])) as engine:
        task = await ended(engine, mode)
        assert (task.outcome.completion, task.outcome.changed_nothing) == ("declared", changed_nothing)


async def test_what_a_call_changed_before_a_crash_counts(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[shell("touch a.txt"), Reply(text="never sent", gate=gate)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(1)
        port = crash(engine, tmp_path / "after")
        gate.set()
        await engine.watcher.end(started.id)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[READ, DONE], port=port)) as engine:
        await engine.services.runner.resume(started.id)
        assert not (await engine.watcher.end(started.id)).outcome.changed_nothing


@pytest.mark.parametrize("end", ["task_complete", "both"])
async def test_a_declaration_that_names_a_file_of_no_call_is_marked(tmp_path: Path, end: str) -> None:
    claim = Reply(
        text="I wrote a.txt." if end == "both" else "",
        calls=(Call("task_complete", {"summary": "I wrote a.txt and notes.txt."}),),
    )
    async with engine_parts(tmp_path, ModelServer(replies=[READ, claim])) as engine:
        task = await ended(engine, "auto")
        assert (task.outcome.completion, task.outcome.untouched) == ("declared", ("a.txt",))


async def test_a_reply_is_marked_if_a_person_named_the_file(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[READ, CLAIM, READ, CLAIM])) as engine:
        (engine.workspace / "notes.txt").write_text("one\n")
        named = await engine.watcher.end((await engine.start("Write a.txt.")).id)
        (engine.workspace / "a.txt").write_text("is told of with the folder")
        advised = await engine.watcher.end((await engine.start("Look around.")).id)
        assert [task.outcome.untouched for task in (named, advised)] == [("a.txt",), ()]


async def test_calls_before_a_crash_touch_what_the_last_words_name(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[shell("touch a.txt"), Reply(text="never sent", gate=gate)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start("Write a.txt and b.txt.")
        await server.request(1)
        port = crash(engine, tmp_path / "after")
        gate.set()
        await engine.watcher.end(started.id)
    claim = Reply(calls=(Call("task_complete", {"summary": "I wrote a.txt and b.txt."}),))
    async with engine_parts(tmp_path / "after", ModelServer(replies=[claim], port=port)) as engine:
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).outcome.untouched == ("b.txt",)


async def test_a_question_alone_is_no_work(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which?"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[question, DONE, DONE])) as engine:
        started = await engine.start(mode="task", attended=True)
        ask = await engine.watcher.ask(started.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="This one."), "me")
        task = await engine.watcher.end(started.id)
        assert (task.outcome.completion, engine_messages(engine)) == ("no_work", ["no_work"])


async def test_a_message_that_waits_is_read_before_the_end_is_judged(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(text="Done.", gate=gate), DONE, shell("touch a.txt"), DONE])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start(mode="task")
        await server.request(0)
        await engine.say(started.id, "And b.txt.", "follow_up")
        gate.set()
        task = await engine.watcher.end(started.id)
        assert (task.outcome.completion, engine_messages(engine)) == ("declared", ["no_work"])


async def test_tools_that_ran_before_a_crash_count(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[READ, Reply(text="never sent", gate=gate)])
    async with engine_parts(tmp_path, server) as engine:
        (engine.workspace / "notes.txt").write_text("one\n")
        started = await engine.start()
        await server.request(1)
        port = crash(engine, tmp_path / "after")
        gate.set()
        await engine.watcher.end(started.id)
    async with engine_parts(tmp_path / "after", ModelServer(replies=[CLAIM], port=port)) as engine:
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).outcome.completion == "replied"


async def test_an_answer_that_follows_a_schema_needs_no_tool(tmp_path: Path) -> None:
    answer = Reply(calls=(Call("task_complete", {"summary": "Ada.", "answer": {"name": "Ada"}}),))
    async with engine_parts(tmp_path, ModelServer(replies=[answer])) as engine:
        params = TaskStartParams(
            prompt="Who wrote this? Ada.",
            model="openai_compatible/test-model",
            api_base=engine.model.url,
            api_key="sk-test-key-of-the-tests",
            workspace=str(engine.workspace),
            answer_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        )
        task = await engine.watcher.end((await engine.services.runner.start(params)).id)
        assert (task.outcome.completion, task.outcome.answer) == ("answered", {"name": "Ada"})
        assert engine_messages(engine) == []

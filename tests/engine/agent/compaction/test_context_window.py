"""A task whose conversation exceeds the context window, with a model server that has a small one."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from errand.protocol.asks import AskAnswerParams
from errand.protocol.base import JsonObject
from errand.protocol.blocks import NoticeBlock, SummaryBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.methods import TaskStartParams
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts
from tests.support.local_servers import llama_cpp
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

# The warning comes in its last tenth before the summary, and a step takes about 850 tokens.
WINDOW = 9_000
LONG = "The harbour of Kiel was quiet that night. " * 40
SUMMARY = "## What the person wants\nTo look into the harbour."

QUESTION = Reply(calls=(Call("ask_user", {"question": "Which colour?"}),))


def is_summary(request: ReceivedRequest) -> bool:
    return str(request.messages[0]["content"]).startswith("You write the summary")


def size(request: ReceivedRequest) -> int:
    """The provider's count: a token per four characters."""
    return len(str(request.body)) // 4


def reader(step: Callable[[int], Reply], summary: Callable[[ReceivedRequest], Reply]) -> ModelServer:
    """Counts its input; `step` gives the reply of a turn, `summary` the reply to a summary request."""
    turns = iter(range(1_000))

    def answer(request: ReceivedRequest) -> Reply:
        reply = summary(request) if is_summary(request) else step(next(turns))
        return msgspec.structs.replace(reply, usage=(size(request), 30))

    return ModelServer(answer=answer)


def echo(turn: int) -> Reply:
    return Reply(calls=(Call("shell", {"command": f"echo step {turn}; echo '{LONG}'"}),))


def until_done(turns: int) -> Callable[[int], Reply]:
    return lambda turn: echo(turn) if turn < turns else Reply(text="Done.")


def summaries(engine: EngineParts) -> list[Node]:
    return [node for node in engine.watcher.nodes() if any(isinstance(b, SummaryBlock) for b in node.blocks)]


def warnings(engine: EngineParts) -> list[str]:
    blocks = [block for node in engine.watcher.nodes() for block in node.blocks]
    return [notice_text(block) for block in blocks if isinstance(block, NoticeBlock) and block.kind == "warning"]


def narrow(engine: EngineParts, tokens: int = WINDOW) -> None:
    engine.services.settings.set("context_tokens", tokens)


async def test_nearly_full_window_warns_and_then_older_messages_are_summarised(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, reader(until_done(12), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        started = await engine.start("Look into the harbour")
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, ended.outcome.stop_reason) == ("completed", "completed")
        asked = [request for request in engine.model.requests if is_summary(request)]
        summary_nodes = summaries(engine)
        assert len(summary_nodes) == len(asked) >= 1
        assert ended.progress.step_count == len(engine.model.requests) - len(asked)
        assert max(size(request) for request in engine.model.requests if not is_summary(request)) < WINDOW
        assert [text for text in warnings(engine) if "summarised" in text] != []
        block = next(block for block in summary_nodes[0].blocks if isinstance(block, SummaryBlock))
        assert (block.text, summary_nodes[0].usage and summary_nodes[0].usage.input_tokens) == (SUMMARY, size(asked[0]))
        assert block.tokens_after < block.tokens_before
        branch_nodes = await branch(engine, started.conversation_id)
        assert [node.id for node in summary_nodes] == [node.id for node in branch_nodes if node in summary_nodes]
        assert sum(node.role == "tool_result" for node in branch_nodes) == 12


async def test_after_a_summary_the_model_reads_it_and_the_newest_turns_with_calls_and_results_together(
    tmp_path: Path,
) -> None:
    async with engine_parts(tmp_path, reader(until_done(8), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        await engine.watcher.end((await engine.start("Look into the harbour")).id)
        after = engine.model.requests[-1].messages
        assert [message["role"] for message in after[:2]] == ["system", "user"]
        assert str(after[1]["content"]).endswith(f"{SUMMARY}\n\nLook into the harbour")
        calls = [call for message in after for call in _calls(message)]
        answered = [message["tool_call_id"] for message in after if message["role"] == "tool"]
        assert calls == answered != []


@pytest.mark.parametrize("can_be_summarised", [True, False])
async def test_a_change_of_plan_mode_is_read_also_when_what_was_around_it_is_left_out(
    tmp_path: Path, can_be_summarised: bool
) -> None:
    def step(turn: int) -> Reply:
        return QUESTION if turn in (0, 2) else look(turn) if turn < 18 else Reply(text="Done.")

    async with engine_parts(tmp_path, reader(step, lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        if not can_be_summarised:
            engine.services.settings.set("summarise_at", 0)
        (engine.workspace / "long.txt").write_text("\n".join(f"{line}: {LONG}" for line in range(20)))
        started = await engine.start("Look into the harbour", approve="edits")
        ask = await engine.watcher.ask(started.id)
        await engine.services.runner.modes.change(started.conversation_id, "plan", "window", attended=True)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, text="blue"), "me")
        second = await engine.watcher.ask(started.id)
        await engine.say(started.id, "Hurry.")
        await engine.services.asks.answer(AskAnswerParams(ask_id=second.id, text="green"), "me")
        await engine.watcher.end(started.id)
        assert bool(summaries(engine)) == can_be_summarised
        requests = [request for request in engine.model.requests[1:] if not is_summary(request)]
    assert {str(request.messages).count("## Plan mode") for request in requests} == {1}


async def test_plan_mode_of_an_earlier_message_is_read_after_a_summary(tmp_path: Path) -> None:
    def step(turn: int) -> Reply:
        return look(turn) if 2 <= turn < 14 else Reply(text="Done.")

    async with engine_parts(tmp_path, reader(step, lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        (engine.workspace / "long.txt").write_text("\n".join(f"{line}: {LONG}" for line in range(20)))
        modes: tuple[ApproveMode, ...] = ("edits", "plan", "plan")
        conversation_id: str | None = None
        for mode in modes:
            task = await engine.start(LONG * 4, approve=mode, conversation_id=conversation_id)
            conversation_id = (await engine.watcher.end(task.id)).conversation_id
        assert summaries(engine)
        requests = [request for request in engine.model.requests[1:] if not is_summary(request)]
    assert {str(request.messages).count("## Plan mode") for request in requests} == {1}


def look(turn: int) -> Reply:
    return Reply(calls=(Call("code", {"action": "read", "path": "long.txt", "start_line": turn, "end_line": turn}),))


def _calls(message: JsonObject) -> list[object]:
    calls = message.get("tool_calls")
    return [call["id"] for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


async def test_failed_summary_is_tried_twice_and_then_the_oldest_messages_are_left_out(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, reader(until_done(12), lambda _: Reply(text=SUMMARY, finish="length"))) as engine:
        narrow(engine)
        started = await engine.start("Look into the harbour")
        ended = await engine.watcher.end(started.id)
        assert ended.activity.status == "completed"
        assert sum(map(is_summary, engine.model.requests)) == 2
        assert (summaries(engine), await _kinds(engine, started.conversation_id)) == ([], {"tool_result": 12})
        warning_texts = warnings(engine)
        assert any(
            text.startswith("Older messages could not be summarised: The model did not come to its end.")
            for text in warning_texts
        )
        assert any("The context window is full" in text for text in warning_texts)
        assert max(map(size, engine.model.requests)) < WINDOW


async def _kinds(engine: EngineParts, conversation_id: str) -> dict[str, int]:
    nodes = await branch(engine, conversation_id)
    return {"tool_result": sum(node.role == "tool_result" for node in nodes)}


async def test_with_summaries_switched_off_the_oldest_messages_are_left_out(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, reader(until_done(12), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        engine.services.settings.set("summarise_at", 0)
        ended = await engine.watcher.end((await engine.start("Look into the harbour")).id)
        assert (ended.activity.status, summaries(engine)) == ("completed", [])
        assert not any(map(is_summary, engine.model.requests))
        assert max(map(size, engine.model.requests)) < 1.1 * WINDOW


async def test_request_refused_as_too_long_is_summarised_and_repeated(tmp_path: Path) -> None:
    too_long = Reply(status=400, error="This model's maximum context length is 4500 tokens.")

    def answer(request: ReceivedRequest) -> Reply:
        if is_summary(request):
            return Reply(text=SUMMARY)
        if size(request) > 4_500:
            return too_long
        return until_done(6)(request.turn) if "harbour." not in str(request.messages[1]) else Reply(text="Done.")

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        started = await engine.start("Look into it")
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, len(summaries(engine))) == ("completed", 1)
        assert not any(node.status == "failed" for node in await branch(engine, started.conversation_id))


async def test_request_that_cannot_be_shortened_fails_with_a_clear_error_and_no_loop(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, reader(lambda _: Reply(text="Done."), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        ended = await engine.watcher.end((await engine.start("x" * 90_000)).id)
        assert ended.activity.status == "error"
        assert ended.outcome.error is not None and "Nothing more can be left out" in ended.outcome.error
        assert engine.model.requests == []


async def test_a_first_message_beside_too_many_tools_names_what_takes_the_room(tmp_path: Path) -> None:
    refused = "request (4000 tokens) exceeds the available context size (2048 tokens), try increasing it"
    server = ModelServer([Reply(status=400, error=refused)] * 3, pages=llama_cpp("small.gguf", window=8192))
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        task = await engine.services.runner.start(TaskStartParams(prompt="hi", workspace=str(engine.workspace)))
        ended = await engine.watcher.end(task.id)
    error = ended.outcome.error or ""
    assert error.startswith("Instructions and tools take about ")
    assert "of the 2,048 tokens that small.gguf reads" in error
    assert error.endswith("Use the minimal set of tools, or start the server with -c 8192.")
    assert len(server.requests) == 1


async def test_a_stop_while_the_summary_is_made_ends_the_task(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, reader(until_done(12), lambda _: Reply(text=SUMMARY, gate=gate))) as engine:
        narrow(engine)
        started = await engine.start("Look into the harbour")
        await engine.watcher.task(started.id, lambda task: task.activity.detail.startswith("summarising"))
        await engine.services.runner.stop(started.id, "the test")
        ended = await engine.watcher.end(started.id)
        assert (ended.outcome.stop_reason, summaries(engine)) == ("manual_stop", [])


async def test_summary_interrupted_by_a_crash_is_made_again_and_a_stored_one_is_used(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, reader(until_done(12), lambda _: Reply(text=SUMMARY, gate=gate))) as engine:
        narrow(engine)
        started = await engine.start("Look into the harbour")
        before = await engine.watcher.task(started.id, lambda task: task.activity.detail.startswith("summarising"))
        port = crash(engine, tmp_path / "after")
        await engine.services.runner.stop(started.id, "the test")
        await engine.watcher.end(started.id)
    server = ModelServer(answer=lambda r: Reply(text=SUMMARY) if is_summary(r) else Reply(text="Done."), port=port)
    async with engine_parts(tmp_path / "after", server) as engine:
        await engine.services.runner.resume(started.id)
        ended = await engine.watcher.end(started.id)
        assert (ended.activity.status, len(summaries(engine))) == ("completed", 1)
        assert ended.progress.step_count == before.progress.step_count + 1
        assert [is_summary(request) for request in engine.model.requests] == [True, False]
    async with engine_parts(tmp_path / "after", server) as engine:
        again = await engine.start("And now?", conversation_id=started.conversation_id)
        await engine.watcher.end(again.id)
        text = str(engine.model.requests[-1].messages[1]["content"])
        assert text.endswith(f"{SUMMARY}\n\nLook into the harbour")
        assert len(summaries(engine)) == 0


async def test_resumed_task_uses_the_stored_summary(tmp_path: Path) -> None:
    gate = asyncio.Event()

    def answer(request: ReceivedRequest) -> Reply:
        if is_summary(request):
            reply = Reply(text=SUMMARY)
        elif SUMMARY in str(request.messages[1]["content"]):
            reply = Reply(text="Done.", gate=gate)
        else:
            reply = echo(request.turn)
        return msgspec.structs.replace(reply, usage=(size(request), 30))

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        narrow(engine)
        started = await engine.start("Look into the harbour")
        await engine.watcher.until(lambda: bool(summaries(engine)))
        await engine.services.log.flush()
        port = crash(engine, tmp_path / "after")
        await engine.services.runner.stop(started.id, "the test")
        await engine.watcher.end(started.id)
    gate.set()
    async with engine_parts(tmp_path / "after", ModelServer(answer=answer, port=port)) as engine:
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        (request,) = engine.model.requests
        assert str(request.messages[1]["content"]).endswith(f"{SUMMARY}\n\nLook into the harbour")

"""Behaviours 170 to 174: a task with a model without tool calls, on a real engine with real tools."""

from pathlib import Path

from tests.support.command_line import Errand
from tests.support.model_server import ModelServer, ReceivedRequest, Reply

MODEL = ("--model", "openai_compatible/gemma", "--api-base")
COUNT = '<tool_code>\n<name>shell</name>\n<parameters>\n{"command": "wc -l < notes.txt"}\n</parameters>\n</tool_code>'
ANSWER = Reply(text="<final_answer>The file has 2 lines.</final_answer>")


def like_ollama(*turns: Reply) -> ModelServer:
    """A server that refuses tools, and otherwise sends the reply of the turn."""

    def answer(request: ReceivedRequest) -> Reply:
        if "tools" in request.body:
            return Reply(status=400, error="registry.ollama.ai/library/gemma:2b does not support tools")
        return turns[request.turn]

    return ModelServer(answer=answer)


async def test_the_task_is_done_with_calls_written_as_text_and_that_is_said_once(
    errand: Errand, workspace: Path
) -> None:
    (workspace / "notes.txt").write_text("one\ntwo\n")
    async with like_ollama(Reply(text=f"I count.\n\n{COUNT}"), ANSWER) as server:
        done = await errand.run("run", "--approve", "all", *MODEL, server.url, "count the lines")
        seen = server.requests[-1].messages[-1]["content"]
        asked = ["tools" in request.body for request in server.requests]
    assert done.code == 0, done.err
    assert seen == "<observation>\n2\n</observation>"
    assert "I count." in done.out
    assert "● ran `wc -l < notes.txt` · exit 0" in done.out
    assert "The file has 2 lines." in done.out
    assert "<" not in done.out.replace("wc -l <", "")
    assert done.out.count("does not support tool calls") == 1
    assert asked == [True, False, False]


async def test_a_call_that_cannot_be_read_is_mended_by_the_model(errand: Errand, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("one\n")
    broken = Reply(text="<tool_code>\nshell: wc -l notes.txt\n</tool_code>")
    async with like_ollama(broken, Reply(text=COUNT), ANSWER) as server:
        done = await errand.run("run", "--approve", "all", *MODEL, server.url, "count the lines")
        result = str(server.requests[2].messages[-1]["content"])
    assert done.code == 0, done.err
    assert "Your call could not be parsed. Write it again" in result
    assert "✗ reading a call · it could not be read" in done.out
    assert "● ran `wc -l < notes.txt` · exit 0" in done.out


async def test_the_id_can_ask_for_it(errand: Errand, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("one\n")
    model = ("--model", "react/openai_compatible/gemma", "--api-base")
    async with like_ollama(Reply(text=COUNT), ANSWER) as server:
        done = await errand.run("run", "--approve", "all", *model, server.url, "count the lines")
        asked = len(server.requests)
    assert (done.code, asked) == (0, 2), done.err
    assert "does not call tools" not in done.out


async def test_a_final_answer_at_once_is_a_chat(errand: Errand) -> None:
    async with like_ollama(ANSWER) as server:
        done = await errand.run("run", *MODEL, server.url, "how many lines has it?")
    assert (done.code, "answered, no tool used" in done.out, "taken as a task" in done.out) == (0, True, False), (
        done.out
    )
    assert done.out.count("The file has 2 lines.") == 1


async def test_what_is_invented_after_a_call_is_neither_shown_as_the_reply_nor_believed(
    errand: Errand, workspace: Path
) -> None:
    (workspace / "notes.txt").write_text("one\n")
    invents = Reply(
        text=f"I count.\n{COUNT}\n<observation>\n99\n</observation>\n<final_answer>99 lines.</final_answer>"
    )
    async with like_ollama(invents, ANSWER) as server:
        done = await errand.run("run", "--approve", "all", *MODEL, server.url, "count the lines")
        sent = str(server.requests[-1].messages)
    assert done.code == 0, done.err
    assert "99 lines" not in done.out and "99 lines" not in sent and "<observation>" not in done.out
    assert "Only the first call of your reply was run" in sent

"""Behaviours 1 to 9: `errand run` starts one task and follows it to its end."""

import asyncio
from pathlib import Path

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def test_a_task_uses_real_tools_in_its_folder_and_its_answer_is_printed(errand: Errand, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("one\ntwo\n")
    replies = [
        Reply(calls=(Call("shell", {"command": "wc -l < notes.txt"}),)),
        Reply(text="The file has 2 lines."),
    ]
    async with ModelServer(replies=replies) as server:
        done = await errand.run("run", "--approve", "all", *MODEL, server.url, "count the lines")
        result = str(server.requests[1].messages[-1]["content"])
    assert done.code == 0, done.err
    assert "● ran `wc -l < notes.txt` · exit 0" in done.out
    assert "The file has 2 lines.\n• answered, nothing changed · 2 turns · 240 tokens" in done.out
    assert result.strip() == "2"


async def test_json_output_is_one_object_a_line_and_ends_with_the_result(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Good day.")]) as server:
        done = await errand.run("run", "--json", *MODEL, server.url, "greet me")
    *events, result = done.lines
    assert done.code == 0
    assert {str(event["method"]) for event in events} <= {"event", "delta"}
    assert any("Good day." in str(event["params"]) for event in events if event["method"] == "event")
    assert (result["type"], result["stopReason"], result["exitCode"], result["turns"]) == ("result", "completed", 0, 1)
    usage = result["usage"]
    assert isinstance(usage, dict)
    assert (usage["inputTokens"], usage["outputTokens"]) == (100, 20)


async def test_the_prompt_can_come_from_standard_input(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Good day.")]) as server:
        done = await errand.run("run", *MODEL, server.url, "-", typed="greet\nme")
        asked = server.requests[0].messages[-1]["content"]
    assert done.code == 0, done.err
    assert asked == "greet\nme"


async def test_what_cannot_be_asked_for_is_a_usage_error_that_says_what_to_do(errand: Errand) -> None:
    wrong = {
        "is empty": ("run", " "),
        "There is no folder": ("run", "--workspace", "nowhere", "x"),
        "MISSING_KEY is not set": ("run", "--api-key-env", "MISSING_KEY", "x"),
        "There is no provider named 'opnai'. Did you mean openai": ("run", "--model", "opnai/gpt-5.4", "x"),
        "is not a model id": ("run", "--model", "gpt", "x"),
        "is not a whole number": ("run", "--max-turns", "0", "x"),
        "there is no command 'runn'. Did you mean run": ("runn", "x"),
        "needs a terminal": ("chat",),
    }
    runs = await asyncio.gather(*(errand.run(*arguments) for arguments in wrong.values()))
    done = dict(zip(wrong, runs, strict=True))
    assert {text: run.code for text, run in done.items()} == dict.fromkeys(wrong, 2)
    assert [text for text, run in done.items() if text not in run.err] == []
    assert [run.err for run in done.values() if "Traceback" in run.err] == []


async def test_a_missing_key_is_an_error_that_names_the_variable_to_set(errand: Errand) -> None:
    done = await errand.run("run", "--json", "--model", "openai/gpt-5.4", "x")
    assert done.code in (1, 2)
    assert "OPENAI_API_KEY" in done.out + done.err
    assert done.lines[-1]["type"] == "result"


async def test_without_a_person_a_question_goes_back_to_the_model(errand: Errand) -> None:
    replies = [Reply(calls=(Call("ask_user", {"question": "Which tone?"}),)), Reply(text="I took a friendly one.")]
    async with ModelServer(replies=replies) as server:
        done = await errand.run("run", *MODEL, server.url, "write a note")
        answer = server.requests[1].messages[-1]["content"]
    assert done.code == 0
    assert str(answer).startswith("Not answered: nobody is there to ask.")
    assert "nobody could be asked" not in done.err
    assert f"? Which tone?\n  → {answer}\n" in done.out


async def test_without_a_person_what_needs_approval_does_not_run(errand: Errand, workspace: Path) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "touch made"}),)), Reply(text="I could not do it.")]
    async with ModelServer(replies=replies) as server:
        done = await errand.run("run", *MODEL, server.url, "make a file")
    assert done.code == 4
    assert "nobody could be asked" in done.err and "errand grants allow" in done.err
    assert not (workspace / "made").exists()


async def test_a_limit_of_turns_ends_the_task_with_exit_code_3(errand: Errand) -> None:
    replies = [Reply(calls=(Call("send_update", {"message": f"step {step}"}),)) for step in range(4)]
    async with ModelServer(turns=replies) as server:
        done = await errand.run("run", "--max-turns", "2", *MODEL, server.url, "work")
    assert done.code == 3
    assert "step 0\nstep 1\n" in done.out
    assert "turn limit reached" in done.out


async def test_a_conversation_goes_on_where_it_was(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="Noted."), Reply(text="It is 7.")]) as server:
        first = await errand.run("run", "--json", *MODEL, server.url, "remember 7")
        conversation = str(first.lines[-1]["conversationId"])
        second = await errand.run("run", "--conversation", conversation, *MODEL, server.url, "which number?")
        contents = [message["content"] for message in server.requests[1].messages[1:]]
    assert second.code == 0
    assert [str(text) for text in contents] == ["remember 7", "Noted.", "which number?"]
    assert "Noted." not in second.out

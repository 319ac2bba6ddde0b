"""The audit has one record for each call of a task, whatever became of it, and the terminal shows it."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

MALFORMED = '{"command": "ls'


async def records(errand: Errand, task_id: str) -> list[tuple[object, object]]:
    done = await errand.run("output", task_id, "--json")
    assert done.code == 0, done.err
    return [(line["tool"], line["outcome"]) for line in done.lines]


async def test_each_call_has_one_record(own_errand: Errand, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("tide tables\n")
    replies = [
        Reply(
            calls=(
                Call("search_memory", {"query": "tide tables"}),
                Call("todo", {"items": [{"text": "look", "status": "pending"}]}),
            )
        ),
        Reply(
            calls=(Call("send_update", {"message": "I look."}), Call("code", {"action": "read", "path": "notes.txt"}))
        ),
        Reply(calls=(Call("no_such_tool", {"a": 1}), Call("shell", MALFORMED), Call("shell", {"commando": "ls"}))),
        Reply(calls=(Call("shell", {"command": "exit 3"}), Call("shell", {"command": "touch done.txt"}))),
        Reply(calls=(Call("task", {"description": "look", "prompt": "Look.", "tools": ["code"]}),)),
        Reply(text="I have looked."),
        Reply(calls=(Call("task_complete", {"summary": "All done."}),)),
    ]
    async with ModelServer(replies=replies) as server:
        variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test-key-of-the-tests"}
        done = await own_errand.run(
            "run", "--approve", "all", "--model", "openai/test-model", "go", variables=variables
        )
    task = next(line for line in (await own_errand.run("tasks", "--json")).lines if line["parentId"] is None)
    assert done.code == 0, done.err
    recorded = await records(own_errand, str(task["id"]))
    assert Counter(recorded) == Counter(
        [
            ("search_memory", "done"),
            ("todo", "done"),
            ("send_update", "done"),
            ("code", "done"),
            ("no_such_tool", "refused"),
            ("shell", "refused"),
            ("shell", "refused"),
            ("shell", "failed"),
            ("shell", "done"),
            ("task", "done"),
            ("task_complete", "done"),
        ]
    )
    output = (await own_errand.run("output", str(task["id"]))).out
    assert output.count("refused") == 3 and len(output.splitlines()) == len(recorded)


@pytest.mark.parametrize("approve", ["never", "deny rule"])
async def test_a_call_that_was_denied_has_a_record(own_errand: Errand, approve: str) -> None:
    if approve == "deny rule":
        assert (await own_errand.run("grants", "deny", "touch")).code == 0
    replies = [Reply(calls=(Call("shell", {"command": "touch x"}),)), Reply(text="It was not done.")]
    async with ModelServer(replies=replies) as server:
        variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test-key-of-the-tests"}
        mode = "never" if approve == "never" else "all"
        await own_errand.run("run", "--approve", mode, "--model", "openai/test-model", "go", variables=variables)
    (task,) = (await own_errand.run("tasks", "--json")).lines
    assert await records(own_errand, str(task["id"])) == [("shell", "refused")]

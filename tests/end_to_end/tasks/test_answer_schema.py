"""Behaviours 140 and 141: structured answers for programs."""

from pathlib import Path

import msgspec

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
SCHEMA = {"type": "object", "properties": {"lines": {"type": "integer"}}, "required": ["lines"]}


async def test_with_a_schema_the_answer_alone_is_the_output(errand: Errand, workspace: Path) -> None:
    (workspace / "schema.json").write_bytes(msgspec.json.encode(SCHEMA))
    reply = Reply(text="I count.", calls=(Call("task_complete", {"summary": "Counted.", "answer": {"lines": 2}}),))
    async with ModelServer(replies=[reply]) as server:
        done = await errand.run("run", "--answer-schema", "schema.json", *MODEL, server.url, "count the lines")
    assert (done.code, done.out) == (0, '{"lines":2}\n')
    assert "answered, no tool used" in done.err


async def test_a_schema_that_cannot_be_used_is_said_at_once(errand: Errand, workspace: Path) -> None:
    (workspace / "list.json").write_text("[1]")
    (workspace / "wrong.json").write_text('{"type": "objekt"}')
    for name, error in {
        "none.json": "cannot be read",
        "list.json": "not a JSON object",
        "wrong.json": "usable",
    }.items():
        done = await errand.run("run", "--answer-schema", name, "--model", "scripted/tour-1", "x")
        assert (done.code, done.out) == (2, "")
        assert error in done.err

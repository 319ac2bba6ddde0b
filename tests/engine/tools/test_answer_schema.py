"""A task whose answer follows a JSON Schema."""

from pathlib import Path

import pytest

from errand.engine.core.errors import InvalidParams
from errand.protocol.base import JsonObject
from errand.protocol.tasks.groups import TaskMode
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import Call, ModelServer, Reply

# A reference to a part of the schema, which must still resolve inside the tool's schema.
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"$ref": "#/$defs/file"}}},
    "required": ["files"],
    "additionalProperties": False,
    "$defs": {
        "file": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "lines": {"type": "integer"}},
            "required": ["name", "lines"],
        }
    },
}


async def ended(engine: EngineParts, schema: JsonObject = SCHEMA, mode: TaskMode = "auto") -> Task:
    params = TaskStartParams(
        prompt="list the files",
        model="openai_compatible/test-model",
        api_base=engine.model.url,
        workspace=str(engine.workspace),
        approve="all",
        mode=mode,
        answer_schema=schema,
    )
    return await engine.watcher.end((await engine.services.runner.start(params)).id)


def complete(answer: JsonObject) -> Reply:
    return Reply(calls=(Call("task_complete", {"summary": "Listed.", "answer": answer}),))


async def test_invalid_answer_is_returned_to_the_model_and_the_valid_one_is_stored(
    tmp_path: Path,
) -> None:
    replies = [complete({"files": [{"name": "a.txt"}]}), complete({"files": [{"name": "a.txt", "lines": "2"}]})]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        task = await ended(engine)
        refusal = str(engine.model.requests[1].messages[-1]["content"])
    assert (task.activity.status, task.outcome.error, task.options.mode) == ("completed", None, "task")
    assert task.outcome.answer == {"files": [{"name": "a.txt", "lines": 2}]}
    assert "answer.files.0: must contain ['lines'] properties" in refusal


async def test_text_is_not_an_answer_and_a_missing_answer_fails_the_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="There are two."))) as engine:
        task = await ended(engine)
        asked = len(engine.model.requests)
    assert asked == 2
    assert (task.activity.status, task.outcome.answer) == ("error", None)
    assert "without an answer that follows the schema" in (task.outcome.error or "")


async def test_the_answer_may_be_null_or_a_plain_value(tmp_path: Path) -> None:
    reply = Reply(calls=(Call("task_complete", {"summary": "None.", "answer": None}),))
    async with engine_parts(tmp_path, ModelServer(replies=[reply])) as engine:
        task = await ended(engine, {"type": ["integer", "null"]})
    assert (task.activity.status, task.outcome.answer) == ("completed", None)


def row(length: int, times: int) -> JsonObject:
    """Parts each of which references the next one this many times."""
    parts: JsonObject = {str(length): {}}
    for number in range(length):
        next_one: JsonObject = {"$ref": f"#/$defs/{number + 1}"}
        parts[str(number)] = {"allOf": [next_one for _ in range(times)]}
    return {"$ref": "#/$defs/0", "$defs": parts}


_UNUSABLE: tuple[tuple[JsonObject, TaskMode, str], ...] = (
    ({"type": "objekt"}, "auto", "not a usable JSON Schema"),
    ({"properties": 3}, "auto", "not a usable JSON Schema"),
    ({"$ref": "#/$defs/none"}, "auto", "not a usable JSON Schema"),
    ({"$ref": "https://example.org/schema.json"}, "auto", "a reference outside the schema"),
    ({"$id": "https://example.org/x", "type": "string"}, "auto", r"\$id is not taken"),
    ({"type": "string", "pattern": "("}, "auto", "not a usable JSON Schema"),
    ({"type": "array", "prefixItems": [{}], "items": False}, "auto", "prefixItems is not taken"),
    ({"description": "x" * 100_001}, "auto", "at most 100,000"),
    (row(40, 2), "auto", "more than 20,000 parts"),
    (row(1_000, 1), "auto", "more than 20,000 parts"),
    ({"type": "string"}, "chat", "mode task"),
)


@pytest.mark.parametrize(("schema", "mode", "reason"), _UNUSABLE)
async def test_unusable_schema_is_refused_before_anything_is_stored(
    tmp_path: Path, schema: JsonObject, mode: TaskMode, reason: str
) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(InvalidParams, match=reason):
            await ended(engine, schema, mode)
        assert engine.watcher.events == []

"""Tool calls that are expensive to check: the task continues in time, and the engine stays responsive."""

import asyncio
from pathlib import Path

import pytest

from errand.engine.core.errors import InvalidParams
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.tasks.methods import TaskStartParams
from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import results
from tests.support.model_server import Call, ModelServer, Reply

# So many different characters that difflib treats none as junk: each comparison then takes quadratic time.
_LETTERS = [chr(0x4E00 + number) for number in range(150)]
_LENGTH = 100_000


def _shuffled(campaign: Campaign, name: str) -> str:
    return "".join(campaign.random(name).choices(_LETTERS, k=_LENGTH))


async def _run(errand: Errand, call: Call) -> str:
    """The output of the run; the command has half a minute."""
    replies = [Reply(calls=(call,), piece_length=1_000_000), Reply(text="I go on.")]
    async with ModelServer(replies=replies) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        done = await errand.run("run", "--approve", "all", *model, "work")
    assert "I go on." in done.out, done.err
    return done.out


async def test_a_long_text_to_replace_that_is_not_there_is_refused_in_time(
    errand: Errand, workspace: Path, campaign: Campaign
) -> None:
    (workspace / "f.txt").write_text(_shuffled(campaign, "the file"), "utf-8")
    arguments = {"action": "patch", "path": "f.txt", "old": _shuffled(campaign, "what is looked for"), "new": "x"}
    assert "text to replace not found" in await _run(errand, Call("code", {**arguments}))


@pytest.mark.parametrize(
    "line",
    ["env " * 25_000 + "rm", "sudo rm " * 10_000, "eval " * 11_000 + "rm", "env " + "sh -c 'rm a' " * 7_000],
    ids=["env env", "sudo rm", "eval eval", "sh -c"],
)
async def test_a_command_that_cannot_be_checked_in_time_is_not_run(errand: Errand, line: str) -> None:
    assert "Not allowed: the command is too long or too" in await _run(errand, Call("shell", {"command": line}))


async def test_a_long_file_of_a_heredoc_still_runs(errand: Errand, workspace: Path) -> None:
    body = "".join(f"line {number}: remove it, find it, 'quoted' (and more)\n" for number in range(1_500))
    await _run(errand, Call("shell", {"command": f"cat > f <<'EOF'\n{body}EOF\n"}))
    assert (workspace / "f").read_text("utf-8") == body


async def test_a_number_of_many_digits_is_refused_in_time(errand: Errand) -> None:
    out = await _run(errand, Call("shell", {"command": "true", "timeout_secs": "1" * 200_000 + "x"}))
    assert "wrong arguments: timeout_secs: must be number" in out


# Each of the 20,000 parts is compared with each of the 500 alternatives: the whole takes a quarter of an hour.
_ALTERNATIVES: JsonObject = {
    "type": "array",
    "items": {"anyOf": [{"type": "object", "required": [f"k{number}"]} for number in range(500)]},
}
_PARTS: list[JsonValue] = [{"other": 1}] * 20_000
_ANSWER: JsonObject = {"summary": "done", "answer": _PARTS}
_LONG_ANSWER = Reply(calls=(Call("task_complete", _ANSWER),), piece_length=1_000_000)


async def _start_with_schema(engine: EngineParts, schema: JsonObject = _ALTERNATIVES) -> str:
    params = TaskStartParams(
        prompt="go",
        model="openai_compatible/test-model",
        api_base=engine.model.url,
        api_key="sk-test-key-of-the-tests",
        workspace=str(engine.workspace),
        answer_schema=schema,
    )
    return (await engine.services.runner.start(params)).id


async def test_an_answer_with_many_alternatives_for_each_of_its_parts_is_refused_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    held = Reply(calls=_LONG_ANSWER.calls, piece_length=_LONG_ANSWER.piece_length, gate=gate)
    goes_on = [Reply(text="I go on.")] * 3
    async with engine_parts(tmp_path, ModelServer([held, *goes_on])) as engine:
        task_id = await _start_with_schema(engine)
        monkeypatch.setattr("errand.engine.tools.argument_check._CHECK_LIMIT_S", 0.3)
        gate.set()
        ended = await engine.watcher.end(task_id)
        (result,) = results(engine.watcher.nodes())
    assert "checking them takes more than" in result.text
    assert ended.activity.status == "error"


async def test_the_engine_works_on_and_a_task_is_stopped_while_its_answer_is_checked(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer([_LONG_ANSWER])) as engine:
        task_id = await _start_with_schema(engine)
        async with asyncio.timeout(WAIT_LIMIT_S):
            await engine.watcher.until(
                lambda: any(node.role == "assistant" and node.status == "complete" for node in engine.watcher.nodes())
            )
            await engine.services.runner.stop(task_id, "me")
            assert (await engine.watcher.end(task_id)).activity.status == "cancelled"
    assert [result.text for result in results(engine.watcher.nodes())] == ["Operation aborted"]


# The compiler reads the broken alternative last.
_BROKEN: JsonObject = {"anyOf": [*({"required": [f"k{number}"]} for number in range(500)), {"type": "objekt"}]}


async def test_the_engine_works_on_while_an_answer_schema_is_compiled(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        starting = asyncio.create_task(_start_with_schema(engine, _BROKEN))
        await asyncio.sleep(0)
        assert not starting.done()
        with pytest.raises(InvalidParams, match="not a usable JSON Schema"):
            await starting


async def test_an_answer_schema_that_takes_too_long_to_compile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errand.engine.tools.argument_check._CHECK_LIMIT_S", 0.01)
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(InvalidParams, match=r"checking it takes more than 0\.01 s"):
            await _start_with_schema(engine, {**_ALTERNATIVES, "description": "compiled for the first time"})
        assert engine.watcher.events == []

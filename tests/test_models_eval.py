"""`make models-eval`: judges tell right outcomes from wrong ones, and tasks run in a real engine."""

import asyncio
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession

from errand.protocol.base import JsonObject
from errand.protocol.blocks import Block, TextBlock, ToolCallBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.groups import TodoItem
from tests.benchmarks.models_eval.attempt import Limits, attempt, read_run
from tests.benchmarks.models_eval.calls import CallCounts, count_calls, looks_like_call
from tests.benchmarks.models_eval.first_token import first_token_table, first_tokens
from tests.benchmarks.models_eval.model import EvaluatedModel
from tests.benchmarks.models_eval.relay import TokenRelay
from tests.benchmarks.models_eval.results import EvalRow, ResultsFile, row_line, sum_line
from tests.benchmarks.models_eval.scripted import scripted_model
from tests.benchmarks.models_eval.task import EvalTask, Outcome, Run, RunEnd, Step, read_files, shell, write_files
from tests.benchmarks.models_eval.tasks import TASKS, chosen_tasks
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until

LIMITS = Limits(turns=8, seconds=120)


def _node(number: int, *blocks: Block) -> Node:
    return Node(
        id=f"node_{number}",
        conversation_id="conv_1",
        parent_id=None,
        role="assistant",
        author="agent_1",
        blocks=blocks,
        status="complete",
        created_at=datetime.now(UTC),
    )


def _run_by_hand(task: EvalTask, folder: Path, steps: tuple[Step, ...], answer: str) -> Run:
    """Run the commands of the steps without an engine, and make the record of them."""
    end = RunEnd(exit_code=0, stop_reason="completed", completion="replied", summary=answer)
    nodes: list[Node] = []
    for number, step in enumerate(steps):
        nodes.append(_node(number, ToolCallBlock(call_id=f"call_{number}", tool=step.tool, arguments=step.arguments)))
        match step.tool:
            case "shell":
                # The home is a folder that is not there: what is written into it is refused.
                environment = os.environ | {"HOME": str(folder.parent / "home")}
                command = ["bash", "-c", str(step.arguments["command"])]
                subprocess.run(command, cwd=folder, env=environment, capture_output=True)
            case "task_complete":
                end = RunEnd(exit_code=0, completion="declared", summary=str(step.arguments["summary"]), todo=end.todo)
            case "todo":
                end = RunEnd(exit_code=0, completion="replied", summary=answer, todo=_items(step.arguments))
            case _:
                pass
    return Run((*nodes, _node(len(nodes), TextBlock(text=answer))), end)


def _items(arguments: JsonObject) -> tuple[TodoItem, ...]:
    items = arguments["items"]
    assert isinstance(items, list)
    dicts = [item for item in items if isinstance(item, dict)]
    return tuple(
        TodoItem(text=str(item["text"]), status="done" if item["status"] == "done" else "pending") for item in dicts
    )


def _outcome(task: EvalTask, folder: Path, *, is_right: bool) -> Outcome:
    write_files(folder, task.files)
    runs: list[Run] = []
    after_first: list[dict[str, str]] = []
    for steps in task.solution:
        if not is_right:
            steps = (shell(task.wrong),) if task.wrong else ()
        runs.append(_run_by_hand(task, folder, steps, task.answer if is_right else task.wrong_answer))
        after_first.append(read_files(folder))
    return Outcome(folder, tuple(runs), after_first[0])


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_judge_tells_the_right_outcome_from_a_wrong_one_and_from_none(task: EvalTask, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("right", "wrong", "untouched")]
    for folder in folders:
        folder.mkdir()
    assert task.judge(_outcome(task, folders[0], is_right=True))
    assert not task.judge(_outcome(task, folders[1], is_right=False))
    write_files(folders[2], task.files)
    silent = Run((), RunEnd(exit_code=0, stop_reason="completed", completion="replied"))
    assert not task.judge(Outcome(folders[2], (silent,) * len(task.messages), read_files(folders[2])))


def test_there_are_thirty_tasks_and_eight_to_iterate_with() -> None:
    assert (len(TASKS), len(chosen_tasks("iterate"))) == (30, 8)
    assert chosen_tasks("write_file,read_note") == [*chosen_tasks("write_file"), *chosen_tasks("read_note")]
    assert len({task.name for task in TASKS}) == len(TASKS)
    with pytest.raises(ValueError, match="There is no task sing"):
        chosen_tasks("sing")


@pytest.mark.parametrize("name", ["read_note", "fix_add", "ask_missing", "finish_task"])
async def test_the_scripted_model_solves_a_task_in_an_engine(name: str, tmp_path: Path) -> None:
    (task,) = chosen_tasks(name)
    async with scripted_model() as (script, model):
        script.begin(task)
        row = await attempt(task, model, LIMITS, tmp_path)
    steps = sum(len(steps) for steps in task.solution)
    assert (row.solved, row.false_claim) == (True, False)
    assert (row.meant, row.well_formed, row.run) == (steps, steps, steps)
    assert row.worked == sum(step.tool == "shell" for steps in task.solution for step in steps)
    assert row.prompt_tokens == 100 * row.turns
    assert row.end == {"read_note": "replied, changed nothing", "finish_task": "declared"}.get(name, "replied")
    assert row.has_tick is (name != "read_note")
    assert task.messages[0] in (tmp_path / f"{name}.txt").read_text("utf-8")


async def test_a_claim_without_work_is_counted_as_false(tmp_path: Path) -> None:
    (task,) = chosen_tasks("write_file")
    async with scripted_model() as (script, model):
        script.begin(task, solves=False)
        row = await attempt(task, model, LIMITS, None)
    assert (row.solved, row.false_claim, row.end) == (False, True, "replied")
    assert (row.worked, row.has_tick, row.claim) == (1, True, "**yes, with a tick**")


async def test_a_wrong_answer_after_calls_that_only_looked_is_a_false_claim_without_a_tick() -> None:
    (task,) = chosen_tasks("read_note")
    async with scripted_model() as (script, model):
        script.begin(task, solves=False)
        row = await attempt(task, model, LIMITS, None)
    assert (row.solved, row.false_claim, row.has_tick, row.claim) == (False, True, False, "yes")


async def test_a_task_that_takes_too_long_is_stopped() -> None:
    (task,) = chosen_tasks("write_file")
    async with ModelServer([Reply(text="I begin.", stall_after=1)]) as server:
        row = await attempt(task, EvaluatedModel("openai_compatible/test-model", server.url), Limits(8, 1.0), None)
    # On a busy machine the second may be over before the task has begun.
    assert (row.solved, row.false_claim, row.end in ("manual_stop", "no end")) == (False, False, True)


async def test_calls_that_reach_no_tool_are_meant_but_not_run() -> None:
    calls = (Step("shel", {"command": "ls"}), Step("shell", {"path": "x"}), Step("shell", {"command": "false"}))
    task = EvalTask("calls", ("Go.",), lambda outcome: True, (calls,), "Ended.", {})
    async with scripted_model() as (script, model):
        script.begin(task)
        row = await attempt(task, model, LIMITS, None)
    assert (row.meant, row.well_formed, row.run) == (3, 1, 1)


async def test_the_first_token_is_measured_for_three_conversations_with_one_prompt_twice() -> None:
    async with ModelServer([Reply(text="Hello.", usage=(40, 5))] * 3) as server:
        rows = await first_tokens(EvaluatedModel("openai_compatible/test-model", server.url))
    first, second, third = (request.messages for request in server.requests)
    assert (first == second, second == third) == (False, True)
    assert [(row.prompt_tokens, row.cached_tokens) for row in rows] == [(40, 0)] * 3
    assert len(first_token_table(rows).splitlines()) == 6


async def test_the_first_token_of_a_question_to_the_person_is_measured_too() -> None:
    question = Reply(calls=(Call("ask_user", {"question": "What do you want?"}),), usage=(40, 5))
    async with ModelServer([question] * 3) as server:
        rows = await first_tokens(EvaluatedModel("openai_compatible/test-model", server.url))
    assert [row.prompt_tokens for row in rows] == [40, 40, 40]


async def test_the_first_token_comes_before_the_end_of_a_call_that_clients_see_whole() -> None:
    rest = asyncio.Event()
    reply = Reply(text='{"name": "answer", "arguments": {"text": "Hello."}}', stall_after=3, rest=rest)
    async with ModelServer([reply]) as server, TokenRelay(server.url) as relay, ClientSession() as client:
        first_token = relay.next_first_token()
        async with client.post(f"{relay.url}/chat/completions", json={"messages": []}) as response:
            await until(first_token.done)
            assert not rest.is_set()
            rest.set()
            assert b"[DONE]" in await response.read()


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "read", "arguments": {"file": "note.txt"}}',
        '{"name": "python3 measure.py", "arguments": {"command": "python3 measure.py"}}',
        '{{"name": "code", "arguments": {"action": "read"}}}',
        '<tools>\n{"function": {"name": "code"}}\n</tools>',
        "<tool_call>\n",
        "<function=code>\n<parameter=action>\nread\n</parameter>\n</function>",
        '```json\n{"name": "code", "parameters": {"action": "read"}}\n```',
        '```tool_code\nread("note.txt")\n```',
        'read(path="note.txt")',
    ],
)
def test_a_call_written_as_text_is_meant(text: str) -> None:
    assert looks_like_call(text)
    counts = count_calls([Run((_node(1, TextBlock(text=text)),), RunEnd())])
    assert counts == CallCounts(1, 0, 0, 0)


@pytest.mark.parametrize("text", ["I read note.txt.", '```json\n{"name": "Ada", "age": 36}\n```', "Use the read tool."])
def test_words_and_data_are_no_calls(text: str) -> None:
    assert not looks_like_call(text)


def test_rows_are_kept_and_the_newest_of_a_task_counts(tmp_path: Path) -> None:
    file = ResultsFile(tmp_path / "rows" / "m.jsonl")
    assert file.rows("m") == {}
    row = EvalRow(
        task="read_note",
        model="m",
        solved=False,
        meant=2,
        well_formed=1,
        run=1,
        false_claim=True,
        turns=3,
        prompt_tokens=40,
        cached_tokens=30,
        completion_tokens=5,
        seconds=1.5,
        end="replied",
        answer="It is 12.",
    )
    for solved in (False, True):
        file.add(msgspec.structs.replace(row, solved=solved))
    assert [stored.solved for stored in file.rows("m").values()] == [True]
    assert file.rows("other") == {}
    assert (
        row_line(row)
        == "| read_note | no | 2 / 1 / 1 | **yes, with a tick, no tool used** | 3 | 40 (30) | 5 | 2 | replied |"
    )
    counts = "0 | 2 / 1 / 1 (50% run) | 1, 1 with a tick (1 without a tool) | 3 | 40 (30) | 5 | 2"
    assert sum_line([row]) == f"| **0 of 1 solved** | {counts} | |"


def test_an_output_without_an_end_is_a_run_that_failed() -> None:
    assert read_run("") == Run((), RunEnd())

"""The to-do list: each call replaces it, it is stored with the task, and what is too much is refused."""

from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.argument_check import check_arguments
from errand.engine.tools.control.todo import MAX_ITEM_LENGTH, MAX_ITEMS, Todo
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.tasks.groups import TodoItem
from errand.protocol.tasks.methods import TaskStartParams
from tests.support.engine_parts import crash, engine_parts
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, Reply


async def _list(arguments: JsonObject) -> tuple[TodoItem, ...]:
    lists: list[tuple[TodoItem, ...]] = []
    tool = Todo(lists.append)
    checked = check_arguments(tool.name, tool.parameters, tool.prepare_arguments(arguments))
    await tool.execute("call_1", checked, CancelSignal(), lambda result: None)
    return lists[-1]


async def test_names_that_other_agents_use_are_understood() -> None:
    assert await _list({"todos": [{"content": "one", "status": "completed"}, "two\nlines", {"text": "three"}]}) == (
        TodoItem(text="one", status="done"),
        TodoItem(text="two lines"),
        TodoItem(text="three"),
    )


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([{"text": "x"}] * (MAX_ITEMS + 1), "more than 50 items"),
        ([{"text": "x" * (MAX_ITEM_LENGTH + 1)}], "more than 500 characters"),
        ([{"text": " \n"}], "Item 1 has no text"),
        ([{"text": "x", "status": "later"}], "later"),
        ([7], "items"),
        ("x", "items"),
    ],
)
async def test_list_that_is_too_much_or_wrong_is_refused(items: object, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await _list({"items": items})  # pyright: ignore[reportArgumentType] -- wrong on purpose


async def test_list_is_part_of_the_task_and_survives_a_crash(tmp_path: Path) -> None:
    items: JsonValue = [{"text": "look", "status": "done"}, {"text": "work", "status": "in_progress"}]
    turns = [Reply(calls=(Call("todo", {"items": items}),)), shell("sleep 30")]
    (tmp_path / "later").mkdir()
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.start()
        at_work = await engine.watcher.task(task.id, lambda now: now.activity.current_tool == "shell")
        todo_list = (TodoItem(text="look", status="done"), TodoItem(text="work", status="in_progress"))
        assert at_work.todo == todo_list
        assert results(engine.watcher.nodes())[0].text == "The list is shown: 1 of 2 done."
        crash(engine, tmp_path / "later")
        await engine.services.runner.stop(task.id, "me")
        await engine.watcher.end(task.id)
    async with engine_parts(tmp_path / "later", ModelServer(turns=[DONE])) as engine:
        stored = await engine.services.database.tasks.get(task.id)
        assert stored is not None and (stored.activity.status, stored.todo) == ("interrupted", todo_list)


def _plan(*items: tuple[str, str]) -> Reply:
    listed: list[JsonValue] = [{"text": text, "status": status} for text, status in items]
    return Reply(calls=(Call("todo", {"items": listed}),))


async def test_next_task_goes_on_with_what_is_left_of_the_list(tmp_path: Path) -> None:
    open_list = (TodoItem(text="look", status="done"), TodoItem(text="work"))
    replies = [
        _plan(("look", "done"), ("work", "pending")),
        Reply(text="Half of it."),
        Reply(text="Not yet."),
        _plan(("look", "done"), ("work", "done")),
        Reply(text="All of it."),
        Reply(text="Nothing more."),
        Reply(text="Another way."),
    ]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        first = await engine.watcher.end((await engine.start()).id)
        assert first.todo == open_list
        second = await engine.start(conversation_id=first.conversation_id)
        assert second.todo == open_list
        assert (await engine.watcher.end(second.id)).todo == open_list
        third = await engine.start(conversation_id=first.conversation_id)
        assert third.todo == open_list
        assert all(item.status == "done" for item in (await engine.watcher.end(third.id)).todo)
        fourth = await engine.start(conversation_id=first.conversation_id)
        assert fourth.todo == ()
        await engine.watcher.end(fourth.id)
        asked = next(node for node in engine.watcher.nodes() if node.task_id == first.id)
        again = TaskStartParams(
            prompt="go differently",
            conversation_id=first.conversation_id,
            sibling_of=asked.id,
            model=first.request.model,
            api_base=first.request.api_base,
            approve="all",
        )
        fresh = await engine.services.runner.start(again)
        assert fresh.todo == ()  # on that branch nothing was planned
        await engine.watcher.end(fresh.id)

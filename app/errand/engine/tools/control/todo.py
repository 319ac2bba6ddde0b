"""The tool `todo`: the agent's plan as a list that people see while the task runs."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.json_input.lenient_json import read_container
from errand.engine.core.messages import Text
from errand.engine.tools.arguments import decode, renamed, schema_of
from errand.engine.tools.base import Access, ExecutionMode
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import CallDisplay
from errand.protocol.tasks.groups import TodoItem, TodoStatus

MAX_ITEMS = 50
MAX_ITEM_LENGTH = 500

_OTHER_ITEM_NAMES = {
    "content": "text",
    "step": "text",
    "title": "text",
    "task": "text",
    "description": "text",
    "state": "status",
}
_OTHER_STATUS_NAMES = {"completed": "done", "complete": "done", "todo": "pending", "in-progress": "in_progress"}

_DISPLAY = CallDisplay(kind="think", running="planning", done="updated the plan", icon="list-checks")


class _Item(Struct, frozen=True):
    text: Annotated[str, Meta(description=f"One step, in a few words; at most {MAX_ITEM_LENGTH} characters.")]
    status: TodoStatus = "pending"


class TodoArguments(Struct, frozen=True):
    items: Annotated[
        tuple[_Item, ...],
        Meta(description=f"The whole list, in order; at most {MAX_ITEMS}. An empty list removes it."),
    ]


class Todo:
    """Replaces the list of the task. `publish` receives each new list."""

    name = "todo"
    label = "To-do list"
    description = (
        "Show the person your plan as a list and keep it up to date, for work of three steps or more: write the steps "
        "at the start, set one to in_progress when you begin it and to done when it is done. Each call replaces the "
        "list."
    )
    parameters = schema_of(TodoArguments)
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, publish: Callable[[tuple[TodoItem, ...]], None]) -> None:
        self._publish = publish

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """Models know other names for the list and for the text of an item, and write texts alone."""
        prepared = renamed(arguments, {"todos": "items", "plan": "items", "tasks": "items", "list": "items"})
        items = prepared.get("items")
        if isinstance(items, str):
            items = read_container(items)
        if isinstance(items, list):
            prepared["items"] = [_prepared(item) for item in items[: MAX_ITEMS + 1]]
        return prepared

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        return _DISPLAY

    def access(self, arguments: JsonObject) -> Access:
        return Access("free", "Show you the plan.")

    def allow(self, call_id: str, access: Access) -> None:
        """Does nothing: the call accesses nothing."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        items = tuple(
            TodoItem(text=" ".join(item.text.split()), status=item.status)
            for item in decode(arguments, TodoArguments).items
        )
        _check(items)
        self._publish(items)
        done = sum(item.status == "done" for item in items)
        summary = f"{done} of {len(items)} done" if items else "no items"
        return ToolResult((Text(f"The list is shown: {summary}."),), summary=summary)


def _prepared(item: JsonValue) -> JsonValue:
    if isinstance(item, str):
        fields = read_container(item)
        item = fields if isinstance(fields, dict) else {"text": item}
    if not isinstance(item, dict):
        return item
    prepared = renamed(item, _OTHER_ITEM_NAMES)
    status = prepared.get("status")
    if isinstance(status, str):
        prepared["status"] = _OTHER_STATUS_NAMES.get(status.casefold(), status)
    return prepared


def _check(items: tuple[TodoItem, ...]) -> None:
    if len(items) > MAX_ITEMS:
        raise ToolError(f"The list has more than {MAX_ITEMS} items. Join small steps, and leave out what is long done.")
    for number, item in enumerate(items, start=1):
        if not item.text:
            raise ToolError(f"Item {number} has no text.")
        if len(item.text) > MAX_ITEM_LENGTH:
            raise ToolError(f"Item {number} has more than {MAX_ITEM_LENGTH} characters. Say it in a few words.")

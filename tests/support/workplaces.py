"""A task's workplace in a temporary folder, and running tools there as the loop does."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from app.engine.cancel import CancelSignal
from app.engine.messages import Text
from app.engine.tools import processes
from app.engine.tools.base import OnUpdate, Tool, ToolError, ToolResult, Workplace
from app.engine.tools.environment import clean_environment
from app.engine.tools.registry import bind
from app.protocol.json import JsonObject, JsonValue


def make_workplace(folder: Path, task_id: str = "task_1") -> Workplace:
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    environment = {**clean_environment(os.environ), "HOME": str(folder)}
    return Workplace(task_id, Path(os.path.realpath(workspace)), folder / "outputs" / task_id, environment)


def tool_of(workplace: Workplace, name: str) -> Tool:
    (tool,) = bind(workplace, (name,))
    return tool


@asynccontextmanager
async def task_of(workplace: Workplace) -> AsyncGenerator[Workplace]:
    """Ends what the task leaves running, as the runner does."""
    try:
        yield workplace
    finally:
        await processes.end_task(workplace.task_id, lambda count: None)


async def run(
    tool: Tool, arguments: JsonObject, cancel: CancelSignal | None = None, on_update: OnUpdate = lambda result: None
) -> ToolResult:
    return await tool.execute("call_1", tool.prepare_arguments(arguments), cancel or CancelSignal(), on_update)


async def failure(tool: Tool, arguments: JsonObject, cancel: CancelSignal | None = None) -> ToolError:
    try:
        result = await run(tool, arguments, cancel)
    except ToolError as error:
        return error
    raise AssertionError(f"it did not fail: {result}")


def text_of(result: ToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


def detail(result: ToolResult | ToolError, name: str) -> JsonValue:
    assert result.details is not None
    return result.details[name]


def kept_output(result: ToolResult) -> bytes:
    """The content of the file that holds the long standard output."""
    file = detail(result, "stdout_file")
    assert isinstance(file, str) and file in text_of(result)
    return Path(file).read_bytes()


async def until(condition: Callable[[], bool], patience_s: float = 5) -> None:
    """Wait until a condition holds; fail if it does not in time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    """True for a process that is there at all, a zombie too."""
    return Path(f"/proc/{pid}").exists()

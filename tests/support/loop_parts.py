"""Stream functions for tests of the loop: prepared events, a reply per call, or one that waits for cancellation."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, Text, ToolCall
from errand.engine.models.base import BlockDelta, ModelEvent, ModelRequest, ReplyEnd, ReplyStart
from errand.engine.tools.base import ExecutionMode, Tool
from errand.engine.tools.context import ToolContext
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.registry import TOOLS
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, text_result
from errand.engine.tools.sessions import ConversationSessions, ToolSessions
from errand.engine.tools.shell.environment import clean_environment
from errand.protocol.base import JsonObject, JsonValue
from tests.conformance.play import play
from tests.conformance.scenario import Profile, Scenario
from tests.support.limits import WAIT_LIMIT_S, seldom

_VALUE: JsonObject = {"type": "object", "properties": {"value": {"type": "string"}}}
_HOW: JsonObject = {"type": "object", "properties": {"how": {"type": "string"}}}

_ANYTHING: dict[str, object] = {"type": "object", "properties": {"value": {"type": "string"}}}

Record: TypeAlias = dict[str, JsonValue]


def reply(text: str) -> tuple[ModelEvent, ...]:
    partial = AssistantMessage((Text(text),))
    return (ReplyStart(AssistantMessage()), BlockDelta("text", 0, text, partial), ReplyEnd(partial))


def calling(name: str, arguments: JsonObject | None = None, invalid: str | None = None) -> tuple[ModelEvent, ...]:
    message = AssistantMessage((ToolCall("c1", name, arguments or {}, invalid),), "tool_use")
    return (ReplyStart(AssistantMessage()), ReplyEnd(message))


class WrittenStream:
    """Yields the prepared events for each call in turn; `requests` has the requests.

    Raises an exception in the events.
    """

    def __init__(self, *replies: Sequence[ModelEvent | Exception]) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = replies

    async def __call__(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        for event in self._replies[len(self.requests) - 1]:
            if isinstance(event, Exception):
                raise event
            yield event


class OpenStream:
    """Starts a reply and then waits for the cancel signal. `closed` is set when the generator has ended."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.closed = asyncio.Event()
        self.cancel: CancelSignal | None = None

    async def __call__(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self.cancel = cancel
        try:
            yield ReplyStart(AssistantMessage((Text("so far"),)))
            self.started.set()
            await cancel.wait()
            yield ReplyEnd(AssistantMessage((Text("so far"),), "aborted", "Request was aborted"))
        finally:
            self.closed.set()


class EchoTool:
    name = "echo"
    label = "Echo"
    description = "Gives back its value."
    parameters = _VALUE
    execution_mode: ExecutionMode = "parallel"

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        return text_result(str(arguments.get("value", "")))


class StuckTool:
    """Never ends by itself; with `how` = cancelled, something it awaits is cancelled."""

    name = "stuck"
    label = "Stuck"
    description = "Waits."
    parameters = _HOW
    execution_mode: ExecutionMode = "parallel"

    def __init__(self) -> None:
        self.running = 0
        self.changed = asyncio.Event()

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        if arguments.get("how") == "cancelled":
            raise asyncio.CancelledError
        self.running += 1
        self.changed.set()
        on_update(text_result("waiting"))
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1
        return text_result("never")


class Trace(msgspec.Struct, frozen=True):
    """The trace of a scenario, as described in `tests/conformance/README.md`."""

    events: list[Record]
    llm_calls: list[list[Record]]
    errors: list[Record]
    final_messages: list[Record]
    final_error: str | None


def call(call_id: str, name: str = "echo", value: str = "") -> dict[str, object]:
    return {"tool_call": {"id": call_id, "name": name, "args": {"value": value or call_id}}}


def calls(*call_ids: str) -> dict[str, object]:
    """A reply that calls the tool `echo` once for each id."""
    return {"blocks": [call(call_id) for call_id in call_ids]}


def says(*chunks: object) -> dict[str, object]:
    return {"blocks": [{"text": list(chunks)}]}


def echo(**by_call: object) -> dict[str, object]:
    """A tool that returns its value, with another script for some calls."""
    return tool("echo", [{"return": "${value}"}], **by_call)


def tool(name: str, script: object, **by_call: object) -> dict[str, object]:
    return {"name": name, "parameters": _ANYTHING, "script": script, "by_call": by_call}


async def story(scenario: Mapping[str, object], profile: Profile = "modern") -> list[str]:
    """One line for each message, call and turn; a prompt `go` is the default step."""
    return told(await trace(scenario, profile))


async def trace(scenario: Mapping[str, object], profile: Profile = "modern") -> Trace:
    complete = {"name": "test", "steps": [{"prompt": "go"}], **scenario}
    return msgspec.convert(await play(msgspec.convert(complete, Scenario), profile), Trace)


def told(recorded: Trace) -> list[str]:
    lines = [_line(event) for event in recorded.events if event["type"] not in ("message_start", "message_update")]
    return lines + [f"refused: {error['message']}" for error in recorded.errors]


def _line(event: Record) -> str:
    match event["type"]:
        case "message_end" if event["role"] == "assistant":
            failure = f" ({event['error']})" if "error" in event else ""
            return f"assistant {event['stop_reason']}: {event['text']}{failure}"
        case "message_end" if event["role"] == "tool_result":
            return f"result {event['tool_call_id']}: {event['text']}"
        case "message_end":
            return f"{event['role']}: {event['text']}"
        case "tool_execution_start":
            return f"start {event['id']}"
        case "tool_execution_update":
            return f"update {event['id']}: {event['text']}"
        case "tool_execution_end":
            return f"{'fail' if event['is_error'] else 'end'} {event['id']}: {event['text']}"
        case "agent_end":
            return f"agent_end {len(msgspec.convert(event['roles'], list[str]))}"
        case other:
            return str(other)


def make_tool_context(folder: Path, task_id: str = "task_1") -> ToolContext:
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    environment = {**clean_environment(os.environ), "HOME": str(folder)}
    return ToolContext(
        task_id,
        Path(os.path.realpath(workspace)),
        folder / "outputs" / task_id,
        environment,
        ProcessSweep(task_id),
        ConversationSessions(ToolSessions(), "conversation_1"),
    )


def tool_of(context: ToolContext, name: str) -> Tool:
    return next(tool for tool in TOOLS if tool.name == name)(context)


@asynccontextmanager
async def task_of(context: ToolContext) -> AsyncGenerator[ToolContext]:
    """The task; ends what it leaves running, as the runner does."""
    try:
        yield context
    finally:
        await context.processes.end()


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
    """The content of the file with the long standard output."""
    file = detail(result, "stdout_file")
    assert isinstance(file, str) and file in text_of(result)
    return Path(file).read_bytes()


async def until(condition: Callable[[], bool], patience_s: float = WAIT_LIMIT_S) -> None:
    """Wait until a condition holds; fail after a timeout."""
    deadline, holds = time.monotonic() + patience_s, seldom(condition)
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    """True for an existing process, including a zombie."""
    return Path(f"/proc/{pid}").exists()

"""Two small tools for tests of the loop: one that echoes, one that gets stuck."""

import asyncio

from app.engine.cancel import CancelSignal
from app.engine.tools.base import ExecutionMode, OnUpdate, ToolResult, text_result
from app.protocol.json import JsonObject

_VALUE: JsonObject = {"type": "object", "properties": {"value": {"type": "string"}}}
_HOW: JsonObject = {"type": "object", "properties": {"how": {"type": "string"}}}


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

"""The scripted tools of the conformance scenarios."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import UNSET

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Text
from errand.engine.tools.base import ExecutionMode
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, text_result
from errand.protocol.base import JsonObject, JsonValue
from tests.conformance.clock import Clock
from tests.conformance.scenario import Action, ScriptStep, ToolSpec, compact

Act = Callable[[Action], Awaitable[None]]


class ScriptedTool:
    """Plays its script, or the one for the call. `detached` has work that continues in the background."""

    def __init__(self, spec: ToolSpec, act: Act, clock: Clock, detached: set[asyncio.Task[ToolResult]]) -> None:
        self.name = spec.name
        self.label = spec.name
        self.description = spec.description
        self.parameters = spec.parameters
        self.execution_mode: ExecutionMode = spec.execution_mode
        self._spec = spec
        self._act = act
        self._clock = clock
        self._detached = detached

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        rename = self._spec.prepare_arguments.rename if self._spec.prepare_arguments is not None else {}
        return {rename.get(name, name): value for name, value in arguments.items()}

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        script = self._spec.by_call.get(call_id, self._spec.script)
        try:
            return await self._play(script, arguments, cancel, on_update)
        finally:
            # A JavaScript promise settles after its work is done: concurrent calls run first.
            await asyncio.sleep(0)

    async def _play(
        self, script: list[ScriptStep], arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        for step in script:
            if step.raise_ is not UNSET:
                raise ToolError(_filled(step.raise_, arguments))
            if step.return_ is not UNSET:
                text = _filled(step.return_, arguments)
                return ToolResult((Text(text),), details=step.details, terminate=step.terminate)
            if step.emit is not UNSET:
                on_update(text_result(_filled(step.emit, arguments)))
            elif step.detach is not None:
                self._detached.add(asyncio.create_task(self._play(step.detach, arguments, cancel, on_update)))
                await asyncio.sleep(0)  # its immediate actions happen before this script continues
            elif step.sleep is not UNSET and step.honour_abort:
                await _sleep_until_aborted(self._clock, step.sleep, cancel)
            else:
                await self._act(step)
                await asyncio.sleep(0)
        return text_result("")


async def _sleep_until_aborted(clock: Clock, milliseconds: float, cancel: CancelSignal) -> None:
    aborted = asyncio.Event()
    unsubscribe = cancel.subscribe(aborted.set)  # concurrent calls are notified in the order of their waits
    try:
        async with asyncio.timeout(milliseconds / 1000):
            await aborted.wait()
    except TimeoutError:
        await clock.take_turn()
    finally:
        unsubscribe()
    if cancel.is_set:
        raise ToolError("aborted by signal")


def _filled(template: str, arguments: JsonObject) -> str:
    text = template.replace("${args}", compact(arguments))
    for name, value in arguments.items():
        text = text.replace("${" + name + "}", _shown(value))
    return text


def _shown(value: JsonValue) -> str:
    return value if isinstance(value, str) else compact(value)

"""The agent core for other programs: a model, tools and an agent, without an engine, a database or a window.

docs/core.md has the flow of events and an example.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Generic, Self, TypeVar

import msgspec

from errand.engine.agent.loop.agent import Agent
from errand.engine.agent.loop.events import AgentEvent
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import AssistantMessage, Message
from errand.engine.core.secrets import KeyStore
from errand.engine.models.base import ChatModel
from errand.engine.models.router import ModelRouter
from errand.engine.tools.arguments import decode, schema_of
from errand.engine.tools.base import ExecutionMode, ParallelWhere
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, text_result
from errand.protocol.base import JsonObject

ArgumentsT = TypeVar("ArgumentsT", bound=msgspec.Struct)

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@asynccontextmanager
async def open_model(
    model_id: str,
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> AsyncGenerator[ChatModel]:
    """A model `provider/model` with retries and costs; its connections end with the block.

    Without `api_key` the key comes from the environment (`OPENAI_API_KEY` and so on). `headers` go with each request,
    in place of those of the same name; one with a key such as `Authorization` makes `api_key` unnecessary. Nothing is
    written but to a temporary folder. Raises `ConfigurationError` that says what to set.
    """
    with tempfile.TemporaryDirectory(prefix="errand-") as folder:
        models = ModelRouter(KeyStore(Path(folder), os.environ, _no_vault), Path(folder))
        try:
            yield models.open(model_id, api_base, api_key, headers)
        finally:
            await models.close()


def _no_vault() -> None:
    """The keyring is the app's; a program brings its key."""


class FunctionTool(Generic[ArgumentsT]):
    """A tool made of a function. The fields of `arguments` are what the model may pass; their names and `Meta` tell it.

    What the function returns is the result's text; `ToolError` tells the model that the call failed. When the agent is
    stopped, the function is cancelled. Calls run in parallel unless `execution_mode` says otherwise.
    """

    def __init__(
        self,
        name: str,
        description: str,
        arguments: type[ArgumentsT],
        function: Callable[[ArgumentsT], Awaitable[str]],
        execution_mode: ExecutionMode | ParallelWhere = "parallel",
    ) -> None:
        self.name = self.label = name
        self.description = description
        self.parameters = schema_of(arguments)
        self.execution_mode: ExecutionMode | ParallelWhere = execution_mode
        self._arguments = arguments
        self._function = function

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        work = asyncio.ensure_future(self._function(decode(arguments, self._arguments)))

        def stop() -> None:
            work.cancel()

        unsubscribe = cancel.subscribe(stop)
        try:
            return text_result(await work)
        except asyncio.CancelledError:
            if cancel.is_set:
                raise ToolError("Operation aborted") from None
            raise
        finally:
            unsubscribe()
            work.cancel()


class AgentRun:
    """The events of one prompt, and its result.

        async with AgentRun(agent, "Find the tests that fail") as run:
            async for event in run:
                ...
            reply = await run.result()

    The agent waits until an event is taken. A block that is left early stops the run, and waits until all is stopped.
    """

    def __init__(self, agent: Agent, prompt: str | Message | Sequence[Message]) -> None:
        self._agent = agent
        self._prompt = prompt
        self._events = asyncio.Queue[AgentEvent | None](1)
        self._cancel = CancelSignal()
        self._running: asyncio.Task[None] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run(), name="run of an agent")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancel.set()
        async for _ in self:  # the last events, which nobody takes
            pass
        if self._running is not None:
            await asyncio.wait((self._running,))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        event = None if self._running is None or self._is_over else await self._events.get()
        if event is None:
            self._is_over = self._running is not None
            raise StopAsyncIteration
        return event

    async def result(self) -> AssistantMessage:
        """Return the last reply, once the run is over; events that were not taken are passed over.

        A model that failed is a reply too, with `error` set. Raises what a listener of the agent raised.
        """
        async for _ in self:
            pass
        if self._running is None:
            raise EngineError("The run has not begun: use it with `async with`.")
        await self._running
        replies = (message for message in reversed(self._agent.state.messages) if isinstance(message, AssistantMessage))
        if (last := next(replies, None)) is None:
            raise EngineError("The run has ended without a reply.")
        return last

    async def _run(self) -> None:
        unsubscribe = self._agent.subscribe(self._events.put)
        try:
            await self._agent.prompt(self._prompt, self._cancel)
        finally:
            unsubscribe()
            await self._events.put(None)

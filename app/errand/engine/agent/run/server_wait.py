"""Waits for a model server that loads its model, and prepares requests for the model that it serves then."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.prompt.system_prompt import TaskSystemPrompt
from errand.engine.agent.run.pause_gate import wait_or_cancel
from errand.engine.agent.run.recorder import TaskRecorder
from errand.engine.agent.run.task_context import TaskTools
from errand.engine.agent.run.task_state import TaskState
from errand.engine.agent.tool_offer.choice import ToolChoice
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.models.base import ModelRequest
from errand.engine.models.catalog.providers import REACT, served_name
from errand.engine.models.model_servers import ModelServers
from errand.engine.models.servers.served_models import LOAD_TIMEOUT_S, LOADING, ServerStatus
from errand.protocol.notices import ModelChanged, SmallWindow

_POLL_S = 0.5
# A smaller window leaves little room beside instructions and tools.
_ENOUGH_TOKENS = 16_384


class ModelServerWait(Feature):
    """Asks the model's server before each call, which the person may have started again with another model.

    A server that serves one model answers with it whatever the request names, so that name is the one to record. What
    the server says of the model decides which tools the request has, and which rules: `choice_for` returns that by id.
    """

    def __init__(
        self,
        state: TaskState,
        recorder: TaskRecorder,
        servers: ModelServers,
        tools: TaskTools,
        prompt: TaskSystemPrompt,
        choice_for: Callable[[str], ToolChoice],
    ) -> None:
        self._state = state
        self._recorder = recorder
        self._servers = servers
        self._tools = tools
        self._prompt = prompt
        self._choice_for = choice_for
        self._told: set[tuple[str, str]] = set()

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """Return the request, to the model that is served. Raises `EngineError` if it is not loaded in half an hour."""
        api_base = self._state.task.request.api_base
        status = await self._servers.status_for_request(request.model, api_base)
        if status is not None and status.is_loading:
            status = await self._loaded(request.model, api_base, status, cancel)
        if status is not None and status.kind == "ollama":
            await self._learn_window(request.model, api_base, status, cancel)
        if status is not None and status.kind == "llama_cpp":
            request = replace(request, options=replace(request.options, prompt_progress=True))
        if cancel.is_set:
            return request
        only = status.only_model if status is not None else None
        provider, _, name = request.model.removeprefix(REACT).partition("/")
        if only is not None and only.name != name:
            prefix = REACT if request.model.startswith(REACT) else ""
            request = self._to_model(request, f"{prefix}{provider}/{only.name}")
        if status is not None and status.is_described:
            self._tools.choose(self._choice_for(request.model))
        offer = self._tools.offer
        return replace(request, tools=offer.definitions, system_prompt=self._prompt.text(offer.call_form))

    def _to_model(self, request: ModelRequest, model: str) -> ModelRequest:
        change = (request.model, model)
        if change not in self._told and not request.model.endswith(f"/{LOADING}"):
            self._told.add(change)
            self._recorder.remark(ModelChanged(from_model=request.model, to_model=model, serves_other=True))
        return replace(request, model=model)

    async def _learn_window(self, model: str, api_base: str | None, status: ServerStatus, cancel: CancelSignal) -> None:
        """Let Ollama load the model, which tells its window, and say so if that is small.

        Longer requests are cut without a word.
        """
        served = status.find(served_name(model))
        if served is None:
            return
        if served.is_loaded is False:
            self._state.set_awaits_server(f"{self._servers.label(model, api_base, status)} is loading its model")
            await wait_or_cancel(self._servers.load(model, api_base), cancel)
            self._state.set_awaits_server("")
            await self._servers.status(model, api_base)
            served = self._servers.known(model, api_base) or served
        window, trained = served.context_tokens or 0, served.trained_tokens or 0
        if not window or window >= min(trained, _ENOUGH_TOKENS) or (model, "window") in self._told:
            return
        self._told.add((model, "window"))
        self._recorder.remark(SmallWindow(model=model, window=window, trained=trained))

    async def _loaded(
        self, model: str, api_base: str | None, status: ServerStatus, cancel: CancelSignal
    ) -> ServerStatus | None:
        """Return the status of a server once it has loaded its model, has gone, or the task is cancelled."""
        label, ends_at = self._servers.label(model, api_base, status), time.monotonic() + LOAD_TIMEOUT_S
        newest: ServerStatus | None = status
        self._state.set_awaits_server(f"{label} is loading its model")
        try:
            while newest is not None and newest.is_loading and not cancel.is_set:
                if time.monotonic() > ends_at:
                    raise EngineError(f"{label} has been loading its model for half an hour. Look at its output.")
                await wait_or_cancel(asyncio.sleep(_POLL_S), cancel)
                newest = await self._servers.status_for_request(model, api_base)
        finally:
            self._state.set_awaits_server("")
        return newest

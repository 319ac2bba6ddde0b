"""Adapts requests to models that refuse them: tools as text, or no temperature."""

import re
from dataclasses import replace

from app.engine.models.base import ModelRequest
from app.engine.models.catalog import model_facts
from app.protocol.notices import TemperatureLeftOut, ToolsAsText

# OpenAI's reasoning models accept only their default temperature, on any server.
_FIXED_TEMPERATURE = re.compile(r"(?:^|/)(?:o[134](?:-|$)|gpt-[5-9](?!.*chat))", re.IGNORECASE)


def accepts_temperature(request: ModelRequest) -> bool:
    """False for models with a fixed temperature, and while a model thinks."""
    return not _FIXED_TEMPERATURE.search(request.model) and not thinks(request)


def thinks(request: ModelRequest) -> bool:
    """True if the model thinks before this reply; an unknown model counts as thinking if the request enables it."""
    known = model_facts.facts(request.model)
    return request.options.thinking_level != "off" and (known is None or known.reasons)


def without_temperature(request: ModelRequest) -> ModelRequest:
    return replace(request, options=replace(request.options, temperature=None))


class LearnedLimits:
    """What the models at one address have refused since the engine started. Ids are without `react/`.

    Methods that change it return the notices to show: once per engine process for tools, once per conversation for
    temperatures.
    """

    def __init__(self) -> None:
        self._without_tools: set[str] = set()
        self._refused_temperatures: set[tuple[str, float]] = set()
        self._noticed: set[tuple[str | None, str]] = set()

    def calls_tools(self, model_id: str) -> bool:
        """False if the model refused tools, or the catalogue says that it does not support them."""
        if model_id in self._without_tools:
            return False
        known = model_facts.facts(model_id)
        return known is None or known.calls_tools is not False

    def refuse_tools(self, model_id: str) -> tuple[ToolsAsText, ...]:
        if model_id in self._without_tools:  # another task has already learned it
            return ()
        self._without_tools.add(model_id)
        return (ToolsAsText(model=model_id),)

    def takes_temperature(self, request: ModelRequest) -> bool:
        """False if the temperature of this request would be refused."""
        wanted = request.options.temperature
        refused = wanted is not None and (request.model, wanted) in self._refused_temperatures
        return wanted is None or (accepts_temperature(request) and not refused)

    def refuse_temperature(self, request: ModelRequest) -> None:
        if request.options.temperature is not None:
            self._refused_temperatures.add((request.model, request.options.temperature))

    def notice_temperature(self, request: ModelRequest) -> tuple[TemperatureLeftOut, ...]:
        """The notice that the temperature of this request is omitted."""
        wanted, place = request.options.temperature, (request.options.session_id, request.model)
        if wanted is None or place in self._noticed:
            return ()
        self._noticed.add(place)
        return (TemperatureLeftOut(model=request.model, temperature=wanted, thinks=thinks(request)),)

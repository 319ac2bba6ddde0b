"""Adapts requests to models that refuse them: tools as text, no pictures of tools, or no temperature."""

import re
from collections.abc import Iterable
from dataclasses import replace

from errand.engine.core.messages import (
    PICTURE_OMITTED,
    AssistantContent,
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolResultMessage,
    UserContent,
)
from errand.engine.models.base import ModelRequest
from errand.engine.models.catalog import model_facts
from errand.protocol.notices import TemperatureLeftOut, ThinkingNotSent, ToolsAsText

# OpenAI's reasoning models accept only their default temperature, on any server.
_FIXED_TEMPERATURE = re.compile(r"(?:^|/)(?:o[134](?:-|$)|gpt-[5-9](?!.*chat))", re.IGNORECASE)

# Of a reply of a small model, and of one that thinks before.
_MAX_SMALL_TOKENS = 4_096
_MAX_THOUGHT_TOKENS = 16_384

_THINKING_FIELDS = frozenset({"reasoning_effort", "reasoning", "thinking", "output_config"})


def accepts_temperature(request: ModelRequest) -> bool:
    """Return False for models with a fixed temperature, and while a model thinks."""
    return not _FIXED_TEMPERATURE.search(request.model) and not thinks(request)


def thinks(request: ModelRequest) -> bool:
    """Return True if the model thinks before this reply; an unknown model does if the request enables it."""
    facts = model_facts.facts(request.model)
    return request.options.thinking_level != "off" and (facts is None or facts.reasons)


def without_temperature(request: ModelRequest) -> ModelRequest:
    return replace(request, options=replace(request.options, temperature=None))


def without_summary(request: ModelRequest) -> ModelRequest:
    return replace(request, options=replace(request.options, thinking_summary=False))


def with_token_limit(request: ModelRequest) -> ModelRequest:
    """Return the request with a limit of tokens, for a small model: it may write until its window is full."""
    facts = model_facts.facts(request.model)
    most = _MAX_THOUGHT_TOKENS if facts is not None and facts.thinks else _MAX_SMALL_TOKENS
    return replace(request, options=replace(request.options, max_tokens=request.options.max_tokens or most))


def with_fields(request: ModelRequest, left_out: frozenset[str], required: frozenset[str]) -> ModelRequest:
    return replace(request, options=replace(request.options, left_out=left_out, required=required))


def has_signed_thoughts(request: ModelRequest) -> bool:
    return any(_signs(block) for message in request.messages for block in message.content)


def without_thoughts(request: ModelRequest) -> ModelRequest:
    """Return the request without the thoughts that a provider proves to be its own; others are not sent back to it."""
    messages = (
        replace(message, content=tuple(block for block in message.content if not _signs(block)))
        if isinstance(message, AssistantMessage)
        else message
        for message in request.messages
    )
    return replace(request, messages=tuple(messages))


def _signs(block: UserContent | AssistantContent) -> bool:
    return isinstance(block, Thinking) and bool(block.signature)


def has_result_pictures(request: ModelRequest) -> bool:
    return any(isinstance(message, ToolResultMessage) and _has_picture(message) for message in request.messages)


def without_result_pictures(request: ModelRequest) -> ModelRequest:
    """Return the request with a text in the place of each picture that a tool made; those of people stay."""
    messages = (
        replace(message, content=tuple(map(_text_for, message.content)))
        if isinstance(message, ToolResultMessage) and _has_picture(message)
        else message
        for message in request.messages
    )
    return replace(request, messages=tuple(messages)) if has_result_pictures(request) else request


def _has_picture(message: ToolResultMessage) -> bool:
    return any(isinstance(block, Image) for block in message.content)


def _text_for(block: UserContent) -> UserContent:
    return block if isinstance(block, Text) else Text(f"\n{PICTURE_OMITTED}")


class LearnedLimits:
    """The refusals of the models at one address since the engine started. Ids are without `react/`.

    Methods that change it return the notices to show: once per engine process for tools, once per conversation for
    temperatures.
    """

    def __init__(self, address: str | None = None) -> None:
        self._address = address
        self._without_tools: set[str] = set()
        self._without_pictures: set[str] = set()
        self._without_summaries: set[str] = set()
        self._refused_fields: dict[str, frozenset[str]] = {}
        self._required_fields: dict[str, frozenset[str]] = {}
        self._refused_temperatures: set[tuple[str, float]] = set()
        self._noticed: set[tuple[str | None, str]] = set()

    def calls_tools(self, model_id: str) -> bool:
        """Return False if the model refused tools, or the catalogue says that it does not support them."""
        if model_id in self._without_tools:
            return False
        facts = model_facts.facts(model_id, self._address)
        return facts is None or facts.calls_tools is not False

    def refuse_tools(self, model_id: str) -> tuple[ToolsAsText, ...]:
        if model_id in self._without_tools:  # another task has already learned it
            return ()
        self._without_tools.add(model_id)
        return (ToolsAsText(model=model_id),)

    def notice_text_tools(self, request: ModelRequest) -> tuple[ToolsAsText, ...]:
        """Return the notice that the tools of this request are written as text, which its server said beforehand."""
        notice_key = (request.options.session_id, f"{request.model} tools")
        if request.model in self._without_tools or notice_key in self._noticed or not request.tools:
            return ()
        self._noticed.add(notice_key)
        return (ToolsAsText(model=request.model),)

    def takes_pictures(self, model_id: str) -> bool:
        """Return False if the model refused pictures; what the catalogue says is known to the provider's requests."""
        return model_id not in self._without_pictures

    def refuse_pictures(self, model_id: str) -> None:
        self._without_pictures.add(model_id)

    def gives_summaries(self, model_id: str) -> bool:
        return model_id not in self._without_summaries

    def refuse_summary(self, model_id: str) -> None:
        self._without_summaries.add(model_id)

    def refused_fields(self, model_id: str) -> frozenset[str]:
        return self._refused_fields.get(model_id, frozenset())

    def refuse_field(self, model_id: str, fields: Iterable[str]) -> bool:
        """Learn the first of the fields that is not known as refused; False if all are."""
        return _learn(self._refused_fields, model_id, fields)

    def required_fields(self, model_id: str) -> frozenset[str]:
        return self._required_fields.get(model_id, frozenset())

    def require_field(self, model_id: str, fields: Iterable[str]) -> bool:
        """Learn the first of the fields that is neither known as required nor as refused; False if there is none."""
        refused = self.refused_fields(model_id)
        return _learn(self._required_fields, model_id, (field for field in fields if field not in refused))

    def notice_thinking(self, request: ModelRequest) -> tuple[ThinkingNotSent, ...]:
        """Return the notice that the thinking level of this request is not sent."""
        options, level = request.options, request.options.thinking_level
        notice_key = (options.session_id, f"{request.model} {level}")
        if level == "off" or notice_key in self._noticed or not options.left_out & _THINKING_FIELDS:
            return ()
        self._noticed.add(notice_key)
        return (ThinkingNotSent(model=request.model, level=level, why="no_way"),)

    def takes_temperature(self, request: ModelRequest) -> bool:
        """Return False if the temperature of this request would be refused."""
        temperature = request.options.temperature
        refused = temperature is not None and (request.model, temperature) in self._refused_temperatures
        return temperature is None or (accepts_temperature(request) and not refused)

    def refuse_temperature(self, request: ModelRequest) -> None:
        if request.options.temperature is not None:
            self._refused_temperatures.add((request.model, request.options.temperature))

    def notice_temperature(self, request: ModelRequest) -> tuple[TemperatureLeftOut, ...]:
        """Return the notice that the temperature of this request is omitted."""
        temperature, key = request.options.temperature, (request.options.session_id, request.model)
        if temperature is None or key in self._noticed:
            return ()
        self._noticed.add(key)
        return (TemperatureLeftOut(model=request.model, temperature=temperature, thinks=thinks(request)),)


def _learn(fields_by_model: dict[str, frozenset[str]], model_id: str, fields: Iterable[str]) -> bool:
    before = fields_by_model.get(model_id, frozenset())
    field = next((field for field in fields if field not in before), None)
    if field is not None:
        fields_by_model[model_id] = before | {field}
    return field is not None

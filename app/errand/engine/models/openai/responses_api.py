"""OpenAI's Responses API: the address, the headers and the fields of a request."""

import re
from urllib.parse import urlsplit

from errand.engine.models.base import ModelRequest
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import RESPONSES_PATH, Provider
from errand.engine.models.openai.request import is_late_gpt, openai_effort
from errand.engine.models.openai.responses_request import input_items, tool_definitions
from errand.engine.models.openai.responses_stream import ResponseReader
from errand.engine.models.reply.builder import ReplyBuilder
from errand.protocol.base import JsonObject

# OpenAI's reasoning models that the catalogue does not know yet. The models named chat do not reason.
_REASONING = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d))(?!.*chat)")
_CHAT = re.compile(r"chat")
_OFFICIAL = "api.openai.com"
# The API refuses less.
_MIN_TOKENS = 16


class ResponsesApi:
    """An `ApiFormat`. Nothing is stored at the provider: each request has the whole conversation."""

    def __init__(self, provider: Provider, server: str = "") -> None:
        self._provider = provider
        self._server = "" if server == _OFFICIAL else server

    def urls(self, base: str) -> tuple[str, ...]:
        base = base.removesuffix(RESPONSES_PATH)
        paths = (RESPONSES_PATH,) if urlsplit(base).path else (RESPONSES_PATH, f"/v1{RESPONSES_PATH}")
        return tuple(f"{base}{path}" for path in paths)

    def headers(self, key: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> JsonObject:
        provider, options = self._provider, request.options
        with_phases = _has_phases(request.model) and "phase" not in options.left_out
        body: JsonObject = {
            "model": request.model.partition("/")[2],
            "input": input_items(request, provider, with_phases=with_phases, server=self._server),
            "stream": True,
            "store": False,
        }
        if request.system_prompt:
            body["instructions"] = request.system_prompt
        if request.tools:
            body["tools"] = tool_definitions(request.tools, with_strict="strict" not in options.left_out)
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body["max_output_tokens"] = max(options.max_tokens, _MIN_TOKENS)
        if provider.cache_field and options.session_id:
            body[provider.cache_field] = options.session_id
        body |= _reasoning_fields(request)
        return {name: value for name, value in body.items() if name not in options.left_out}

    def reader(self, builder: ReplyBuilder) -> ResponseReader:
        return ResponseReader(builder, self._provider.title, self._server)


def reasons(model: str) -> bool:
    """Return True if OpenAI's model of this id thinks: by the catalogue, else by its name."""
    name = model.rpartition("/")[2]
    facts = model_facts.facts(model)
    if facts is None:
        return _REASONING.match(name) is not None
    return facts.reasons and _CHAT.search(name) is None


def _reasoning_fields(request: ModelRequest) -> JsonObject:
    """Return how much to think, and the form of thoughts: encrypted for the model, summarised for people."""
    level, facts = request.options.thinking_level, model_facts.facts(request.model)
    is_thinker = reasons(request.model)
    if not is_thinker and (level == "off" or facts is not None):
        return {}
    reasoning: JsonObject = {}
    if level != "off":
        reasoning["effort"] = openai_effort(request.model, level)
    elif facts is not None and "none" in facts.efforts:
        reasoning["effort"] = "none"
    if reasoning.get("effort") != "none" and request.options.thinking_summary:
        reasoning["summary"] = "auto"
    fields: JsonObject = {"include": ["reasoning.encrypted_content"]}
    if reasoning:
        fields["reasoning"] = reasoning
    return fields


def _has_phases(model: str) -> bool:
    """Return True for models that are told which of their texts was said on the way and which was the answer."""
    return is_late_gpt(model) or "gpt-5.3-codex" in model

"""Anthropic's Messages API: the address, the headers and the fields of a request."""

from errand.engine.core.messages import AssistantMessage, UserMessage
from errand.engine.models.anthropic.request import (
    has_own_thinking,
    messages_with_marks,
    tool_definitions,
    with_mark,
    without_marks,
)
from errand.engine.models.anthropic.stream import MessageReader
from errand.engine.models.base import ModelRequest
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.model_facts import ModelFacts
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.reply.builder import ReplyBuilder
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject

_PATH = "/v1/messages"
_OFFICIAL = "api.anthropic.com"
_VERSION = "2023-06-01"
# The API requires a limit; for models whose limit is unknown, one that all of the last years accept.
_MAX_TOKENS = 8_192
# Tokens of thought for models that are not told an effort instead; the least that is accepted is 1,024.
_BUDGETS: dict[ThinkingLevel, int] = {"minimal": 1_024, "low": 1_024, "medium": 2_048, "high": 4_096, "xhigh": 8_192}
_MIN_THINKING_TOKENS = 1_024


class MessagesApi:
    """An `ApiFormat`. `server` is empty for Anthropic's own; others may send thoughts without a signature."""

    def __init__(self, provider: Provider, server: str = "") -> None:
        self._provider = provider
        self._server = "" if server == _OFFICIAL else server

    def urls(self, base: str) -> tuple[str, ...]:
        return (base.removesuffix(_PATH).removesuffix("/v1") + _PATH,)

    def headers(self, key: str | None) -> dict[str, str]:
        return {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})

    def body(self, request: ModelRequest) -> JsonObject:
        options = request.options
        facts = model_facts.facts(request.model)
        max_tokens = options.max_tokens or (facts.output_tokens if facts is not None else None) or _MAX_TOKENS
        thinking = _thinking_fields(request, facts, max_tokens)
        thinks = bool(thinking) or (facts is not None and facts.always_thinks)
        body: JsonObject = {
            "model": request.model.partition("/")[2],
            "max_tokens": max_tokens,
            "messages": messages_with_marks(request, self._provider, thinks=thinks, server=self._server),
            "stream": True,
        }
        if request.system_prompt:
            body["system"] = [with_mark({"type": "text", "text": request.system_prompt})]
        if request.tools:
            body["tools"] = tool_definitions(request.tools)
        if options.temperature is not None and not thinks:  # a thinking model accepts none
            body["temperature"] = options.temperature
        body |= thinking
        if "cache_control" in options.left_out:
            body = without_marks(body)
        return {name: value for name, value in body.items() if name == "max_tokens" or name not in options.left_out}

    def reader(self, builder: ReplyBuilder) -> MessageReader:
        return MessageReader(builder, self._provider.title, self._server)


def _thinking_fields(request: ModelRequest, facts: ModelFacts | None, max_tokens: int) -> JsonObject:
    """Return how much the model should think: an effort for newer and unknown models, a token budget for older."""
    level, token_budget = request.options.thinking_level, request.options.thinking_budget
    if level == "off" or (facts is not None and not facts.reasons):
        return {}
    if facts.takes_effort if facts is not None else token_budget is None:
        # Without `display` the thoughts come without their text.
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": _effort(level, facts)},
        }
    budget = min(token_budget or _BUDGETS[level], max_tokens - 1)
    if budget < _MIN_THINKING_TOKENS or not _may_think(request):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _effort(level: ThinkingLevel, facts: ModelFacts | None) -> str:
    if level == "minimal":
        return "low"
    return "high" if level == "xhigh" and (facts is None or level not in facts.efforts) else level


def _may_think(request: ModelRequest) -> bool:
    """False in the middle of work that was begun without a thought of this model: older ones refuse that."""
    for message in reversed(request.messages):
        match message:
            case AssistantMessage():
                return not message.tool_calls or has_own_thinking(message, request.model)
            case UserMessage():
                return True
            case _:
                continue
    return True

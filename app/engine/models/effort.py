"""Thinking levels in the words of each provider: the fields a request gets, none where a model has no such thing."""

import re

from app.engine.messages import ThinkingLevel
from app.engine.models import prices
from app.engine.models.base import ModelRequest
from app.engine.models.catalog import Provider
from app.protocol.json import JsonObject

_OPEN_REASONING = re.compile(r"gpt-oss", re.IGNORECASE)
_GPT = re.compile(r"(?:^|/)gpt-(\d+)(?:\.(\d+))?")


def effort_fields(request: ModelRequest, provider: Provider) -> JsonObject:
    """`reasoning_effort` or its like for this request."""
    level = request.options.thinking_level
    if provider.name == "openrouter":
        return {} if level == "off" else {"reasoning": {"effort": level}}
    name = request.model.partition("/")[2]
    if level == "off":
        return _off(request, provider, name)
    if provider.name == "openai" or _is_openai_name(provider, name):
        return _openai(request.model, level)
    if _OPEN_REASONING.search(name) or name.startswith("grok-3-mini"):
        return {"reasoning_effort": _narrow(level)}
    if provider.name == "mistral" and _reasons(request.model):
        return {"reasoning_effort": "high"}
    return {}


def needs_responses(request: ModelRequest) -> bool:
    """Whether OpenAI takes this request only on its other interface.

    From gpt-5.4 on, chat completions refuse function tools while the model reasons, and reasoning is on unless the
    effort is "none" (from 6 on some models cannot turn it off).
    """
    if not request.tools or not _is_late_gpt(request.model):
        return False
    known = prices.facts(request.model)
    return request.options.thinking_level != "off" or (known is not None and "none" not in known.efforts)


def _off(request: ModelRequest, provider: Provider, name: str) -> JsonObject:
    late = provider.name == "openai" and _is_late_gpt(request.model)
    return {"reasoning_effort": "none"} if late and request.tools else {}


def _openai(model: str, level: ThinkingLevel) -> JsonObject:
    known = prices.facts(model)
    if known is None or not known.reasons:
        return {}
    if level in ("minimal", "xhigh") and level not in known.efforts:
        level = _narrow(level)
    return {"reasoning_effort": level}


def _narrow(level: ThinkingLevel) -> ThinkingLevel:
    """The nearest of low, medium and high."""
    if level == "minimal":
        return "low"
    return "high" if level == "xhigh" else level


def _reasons(model: str) -> bool:
    known = prices.facts(model)
    return known is not None and known.reasons


def _is_late_gpt(model: str) -> bool:
    found = _GPT.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 4)


def _is_openai_name(provider: Provider, name: str) -> bool:
    return (provider.name == "openai_compatible" or provider.own) and re.match(r"(gpt-5|o[134](-|$))", name) is not None

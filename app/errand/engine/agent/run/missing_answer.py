"""Replies that are no answer: nothing to read, an end before the call or answer, a call written as text."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from errand.engine.core.messages import AssistantMessage
from errand.engine.models.base import ToolDefinition
from errand.protocol.base import JsonValue
from errand.protocol.notices import MissingAnswer

# Longer texts with a call in them are answers.
_MAX_CALL_CHARACTERS = 100_000
_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)
# At the start of a line: the marks in which models are trained to write calls.
_MARK = re.compile(
    r"^[ \t]*(?:<(?:tool_call|tool_calls|tools|function_call|function_calls|tool_code|tool_use|invoke)\b[^>\n]*>"
    r"|<function[=_ ][^>\n]*>|\[TOOL_CALLS?\]|<\|(?:tool_call|tool_calls|python_tag)[^>\n]*\|>"
    r"|<[|｜]tool[▁_]calls?[^>\n]*>|<\|channel\|>[^\n]*to=)",
    re.MULTILINE | re.IGNORECASE,
)
# What follows a call written as text: nothing but closing marks.
_END = re.compile(r"(?:\}|\]|>|```|\))\s*\Z")
_NAME = re.compile(r"[A-Za-z_][\w.:-]{0,99}")
_NAME_FIELDS = ("name", "tool", "tool_name", "function")
_ARGUMENT_FIELDS = ("arguments", "parameters", "args", "input", "tool_input")


def missing_answer(reply: AssistantMessage, tools: Sequence[ToolDefinition]) -> MissingAnswer | None:
    """Why a complete reply is no answer; None if it is one, or calls a tool."""
    if reply.tool_calls or reply.stop_reason in ("error", "aborted", "length"):
        return None
    if reply.stop_reason == "tool_use":
        return "unfinished"
    if not reply.text.strip():
        return "empty"
    return "call_as_text" if tools and _is_call(reply.text.strip(), tools) else None


def _is_call(text: str, tools: Sequence[ToolDefinition]) -> bool:
    if len(text) > _MAX_CALL_CHARACTERS or not _END.search(text):
        return False
    if any(not _is_in_fence(text, mark.start()) for mark in _MARK.finditer(text)):
        return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in _known_names(tools))
    fenced = _FENCE.match(text)
    inside = fenced["inside"] if fenced and "```" not in fenced["inside"] else text
    names = list(_called_names(_json(inside)))
    return bool(names) and (fenced is None or all(name.rpartition(".")[2] in {*_known_names(tools)} for name in names))


def _is_in_fence(text: str, position: int) -> bool:
    """True inside a fence that began after other text: an example in an answer."""
    before = text[:position]
    return before.count("```") % 2 == 1 and not before.startswith("```")


def _known_names(tools: Sequence[ToolDefinition]) -> Iterator[str]:
    """The names of tools and of their actions: small models call `read` where the tool is `code`."""
    for tool in tools:
        yield tool.name
        properties = tool.parameters.get("properties")
        action = properties.get("action") if isinstance(properties, dict) else None
        values = action.get("enum") if isinstance(action, dict) else None
        yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _json(text: str) -> JsonValue:
    """The JSON of a text, with doubled braces too, as in templates that were copied; None if it is something else."""
    for candidate in (text, text.removeprefix("{").removesuffix("}")):
        try:
            return msgspec.json.decode(candidate)
        except (ValueError, RecursionError):
            continue
    return None


def _called_names(value: JsonValue) -> Iterator[str]:
    """The names in a call or a list of calls; none for an object that is something else."""
    for call in value if isinstance(value, list) else [value]:
        if not isinstance(call, dict):
            return
        inner = call.get("function")
        fields = inner if isinstance(inner, dict) else call
        name = next((fields[field] for field in _NAME_FIELDS if isinstance(fields.get(field), str)), None)
        has_arguments = any(isinstance(fields.get(field), dict | str) for field in _ARGUMENT_FIELDS)
        if not isinstance(name, str) or not has_arguments or not _NAME.fullmatch(name):
            return
        yield name

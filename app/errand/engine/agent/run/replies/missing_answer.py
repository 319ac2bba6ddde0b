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
# At the start of a line: the marks in which models are trained to write calls. The second ones mean more than calls,
# so that a tool must be named after them.
_MARK = re.compile(
    r"^[ \t]*(?:<(?:tool_call|tool_calls|function_call|function_calls|tool_code|tool_use)\b[^>\n]*>"
    r"|<function=[^>\n]*>|\[TOOL_CALLS?\]|<\|(?:tool_call|tool_calls|python_tag|start_of_tool)[^>\n]*\|?>"
    r"|<[|｜]tool[▁_]calls?[^>\n]*>|(?:<\|(?:start|channel)\|>|assistant|commentary)[^\n]*\bto=)",
    re.MULTILINE | re.IGNORECASE,
)
_VAGUE_MARK = re.compile(
    r"^[ \t]*(?:<(?:tools?|invoke|function)\b[^>\n]*>|(?:\*\*)?Action:)", re.MULTILINE | re.IGNORECASE
)
# What follows a call written as text: nothing but closing marks.
_END = re.compile(r"(?:\}|\]|>|```|\))\s*\Z")
# A call as a line of code, such as `functions.shell({…})` or `[shell(command="ls")]`.
_PYTHON_CALL = re.compile(
    r"\A\[?(?:print\()?(?:call:)?(?:(?:functions?|tools?|default_api)[.:])?(?P<name>\w+)[ \t]*[({].*[)}]\)?\]?\Z",
    re.DOTALL,
)
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
    if _has_mark(_MARK, text):
        return True
    names = {*_known_names(tools)}
    if _has_mark(_VAGUE_MARK, text):
        return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)
    fenced = _FENCE.match(text)
    inside = fenced["inside"].strip() if fenced and "```" not in fenced["inside"] else text
    if (call := _PYTHON_CALL.match(inside)) is not None:
        return call["name"] in names
    called = [name.rpartition(".")[2] for name in _called_names(_json(inside))]
    # Other names count only where nobody would write such an object as data.
    return bool(called) and (names.issuperset(called) or (fenced is None and '"arguments"' in inside))


def _has_mark(mark: re.Pattern[str], text: str) -> bool:
    return any(not _is_in_fence(text, match.start()) for match in mark.finditer(text))


def _is_in_fence(text: str, position: int) -> bool:
    """True inside a fence that began after other text: an example in an answer."""
    before = text[:position]
    return before.count("```") % 2 == 1 and not before.startswith("```")


def _known_names(tools: Sequence[ToolDefinition]) -> Iterator[str]:
    """Yield the names of tools and of their actions: small models call `read` where the tool is `code`."""
    for tool in tools:
        yield tool.name
        properties = tool.parameters.get("properties")
        action = properties.get("action") if isinstance(properties, dict) else None
        values = action.get("enum") if isinstance(action, dict) else None
        yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _json(text: str) -> JsonValue:
    """Return the JSON of a text, with doubled braces too, as in templates that were copied; None if it is something
    else.
    """
    for candidate in (text, text.removeprefix("{").removesuffix("}")):
        try:
            return msgspec.json.decode(candidate)
        except (ValueError, RecursionError):
            continue
    return None


def _called_names(value: JsonValue) -> Iterator[str]:
    """Yield the names in a call or a list of calls; none for an object that is something else."""
    for call in value if isinstance(value, list) else [value]:
        if not isinstance(call, dict):
            return
        inner = call.get("function")
        fields = inner if isinstance(inner, dict) else call
        name = next((fields[field] for field in _NAME_FIELDS if isinstance(fields.get(field), str)), None)
        has_arguments = any(isinstance(fields.get(field), dict | str) for field in _ARGUMENT_FIELDS)
        schema = fields.get("parameters")
        is_schema = "description" in fields or (isinstance(schema, dict) and "properties" in schema)
        if not isinstance(name, str) or not has_arguments or is_schema or not _NAME.fullmatch(name):
            return
        yield name

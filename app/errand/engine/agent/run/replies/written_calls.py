"""Reads calls that a model wrote as text, in the forms that models are trained on or that small ones make up.

A text is read only if it is nothing but calls: an example inside an answer is no call.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import msgspec

from errand.engine.core.json_input.lenient_json import read_object
from errand.protocol.base import JsonObject, JsonValue

# Longer texts with a call in them are answers.
MAX_CALL_CHARACTERS = 100_000
_MAX_CALLS = 20
_NAME = re.compile(r"[A-Za-z_][\w.:-]{0,99}")
_FENCE = re.compile(r"```(?P<language>[\w+-]*)[ \t]*\n(?P<inside>.*?)\n?```", re.DOTALL)
_PROGRAMS = frozenset(("python", "py", "bash", "sh", "shell", "console"))
_OPENING = re.compile(
    r"(?:<(?:tool_call|tool_calls|function_call|function_calls|tool_code|tool_use|tools?)>"
    r"|<\|(?:tool_call|tool_calls|python_tag)\|?>|\[TOOL_CALLS?\])\s*",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\s*(?:</(?:tool_call|tool_calls|function_call|function_calls|tool_code|tool_use|tools?)>|<\|/?\w+\|>|;)",
    re.IGNORECASE,
)
_FUNCTION = re.compile(r"<function=(?P<name>[\w.:-]{1,100})>(?P<inside>.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(?P<name>[\w.:-]{1,100})>(?P<value>(?:[^<]|<(?!/?parameter\b))*+)</parameter>")
_ELEMENT = re.compile(
    r"""<function\s+name="(?P<name>[\w.:-]{1,100})"\s+arguments='(?P<arguments>[^']*)'\s*/?>(?:\s*</function>)?"""
)
_INVOKE = re.compile(r'<invoke name="(?P<name>[\w.:-]{1,100})">(?P<inside>.*?)(?:</invoke>|\Z)', re.DOTALL)
_INVOKE_PARAMETER = re.compile(
    r'<parameter name="(?P<name>[\w.:-]{1,100})">(?P<value>(?:[^<]|<(?!/?parameter\b))*+)</parameter>'
)
_GLM = re.compile(r"(?P<name>[\w.:-]{1,100})\s*(?P<inside><arg_key>.*</arg_value>)\s*", re.DOTALL)
_GLM_PARAMETER = re.compile(
    r"<arg_key>(?P<name>[^<]*+)</arg_key>\s*+<arg_value>(?P<value>(?:[^<]|<(?!/?arg_))*+)</arg_value>"
)
_ACTION = re.compile(r"(?:Thought:[^\n]*\n)?Action: *(?P<name>[\w.:-]{1,100})\s*\nAction Input: *(?=\{)")
_PYTHON_CALL = re.compile(r"\A(?:(?:functions?|tools?|default_api)\.)?[A-Za-z_]\w{0,99}\(.*\)\Z", re.DOTALL)
# Line breaks may stand in strings.
_DECODER = json.JSONDecoder(strict=False)
_NAME_FIELDS = ("name", "tool", "tool_name", "function", "recipient_name")
_ARGUMENT_FIELDS = ("arguments", "parameters", "args", "input", "tool_input")


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as written. `positional` are arguments without a name, of a call written as Python."""

    name: str
    arguments: JsonObject
    positional: tuple[JsonValue, ...] = ()


def written_calls(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls of a text that is nothing but calls; empty for any other text."""
    text = text.strip()
    if not text or len(text) > MAX_CALL_CHARACTERS:
        return ()
    calls: list[WrittenCall] = []
    while text and len(calls) < _MAX_CALLS:
        part = _first_calls(text)
        if part is None:
            return ()
        first_calls, text = part
        calls += first_calls
    return tuple(calls) if not text else ()


def _first_calls(text: str) -> tuple[list[WrittenCall], str] | None:
    """Return the calls at the beginning of the text, and the text after them; None if there are none."""
    if fence := _FENCE.match(text):
        if fence["language"] in _PROGRAMS:  # code that somebody asked for
            return None
        calls = written_calls(fence["inside"])
        return ([*calls], text[fence.end() :].lstrip()) if calls else None
    if opening := _OPENING.match(text):
        text = text[opening.end() :]
    part = _function_call(text) or _json_calls(text) or _python_calls(text)
    if part is None:
        return None
    calls, rest = part
    while closing := _CLOSING.match(rest):
        rest = rest[closing.end() :]
    return calls, rest.lstrip()


def _function_call(text: str) -> tuple[list[WrittenCall], str] | None:
    """Read a call whose name stands in a tag, or before its arguments."""
    for pattern, parameter in ((_FUNCTION, _PARAMETER), (_INVOKE, _INVOKE_PARAMETER), (_GLM, _GLM_PARAMETER)):
        if match := pattern.match(text):
            arguments = _tagged_arguments(match["inside"], parameter)
            return None if arguments is None else ([WrittenCall(match["name"], arguments)], text[match.end() :])
    if match := _ELEMENT.match(text):
        read = read_object(match["arguments"])
        return ([WrittenCall(match["name"], read)], text[match.end() :]) if read is not None else None
    if match := _ACTION.match(text):
        value, rest = _first_json(text[match.end() :])
        return ([WrittenCall(match["name"], value)], rest) if isinstance(value, dict) else None
    return None


def _tagged_arguments(inside: str, parameter: re.Pattern[str]) -> JsonObject | None:
    """Return the arguments between tags, or as one JSON object; None if there is anything else."""
    arguments: JsonObject = {match["name"].strip(): _unwrapped(match["value"]) for match in parameter.finditer(inside)}
    rest = parameter.sub("", inside).strip()
    if rest and not arguments:
        return read_object(rest)
    return None if rest else arguments


def _unwrapped(value: str) -> str:
    """Return a value without the line breaks between it and its tags."""
    return value.removeprefix("\n").removesuffix("\n")


def _json_calls(text: str) -> tuple[list[WrittenCall], str] | None:
    """Read an object, or a list of objects."""
    value, rest = _first_json(text)
    calls = [_call_of(item) for item in (value if isinstance(value, list) else [value])]
    named = [call for call in calls if call is not None]
    return (named, rest) if named and len(named) == len(calls) else None


def _first_json(text: str) -> tuple[JsonValue, str]:
    """Return the value at the beginning of the text, and the text after it; None for what is no JSON.

    Braces may be doubled, as in templates that were copied.
    """
    for braces in ("", "{"):
        if not text.startswith(braces * 2):
            continue
        try:
            value, end = _DECODER.raw_decode(text, len(braces))
        except (ValueError, RecursionError):
            continue
        closing = "}" * len(braces)
        if text.startswith(closing, end):
            return cast(JsonValue, value), text[end + len(closing) :]
    return read_object(text), ""


def _call_of(value: JsonValue) -> WrittenCall | None:
    """Return the call that an object is; None if it is something else, such as the definition of a tool."""
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    fields = inner if isinstance(inner, dict) else value
    name = next((fields[field] for field in _NAME_FIELDS if isinstance(fields.get(field), str)), None)
    raw = next((fields[field] for field in _ARGUMENT_FIELDS if isinstance(fields.get(field), dict | str)), None)
    arguments = read_object(raw) if isinstance(raw, str) else raw
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(arguments, dict):
        return None
    is_definition = "description" in fields or "properties" in arguments
    return None if is_definition else WrittenCall(name, arguments)


def _python_calls(text: str) -> tuple[list[WrittenCall], str] | None:
    source = text.strip()
    if source.startswith("print(") and source.endswith(")"):
        source = source[6:-1]
    if not (_PYTHON_CALL.match(source) or (source.startswith("[") and source.endswith(")]"))):
        return None
    try:
        body = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = body.elts if isinstance(body, ast.List) else [body]
    calls = [*_calls_of(nodes)]
    return (calls, "") if calls and len(calls) == len(nodes) else None


def _calls_of(nodes: list[ast.expr]) -> Iterator[WrittenCall]:
    for node in nodes:
        if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
            return
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        try:
            arguments = {str(keyword.arg): _literal(keyword.value) for keyword in node.keywords}
            positional = tuple(map(_literal, node.args))
        except (ValueError, TypeError, RecursionError, msgspec.ValidationError):
            return
        if len(positional) == 1 and isinstance(positional[0], dict) and not arguments:
            arguments, positional = positional[0], ()
        yield WrittenCall(str(name), arguments, positional)


def _literal(node: ast.expr) -> JsonValue:
    return msgspec.json.decode(msgspec.json.encode(ast.literal_eval(node)))

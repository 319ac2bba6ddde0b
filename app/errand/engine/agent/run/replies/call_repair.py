"""Makes what a model calls out of what it wrote: names of tools in their own form; says what was not understood."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.run.task_context import TaskTools
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.json_input.lenient_json import read_object
from errand.engine.core.messages import TASK_COMPLETE, UNREADABLE_CALL, AssistantContent, Text, ToolCall, UserContent
from errand.engine.models.base import ModelRequest, ReplyEnd, ToolDefinition
from errand.engine.tools.argument_check import check_arguments
from errand.engine.tools.base import GuardedTool
from errand.engine.tools.call_names import meanings, names_text
from errand.engine.tools.mcp.definitions import is_service_tool
from errand.engine.tools.results import ToolError, ToolResult
from errand.protocol.base import JsonObject, JsonValue

_WRAPPERS = frozenset(("arguments", "parameters", "args", "input"))
_NAMES_OF_CALLS = frozenset(("name", "tool", "tool_name", "function"))
_MAX_LISTED_ARGUMENTS = 10
_MAX_NAME_LENGTH = 60
_MAX_SAMPLE_LENGTH = 80
_SAMPLES = {"path": "notes.txt", "command": "ls", "question": "Which one?", "url": "https://example.org"}


class CallRepair(Feature):
    """Gives calls the tool's own name before anything sees the reply, and names unknown tools and arguments."""

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd:
        content = tuple(map(self._named, end.message.content))
        return end if content == end.message.content else replace(end, message=replace(end.message, content=content))

    async def complete_result(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Name the tools if the call's tool is unknown, else the arguments that its tool does not know or lacks."""
        remark = self._remark(call)
        example = self._example(call) if result.is_error else ""
        text = "\n".join(filter(None, (remark, example)))
        return replace(result, content=_with_text(result.content, f"\n\n{text}")) if text else result

    def _named(self, block: AssistantContent) -> AssistantContent:
        if not isinstance(block, ToolCall) or block.name == UNREADABLE_CALL:
            return block
        fitting = meanings(block.name, self._names)
        if len(fitting) != 1:
            return block
        meaning = fitting[0]
        arguments = self._unwrapped(meaning.tool, block.arguments)
        if meaning.tool == block.name and arguments is block.arguments:
            return block
        return replace(block, name=meaning.tool, arguments={**arguments, **meaning.sets})

    def _unwrapped(self, name: str, arguments: JsonObject) -> JsonObject:
        """Return the arguments without a wrapper that the tool does not declare: `{"arguments": {…}}`, or the whole
        call.
        """
        tool = next(tool for tool in self._tools.all if tool.name == name)
        properties = tool.parameters.get("properties")
        wrappers = arguments.keys() & _WRAPPERS
        if not isinstance(properties, dict) or arguments.keys() & properties.keys() or len(wrappers) != 1:
            return arguments
        (wrapper,) = wrappers
        inner, others = arguments[wrapper], arguments.keys() - {wrapper}
        inner = read_object(inner) if isinstance(inner, str) else inner
        is_this_call = all(
            other in _NAMES_OF_CALLS and _is_name_of(arguments[other], name, self._names) for other in others
        )
        return inner if isinstance(inner, dict) and is_this_call else arguments

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self._tools.all)

    def _remark(self, call: ToolCall) -> str:
        names = self._names
        if call.name not in names:
            return "" if call.name == UNREADABLE_CALL else names_text(call.name, names, self._tools.offer.names)
        if is_service_tool(call.name) or call.name == TASK_COMPLETE or call.invalid is not None:
            return ""  # a server gets all arguments and decides itself; what ends a task is not answered
        tool = next(tool for tool in self._tools.all if tool.name == call.name)
        unknown = list(dict.fromkeys(_unknown_arguments(_prepared(tool, call.arguments), tool.parameters)))
        if not unknown:
            return ""
        form = self._tools.offer.form_of(call)
        return _unknown_text(form.definition if form is not None else tool, unknown)

    def _example(self, call: ToolCall) -> str:
        """Return a call with the arguments that its tool needs, if this one lacks some or has wrong ones."""
        form = self._tools.offer.form_of(call)
        if form is None or is_service_tool(call.name) or call.name == TASK_COMPLETE:
            return ""  # schemas of others, which may take long to check
        needed = form.definition.parameters.get("required")
        names = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
        if form.arguments.keys() >= {*names} and not self._is_refused(call):
            return ""
        example = {name: _sample(name, form.arguments.get(name), form.definition.parameters) for name in names}
        return f"[A call of {form.definition.name} looks like this: {msgspec.json.encode(example).decode()}]"

    def _is_refused(self, call: ToolCall) -> bool:
        """Return whether the tool does not take these arguments."""
        tool = next(tool for tool in self._tools.all if tool.name == call.name)
        try:
            check_arguments(tool.name, tool.parameters, tool.prepare_arguments(call.arguments))
        except ToolError:
            return True
        return call.invalid is not None


def _is_name_of(value: JsonValue, tool: str, names: Sequence[str]) -> bool:
    return isinstance(value, str) and [meaning.tool for meaning in meanings(value, names)] == [tool]


def _with_text(content: tuple[UserContent, ...], text: str) -> tuple[UserContent, ...]:
    match content:
        case (*before, Text(text=last)):
            return (*before, Text(last + text))
        case _:
            return (*content, Text(text))


def _sample(name: str, value: JsonValue, parameters: JsonObject) -> JsonValue:
    """Return the value of an argument if it is a short text, else one that fits."""
    if isinstance(value, str) and 0 < len(value) <= _MAX_SAMPLE_LENGTH:
        return value
    properties = parameters.get("properties")
    schema = properties.get(name) if isinstance(properties, dict) else None
    declared = schema if isinstance(schema, dict) else {}
    choices = declared.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    samples: dict[JsonValue, JsonValue] = {"integer": 1, "number": 1, "boolean": True, "array": ["…"], "object": {}}
    kind = declared.get("type")
    return samples.get(kind, _SAMPLES.get(name, "…")) if isinstance(kind, str) else _SAMPLES.get(name, "…")


def _unknown_text(tool: ToolDefinition | GuardedTool, unknown: list[str]) -> str:
    listed = ", ".join(f"`{path[:_MAX_NAME_LENGTH]}`" for path in unknown[:_MAX_LISTED_ARGUMENTS])
    verb = "is not an argument" if len(unknown) == 1 else "are not arguments"
    possible = ", ".join(_argument_paths(tool.parameters))
    return f"[{listed} {verb} of {tool.name}, and had no effect. Its arguments are: {possible}.]"


def _prepared(tool: GuardedTool, arguments: JsonObject) -> JsonObject:
    """Return the arguments with the names that the tool gives to near ones."""
    try:
        return tool.prepare_arguments(arguments)
    except ToolError:
        return arguments


def _unknown_arguments(value: JsonValue, schema: JsonValue, prefix: str = "") -> list[str]:
    """Return the paths of the fields that a schema with declared fields does not declare, as in `items.state`."""
    if not isinstance(schema, dict):
        return []
    if isinstance(value, list):
        return [path for item in value for path in _unknown_arguments(item, schema.get("items"), prefix)]
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict) or "additionalProperties" in schema:
        return []
    unknown = [f"{prefix}{name}" for name in value if name not in properties]
    for name in value.keys() & properties.keys():
        unknown += _unknown_arguments(value[name], properties[name], f"{prefix}{name}.")
    return unknown


def _argument_paths(schema: JsonValue, prefix: str = "") -> list[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    paths: list[str] = []
    for name, field in properties.items() if isinstance(properties, dict) else ():
        items = field.get("items") if isinstance(field, dict) else None
        paths += [f"{prefix}{name}", *_argument_paths(items, f"{prefix}{name}.")]
    return paths

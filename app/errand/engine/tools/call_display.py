"""Adds the display to tool calls, and the facts to results, on their way to clients. They are not stored."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from errand.engine.core.messages import UNREADABLE_CALL
from errand.engine.tools.arguments import text_argument, whole_number
from errand.engine.tools.mcp.definitions import SEPARATOR, is_service_tool
from errand.engine.tools.mcp.tool import McpResources
from errand.engine.tools.registry import CONTROL_TOOLS, TOOLS
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import Block, CallDisplay, FileEdit, Location, ResultFacts, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.events import Event, TaskMessage
from errand.text.redaction import redact

# A line shows less; the arguments have all of it.
_MAX_TARGET_LENGTH = 1_000
_MAX_READ = 2_000
_MAX_PATH_LENGTH = 4_096

_DISPLAYS: dict[str, Callable[[JsonObject], CallDisplay]] = {
    tool.name: tool.display for tool in (*TOOLS, *CONTROL_TOOLS, McpResources)
}
# Arguments of the tools of other programs, the most telling first.
_TELLING = (
    *("command", "cmd", "file_path", "filePath", "path", "absolute_path", "pattern", "query", "url"),
    *("description", "prompt", "message", "instructions"),
)
T = TypeVar("T", bound=msgspec.Struct)
_FACTS = frozenset(
    {"duration_ms", "diff", "added", "removed", "stdout_file", "stderr_file", "last_lines", "edits", "locations"}
)
_UNREADABLE = CallDisplay(kind="other", running="reading a call", done="read a call")


def display_of(tool: str, arguments: JsonObject) -> CallDisplay:
    """Return how a call of `tool` is shown; an unknown tool, for example of an imported conversation, under its name.

    What it works on is shown without keys: the line stands in lists and in what other agents read.
    """
    if tool == UNREADABLE_CALL:
        return _UNREADABLE
    display = _DISPLAYS.get(tool)
    if display is None and is_service_tool(tool):
        server, _, own_name = tool.partition(SEPARATOR)
        return CallDisplay(kind="other", running="calling", done="called", target=redact(f"{own_name} of {server}"))
    declared = display(arguments) if display is not None else _foreign(tool, arguments)
    target = redact(declared.target[:_MAX_READ])
    if len(declared.target) > _MAX_TARGET_LENGTH:
        target = f"{target[:_MAX_TARGET_LENGTH]}…"
    locations = tuple(
        Location(path=redact(location.path), line=location.line)
        for location in declared.locations
        if len(location.path) <= _MAX_PATH_LENGTH
    )
    return msgspec.structs.replace(declared, target=target, locations=locations)


def _foreign(tool: str, arguments: JsonObject) -> CallDisplay:
    """Return a tool of another program: its name, and the argument that tells most."""
    texts = {name: value for name in _TELLING if isinstance(value := arguments.get(name), str) and value.strip()}
    name, tool_text = next(iter(texts), ""), redact(tool)
    is_path = "path" in name.lower()
    return CallDisplay(
        kind="other",
        running=f"using {tool_text}",
        done=f"used {tool_text}",
        target=texts.get(name, ""),
        target_is_path=is_path,
        locations=(Location(path=texts[name]),) if is_path else (),
    )


def with_displays(node: Node) -> Node:
    """Return the node as clients get it: calls with their display, results with their facts."""
    blocks = tuple(map(_displayed, node.blocks))
    return node if blocks == node.blocks else msgspec.structs.replace(node, blocks=blocks)


def event_with_displays(event: Event) -> Event:
    """Return the event as clients get it."""
    return TaskMessage(node=with_displays(event.node)) if isinstance(event, TaskMessage) else event


def with_facts(result: ToolResultBlock) -> ToolResultBlock:
    """Return the result as clients get it: what its facts say is not in its details any more."""
    if result.details is None or result.facts is not None:
        return result
    facts = _facts(result.details)
    rest = {key: value for key, value in result.details.items() if key not in _FACTS}
    summary = result.summary
    if facts.duration_ms is not None:  # earlier versions stored the time in the summary too
        summary = summary.replace(f", {_seconds(facts.duration_ms)}", "", 1)
    return msgspec.structs.replace(result, summary=summary, details=rest, facts=facts)


def summary_with_time(summary: str, details: JsonObject | None) -> str:
    """Return the line of a result for lists and documents, which show no time beside it."""
    duration = _facts(details).duration_ms if details is not None else None
    if duration is None or _seconds(duration) in summary:
        return summary
    return f"{summary}, {_seconds(duration)}"


def _displayed(block: Block) -> Block:
    if isinstance(block, ToolCallBlock):
        return msgspec.structs.replace(block, display=display_of(block.tool, block.arguments))
    return with_facts(block) if isinstance(block, ToolResultBlock) else block


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.1f} s"


def _facts(details: JsonObject) -> ResultFacts:
    """Return the facts among the details of a tool. An imported result may have anything under their names."""
    return ResultFacts(
        duration_ms=whole_number(details.get("duration_ms")),
        diff=text_argument(details, "diff"),
        added=whole_number(details.get("added")),
        removed=whole_number(details.get("removed")),
        output_file=text_argument(details, "stdout_file") or text_argument(details, "stderr_file"),
        last_lines=_texts(details.get("last_lines")),
        locations=_structs(details.get("locations"), Location),
        edits=_structs(details.get("edits"), FileEdit),
    )


def _structs(value: JsonValue, struct: type[T]) -> tuple[T, ...]:
    try:
        return msgspec.convert(value, tuple[struct, ...])
    except msgspec.ValidationError:
        return ()


def _texts(value: JsonValue) -> tuple[str, ...] | None:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else None

"""Adds the display to tool calls on their way to clients. It is not stored."""

from collections.abc import Callable

import msgspec

from app.engine.core.messages import UNREADABLE_CALL
from app.engine.tools.registry import CONTROL_TOOLS, TOOLS
from app.protocol.base import JsonObject
from app.protocol.blocks import Block, CallDisplay, ToolCallBlock
from app.protocol.conversations import Node
from app.protocol.events import Event, TaskMessage

# A line shows less; the arguments have all of it.
_LONGEST_TARGET = 1_000

_DISPLAYS: dict[str, Callable[[JsonObject], CallDisplay]] = {
    tool.name: tool.display for tool in (*TOOLS, *CONTROL_TOOLS)
}
_UNREADABLE = CallDisplay(running="reading a call", done="read a call")


def display_of(tool: str, arguments: JsonObject) -> CallDisplay:
    """How a call of `tool` is shown; an unknown tool, for example of an imported conversation, under its name."""
    if tool == UNREADABLE_CALL:
        return _UNREADABLE
    display = _DISPLAYS.get(tool)
    if display is None:
        return CallDisplay(running=f"using {tool}", done=f"used {tool}")
    shown = display(arguments)
    if len(shown.target) <= _LONGEST_TARGET:
        return shown
    return msgspec.structs.replace(shown, target=f"{shown.target[:_LONGEST_TARGET]}…")


def with_displays(node: Node) -> Node:
    """The node as clients get it."""
    if not any(isinstance(block, ToolCallBlock) for block in node.blocks):
        return node
    return msgspec.structs.replace(node, blocks=tuple(map(_displayed, node.blocks)))


def event_with_displays(event: Event) -> Event:
    """The event as clients get it."""
    return TaskMessage(node=with_displays(event.node)) if isinstance(event, TaskMessage) else event


def _displayed(block: Block) -> Block:
    if not isinstance(block, ToolCallBlock):
        return block
    return msgspec.structs.replace(block, display=display_of(block.tool, block.arguments))

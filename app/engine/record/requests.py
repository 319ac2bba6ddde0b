"""What a model was sent, in words: one text for each message, the same from nodes and from a request."""

from collections.abc import Collection, Sequence

import msgspec

from app.engine.agent.reach import read
from app.engine.messages import AssistantMessage, Image, Text, ToolCall, ToolResultMessage, UserMessage
from app.engine.messages import ModelMessage as Message
from app.engine.record.lines import RequestLine
from app.protocol.conversations import Node


def requests_of(history: Sequence[Node], nodes: Sequence[Node], kept: Collection[str]) -> tuple[RequestLine, ...]:
    """One for each reply of a task, made anew from what stands before it: requests are not stored."""
    sent: list[list[str]] = []
    for index, node in enumerate(nodes):
        if node.role == "assistant":
            sent.append([said(message) for message in read((*history, *nodes[:index]), kept, tuple)])
    return differences(sent)


def differences(sent: Sequence[Sequence[str]]) -> tuple[RequestLine, ...]:
    """Each request as what it adds to the one before."""
    lines: list[RequestLine] = []
    before: Sequence[str] = ()
    for messages in sent:
        kept = next((i for i, (old, new) in enumerate(zip(before, messages, strict=False)) if old != new), None)
        kept = min(len(before), len(messages)) if kept is None else kept
        lines.append(RequestLine(kept=kept, added=tuple(messages[kept:])))
        before = messages
    return tuple(lines)


def said(message: Message) -> str:
    """A message with its role; pictures are named, not shown."""
    match message:
        case UserMessage(content=content):
            return "user: " + " ".join(_content(block) for block in content)
        case AssistantMessage(content=content):
            return "assistant: " + " ".join(_content(block) for block in content)
        case ToolResultMessage(tool_call_id=call_id, tool_name=tool, content=content, is_error=is_error):
            word = "error" if is_error else "result"
            return f"{word} of {tool} {call_id}: " + " ".join(_content(block) for block in content)


def _content(block: object) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(media_type=kind):
            return f"[picture {kind}]"
        case ToolCall(id=call_id, name=name, arguments=arguments, invalid=invalid):
            given = invalid if invalid is not None else msgspec.json.encode(arguments, order="sorted").decode()
            return f"[calls {name} {call_id}: {given}]"
        case _:
            return "[thinks]"

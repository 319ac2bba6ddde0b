"""Converts messages between the format of the files and ours: initial messages, and messages in traces."""

from errand.engine.core.messages import (
    AssistantContent,
    AssistantMessage,
    CustomMessage,
    Message,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    text_of,
    user_text,
)
from errand.protocol.base import JsonObject
from tests.conformance.scenario import MessageSpec


def initial(spec: MessageSpec) -> Message:
    match spec.role:
        case "user":
            return user_text(spec.text)
        case "assistant":
            return _assistant(spec)
        case "toolResult" | "tool_result":
            return ToolResultMessage(spec.tool_call_id, spec.tool_name, (Text(spec.text),), spec.is_error)
        case role:
            return CustomMessage(role, (Text(spec.text),))


def _assistant(spec: MessageSpec) -> AssistantMessage:
    content: list[AssistantContent] = []
    if spec.thinking:
        content.append(Thinking(spec.thinking))
    if spec.text:
        content.append(Text(spec.text))
    content.extend(ToolCall(call.id, call.name, call.args) for call in spec.tool_calls)
    stop: StopReason = "tool_use" if spec.tool_calls else "stop"
    if spec.stop_reason is not None:
        stop = "tool_use" if spec.stop_reason == "toolUse" else spec.stop_reason
    return AssistantMessage(tuple(content), stop, spec.error)


def shown(message: Message) -> JsonObject:
    """A message as in traces: only fields with content."""
    base: JsonObject = {"role": message.role, "text": text_of(message)}
    match message:
        case AssistantMessage():
            return base | _shown_reply(message)
        case ToolResultMessage():
            return base | _shown_result(message)
        case _:
            return base


def _shown_reply(message: AssistantMessage) -> JsonObject:
    reply: JsonObject = {"stop_reason": message.stop_reason}
    thinking = "".join(block.text for block in message.content if isinstance(block, Thinking))
    if thinking:
        reply["thinking"] = thinking
    if message.error is not None:
        reply["error"] = message.error
    if message.tool_calls:
        reply["tool_calls"] = [
            {"id": call.id, "name": call.name, "args": call.arguments} for call in message.tool_calls
        ]
    return reply


def _shown_result(message: ToolResultMessage) -> JsonObject:
    result: JsonObject = {
        "tool_call_id": message.tool_call_id,
        "tool_name": message.tool_name,
        "is_error": message.is_error,
    }
    if message.details:
        result["details"] = message.details
    return result

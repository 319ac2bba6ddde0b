"""Marks the tokens of chat templates in what is sent to servers that find them in any text (decision 90).

Such a server renders the conversation as one text and reads that text for tokens: `<|im_end|>` in a file that an agent
reads ends the turn, and what follows may begin one of another role. With a mark behind its first character
(`<¦|im_end|>`) it is plain text. The mark is taken out of what the model writes, so that calls name exact text.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from errand.engine.core.messages import AssistantMessage, Image, ModelMessage, Text, Thinking, ToolCall
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.message_cache import MessageCache
from errand.protocol.base import JsonObject, JsonValue

Block = TypeVar("Block", bound=Text | Thinking | ToolCall | Image)

_MARK = "¦"
# The tokens of turns, roles and calls, by family. Others, such as `</think>`, begin no turn. Names have no brackets: a
# token within them would get a mark too, and make the name longer.
_RESTS = {
    "<": (
        r"\|[^\s<>|\[\]]{1,64}\|>",  # ChatML, Llama, Phi, GLM, gpt-oss, Command R
        r"\|[a-z_]{1,32}>",  # Gemma 4, begin
        r"[a-z_]{1,32}\|>",  # Gemma 4, end
        r"｜[^\s<>\[\]]{1,64}｜>",  # DeepSeek
        r"(?:start_of_turn|end_of_turn|start_of_image|end_of_utterance|bos|eos|eod|pad|unk)>",  # Gemma and others
        r"/?s>",  # Llama 2, Mistral
        r"(?:seed:[a-z_]{1,32}|SPECIAL_\d{1,4})>",  # Seed-OSS, Nemotron
    ),
    "[": (
        r"/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SYSTEM_PROMPT|MODEL_SETTINGS|CALL_ID|ARGS)\]",
        r"\|(?:system|user|assistant|tool|endofturn)\|\]",  # EXAONE
        r"e~\[",  # MiniMax
    ),
    "]": (r"~!?b[\]\[]",),
}
_TOKEN = re.compile(
    "|".join(rf"{re.escape(first)}(?={_MARK}*+(?:{'|'.join(rests)}))" for first, rests in _RESTS.items())
)
_MARKED = re.compile(
    "|".join(rf"(?<={re.escape(first)}){_MARK}(?={_MARK}*+(?:{'|'.join(rests)}))" for first, rests in _RESTS.items())
)

# None for what has no such token: a cached value must not hold its key.
_messages: MessageCache[ModelMessage | None] = MessageCache()
_tools: MessageCache[ToolDefinition | None] = MessageCache()


def with_marked_tokens(request: ModelRequest) -> ModelRequest:
    """Return the request with a mark in each token of a template, also in texts of the person and in definitions."""
    return replace(
        request,
        system_prompt=_marked(request.system_prompt),
        messages=_marked_messages(request.messages),
        tools=tuple(map(_marked_tool, request.tools)),
    )


def without_marks(message: AssistantMessage) -> AssistantMessage:
    """Return a reply with the tokens that it means."""
    content = tuple(_with_text(block, _unmarked) for block in message.content)
    return message if content == message.content else replace(message, content=content)


def _marked_messages(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    marked = _messages.get_each(messages, _marked_message)
    return tuple([new or message for new, message in zip(marked, messages, strict=True)])


def _marked_message(message: ModelMessage) -> ModelMessage | None:
    if isinstance(message, AssistantMessage):
        new = replace(message, content=tuple(_with_text(block, _marked) for block in message.content))
    else:
        new = replace(message, content=tuple(_with_text(block, _marked) for block in message.content))
    return None if new == message else new


def _marked_tool(tool: ToolDefinition) -> ToolDefinition:
    def marked() -> ToolDefinition | None:
        new = replace(tool, description=_marked(tool.description), parameters=_with_texts(tool.parameters, _marked))
        return None if new == tool else new

    return _tools.get(tool, marked) or tool


def _with_text(block: Block, change: Callable[[str], str]) -> Block:
    match block:
        case Text() | Thinking():
            return replace(block, text=change(block.text))
        case ToolCall():
            invalid = None if block.invalid is None else change(block.invalid)
            return replace(block, arguments=_with_texts(block.arguments, change), invalid=invalid)
        case _:
            return block


def _with_texts(values: JsonObject, change: Callable[[str], str]) -> JsonObject:
    return {change(name): _with_texts_of(value, change) for name, value in values.items()}


def _with_texts_of(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    match value:
        case str():
            return change(value)
        case list():
            return [_with_texts_of(item, change) for item in value]
        case dict():
            return _with_texts(value, change)
        case _:
            return value


def _marked(text: str) -> str:
    return _TOKEN.sub(lambda token: token[0] + _MARK, text)


def _unmarked(text: str) -> str:
    return _MARKED.sub("", text) if _MARK in text else text

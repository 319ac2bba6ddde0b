"""Formats the conversation and the system prompt for a model without tool calls."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from xml.sax.saxutils import escape

import msgspec

from errand.engine.core.messages import (
    TASK_COMPLETE,
    UNREADABLE_CALL,
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    in_tags,
    text_of,
)
from errand.engine.models.base import ToolDefinition
from errand.engine.models.call_ids import NO_RESULT
from errand.engine.models.react.call_parser import CLOSE, INVENTED, OPEN
from errand.engine.models.reply.content import encode


@functools.cache
def text(name: str) -> str:
    """Return the text of <name>.md."""
    return (files("errand.engine.models.react") / f"{name}.md").read_text(encoding="utf-8").strip()


def system_prompt(prompt: str, tools: tuple[ToolDefinition, ...]) -> str:
    """Return the given prompt, followed by the instructions for tool calls; unchanged without tools."""
    if not tools:
        return prompt
    protocol = Template(text("protocol")).safe_substitute(tools="\n".join(map(_definition, tools)))
    return f"{prompt}\n\n{protocol}" if prompt else protocol


def _definition(tool: ToolDefinition) -> str:
    parameters = msgspec.json.encode(tool.parameters).decode()
    return (
        f"<tool>\n<name>{tool.name}</name>\n<description>{escape(tool.description)}</description>\n"
        f"<parameters>\n{parameters}\n</parameters>\n</tool>"
    )


@dataclass(frozen=True, slots=True)
class WrittenForm:
    """The form in which replies and results are written.

    `call` writes a call. `answer` writes a reply without one; None leaves words as they are, also beside a call.
    `unreadable` is the result of a call that could not be parsed.
    """

    call: Callable[[ToolCall], str]
    answer: Callable[[str], str] | None
    result_tag: str
    unreadable: str


def to_text_history(messages: Sequence[ModelMessage], form: WrittenForm | None = None) -> tuple[ModelMessage, ...]:
    """Return the same conversation with calls as text, by default in the tags of this package.

    Roles alternate, since templates of such models refuse two consecutive messages of one role. A reply with several
    calls, from another model, becomes several replies with one call each.
    """
    form = form or _tagged_form()
    history: list[ModelMessage] = []
    for at, message in enumerate(messages):
        match message:
            case UserMessage():
                _add_user(history, message.content)
            case AssistantMessage():
                for turn in _turns(message, _results(messages, at), form):
                    if isinstance(turn, str):
                        _add_reply(history, turn)
                    else:
                        _add_user(history, turn)
            case ToolResultMessage():
                pass  # already placed after its call
    return tuple(history)


def _results(messages: Sequence[ModelMessage], at: int) -> dict[str, ToolResultMessage]:
    """Return the results of the calls of the reply at this index. Some servers repeat the same ids in each reply."""
    results: dict[str, ToolResultMessage] = {}
    for later in range(at + 1, len(messages)):
        message = messages[later]
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage):
            results[message.tool_call_id] = message
    return results


def _turns(
    message: AssistantMessage, results: Mapping[str, ToolResultMessage], form: WrittenForm
) -> Iterator[str | tuple[UserContent, ...]]:
    """Yield the model's text, and after each call its result."""
    failed = message.stop_reason in ("error", "aborted")
    if form.answer is not None and not any(call.id in results or not failed for call in message.tool_calls):
        if message.text.strip():
            yield form.answer(message.text)
        return
    parts: list[str] = []
    after: list[UserContent] = []
    for block in message.content:
        if isinstance(block, Text):
            if form.answer is None and block.text.strip():
                parts.append(block.text)
        elif isinstance(block, Thinking):
            if form.answer is None and after and block.text.startswith(INVENTED):
                after.append(Text(text("one_call")))
        else:
            result = results.get(block.id)
            if result is None and failed:
                continue
            if after:
                yield "\n\n".join(parts)
                yield tuple(after)
                parts, after = [], []
            parts.append(form.call(block))
            after += _observation(block, result, form)
    if parts:
        yield "\n\n".join(parts)
    if after:
        yield tuple(after)


def _call(call: ToolCall) -> str:
    written = call.invalid if call.invalid is not None else encode(call.arguments).decode()
    if call.name == UNREADABLE_CALL:
        return f"{OPEN}\n{written}\n{CLOSE}"
    return f"{OPEN}\n<name>{call.name}</name>\n<parameters>\n{written}\n</parameters>\n{CLOSE}"


def _observation(call: ToolCall, result: ToolResultMessage | None, form: WrittenForm) -> list[UserContent]:
    """Return what the model reads of a result; nothing of a completion, after which the person speaks."""
    if call.name == TASK_COMPLETE and result is not None and not result.is_error:
        return []
    output = NO_RESULT if result is None else text_of(result) or "(no output)"
    if call.name == UNREADABLE_CALL:
        output = form.unreadable
    pictures = [block for block in result.content if isinstance(block, Image)] if result is not None else []
    return [Text(in_tags(output, form.result_tag)), *pictures]


def _tagged_form() -> WrittenForm:
    return WrittenForm(_call, None, "observation", text("unreadable"))


def _add_user(history: list[ModelMessage], content: tuple[UserContent, ...]) -> None:
    last = history[-1] if history else None
    if isinstance(last, UserMessage):
        history[-1] = UserMessage((*last.content, *content))
    else:
        history.append(UserMessage(content))


def _add_reply(history: list[ModelMessage], text: str) -> None:
    last = history[-1] if history else None
    if isinstance(last, AssistantMessage):
        history[-1] = AssistantMessage((Text(f"{last.text}\n\n{text}"),))
    else:
        history.append(AssistantMessage((Text(text),)))

"""A conversation in the form of the Responses API: a list of items, thoughts and calls among them."""

from collections.abc import Iterator

from errand.engine.core.messages import (
    PICTURE_OMITTED,
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    in_tags,
    text_of,
)
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.call_ids import NO_RESULT, CallIdMapper, answered_calls, sendable_name
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import Provider, bare_id
from errand.engine.models.openai.responses_stream import reasoning_of
from errand.engine.models.reply.content import encode
from errand.protocol.base import JsonObject, JsonValue


def input_items(request: ModelRequest, provider: Provider, *, with_phases: bool, server: str = "") -> list[JsonValue]:
    """Return the conversation, whichever models took part.

    Calls of a failed or aborted reply without a result are dropped; other calls without a result get one. Thoughts are
    sent only to the model that wrote them, pictures only to models that accept them. What the user says is one item up
    to the next reply.
    """
    items: list[JsonObject] = []
    for item in _Conversation(request, provider, with_phases=with_phases, server=server).items():
        last = items[-1] if items else None
        if last is not None and last.get("role") == item.get("role") == "user":
            items[-1] = _user([*_content_of(last), *_content_of(item)])
        else:
            items.append(item)
    return [*items]


def tool_definitions(tools: tuple[ToolDefinition, ...], *, with_strict: bool = True) -> list[JsonValue]:
    # Not strict: that allows only a part of JSON Schema, and is the default.
    strict: JsonObject = {"strict": False} if with_strict else {}
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            **strict,
        }
        for tool in tools
    ]


class _Conversation:
    def __init__(self, request: ModelRequest, provider: Provider, *, with_phases: bool, server: str) -> None:
        self._server = server
        facts = model_facts.facts(request.model)
        self._request = request
        self._with_phases = with_phases
        self._ids = CallIdMapper(provider)
        self._sees = facts is None or facts.sees is not False

    def items(self) -> Iterator[JsonObject]:
        messages = self._request.messages
        for index, message in enumerate(messages):
            match message:
                case UserMessage():
                    if content := self._content(message.content):
                        yield _user(content)
                case AssistantMessage():
                    named = self._ids.of_reply(message)
                    answered = answered_calls(messages, index)
                    is_complete = message.stop_reason not in ("error", "aborted")
                    sent = [(call, name) for call, name in named if is_complete or call.id in answered]
                    yield from self._reply(message, sent)
                    yield from (_result(name, NO_RESULT) for call, name in sent if call.id not in answered)
                case ToolResultMessage():
                    yield self._result(message)

    def _reply(self, message: AssistantMessage, sent: list[tuple[ToolCall, str]]) -> Iterator[JsonObject]:
        """Yield thoughts with the items that they led to; the API refuses thoughts alone."""
        is_own = bare_id(message.model) == bare_id(self._request.model)
        names = iter(sent)
        thoughts: list[JsonObject] = []
        for block in message.content:
            item: JsonObject | None = None
            match block:
                case Thinking():
                    thought = reasoning_of(block, self._server) if is_own else None
                    thoughts += [thought] if thought is not None else []
                case Text():
                    item = self._output_message(block.text, is_final=not sent) if block.text.strip() else None
                case ToolCall() if any(block is call for call, _ in sent):
                    item = _call(block, next(names)[1])
                case _:
                    pass
            if item is not None:
                yield from thoughts
                thoughts = []
                yield item

    def _output_message(self, text: str, *, is_final: bool) -> JsonObject:
        item: JsonObject = {"role": "assistant", "content": text}
        return item | {"phase": "final_answer" if is_final else "commentary"} if self._with_phases else item

    def _result(self, message: ToolResultMessage) -> JsonObject:
        call_id = self._ids.of_result(message)
        text = text_of(message)
        if call_id is None:  # its call is not in the request, so it would be refused as a result
            return _user([_text(f"Result of an earlier call of {message.tool_name}:\n{in_tags(text)}")])
        if any(isinstance(block, Image) for block in message.content):
            return _result(call_id, [*self._content(message.content)])
        return _result(call_id, text or "(no output)")

    def _content(self, content: tuple[UserContent, ...]) -> list[JsonObject]:
        parts = [block if isinstance(block, Text) or self._sees else Text(PICTURE_OMITTED) for block in content]
        return [
            _picture(part) if isinstance(part, Image) else _text(part.text)
            for part in parts
            if isinstance(part, Image) or part.text.strip()
        ]


def _user(content: list[JsonObject]) -> JsonObject:
    return {"role": "user", "content": [*content]}


def _content_of(item: JsonObject) -> list[JsonObject]:
    content = item["content"]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _picture(image: Image) -> JsonObject:
    return {
        "type": "input_image",
        "image_url": f"data:{image.media_type};base64,{image.data}",
        "detail": "auto",
    }


def _call(call: ToolCall, call_id: str) -> JsonObject:
    # A call whose arguments are no JSON object is sent without them.
    arguments = encode(call.arguments).decode()
    return {"type": "function_call", "call_id": call_id, "name": sendable_name(call), "arguments": arguments}


def _result(call_id: str, output: JsonValue) -> JsonObject:
    return {"type": "function_call_output", "call_id": call_id, "output": output}

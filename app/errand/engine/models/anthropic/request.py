"""A conversation in the form of the Messages API: turns of content blocks that alternate, and marks for the cache."""

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
from errand.engine.models.anthropic.stream import REDACTED, UNSIGNED
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.call_ids import NO_RESULT, CallIdMapper, answered_calls, sendable_name
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import Provider, bare_id
from errand.engine.models.signatures import CHAT_SIGNED, RESPONSES_SIGNED, RESPONSES_UNSIGNED
from errand.protocol.base import JsonObject, JsonValue

# A mark is a place up to which the provider keeps the request: four are allowed. Two are those of tools and system.
_MARKED_TURNS = 2
# For a server that requires thoughts where there are none.
_NO_THOUGHTS = "(none)"
_FIRST = "(The conversation began before this.)"


def messages_with_marks(
    request: ModelRequest, provider: Provider, *, thinks: bool, server: str = ""
) -> list[JsonValue]:
    """Return the conversation, whichever models took part.

    Calls of a failed or aborted reply without a result are dropped; other calls without a result get one. Thoughts are
    sent only to the model that wrote them and while it thinks, pictures only to models that accept them. A `server`
    other than Anthropic's gets all thoughts of its model back, also those without a signature.
    """
    turns = _Turns()
    for role, blocks in _Conversation(request, provider, thinks=thinks, server=server).parts():
        turns.add(role, blocks)
    return turns.marked()


def tool_definitions(tools: tuple[ToolDefinition, ...]) -> list[JsonValue]:
    entries: list[JsonObject] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
    ]
    return [*entries[:-1], with_mark(entries[-1])]


def with_mark(block: JsonObject) -> JsonObject:
    return {**block, "cache_control": {"type": "ephemeral"}}


def without_marks(body: JsonObject) -> JsonObject:
    """Return the body without marks, in its blocks too, for servers that do not know them."""

    def bare(value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {name: bare(part) for name, part in value.items() if name != "cache_control"}
        return [bare(part) for part in value] if isinstance(value, list) else value

    return {name: bare(value) for name, value in body.items()}


def has_own_thinking(message: AssistantMessage, model: str) -> bool:
    return any(isinstance(block, Thinking) and block.signature for block in message.content) and (
        bare_id(message.model) == bare_id(model)
    )


class _Turns:
    """Turns of the user and of the assistant, which alternate: what follows in the same role is joined."""

    def __init__(self) -> None:
        self._roles: list[str] = []
        self._contents: list[list[JsonObject]] = []

    def add(self, role: str, blocks: list[JsonObject]) -> None:
        if not blocks:
            return
        if not self._roles and role == "assistant":
            self.add("user", [_text(_FIRST)])
        if self._roles and self._roles[-1] == role:
            self._contents[-1] += blocks
        else:
            self._roles.append(role)
            self._contents.append(list(blocks))

    def marked(self) -> list[JsonValue]:
        """Return the messages with marks at the ends of the last user turns, with which the next request begins."""
        ends = [index for index, role in enumerate(self._roles) if role == "user"][-_MARKED_TURNS:]
        for index in ends:
            content = self._contents[index]
            content[-1] = with_mark(content[-1])
        return [
            {"role": role, "content": [*content]} for role, content in zip(self._roles, self._contents, strict=True)
        ]


class _Conversation:
    def __init__(self, request: ModelRequest, provider: Provider, *, thinks: bool, server: str) -> None:
        facts = model_facts.facts(request.model)
        self._request = request
        self._thinks = thinks
        self._server = server
        self._ids = CallIdMapper(provider)
        self._sees = facts is None or facts.sees is not False

    def parts(self) -> Iterator[tuple[str, list[JsonObject]]]:
        messages = self._request.messages
        for index, message in enumerate(messages):
            match message:
                case UserMessage():
                    yield "user", self._content(message.content)
                case AssistantMessage():
                    named = self._ids.of_reply(message)
                    answered = answered_calls(messages, index)
                    is_complete = message.stop_reason not in ("error", "aborted")
                    sent = [(call, name) for call, name in named if is_complete or call.id in answered]
                    yield "assistant", self._reply(message, sent)
                    yield "user", [_result(name, NO_RESULT) for call, name in sent if call.id not in answered]
                case ToolResultMessage():
                    yield "user", self._result(message)

    def _reply(self, message: AssistantMessage, sent: list[tuple[ToolCall, str]]) -> list[JsonObject]:
        is_own = bare_id(message.model) == bare_id(self._request.model)
        names = iter(sent)
        blocks: list[JsonObject] = []
        for block in message.content:
            match block:
                case Text():
                    blocks += [_text(block.text)] if block.text.strip() else []
                case Thinking():
                    blocks += self._thought(block) if is_own else []
                case ToolCall() if any(block is call for call, _ in sent):
                    _, name = next(names)
                    blocks.append(
                        {"type": "tool_use", "id": name, "name": sendable_name(block), "input": block.arguments}
                    )
                case _:
                    pass
        if sent and "thinking" in self._request.options.required and self._server:
            blocks = _with_thought(blocks, message)
        # A reply of thoughts alone is no turn.
        return blocks if any(block["type"] not in ("thinking", "redacted_thinking") for block in blocks) else []

    def _thought(self, block: Thinking) -> list[JsonObject]:
        """Return the block of a thought; none for one that another server or API sent."""
        if block.signature.startswith(UNSIGNED):
            is_from_here = block.signature == UNSIGNED + self._server
            return [{"type": "thinking", "thinking": block.text}] if is_from_here else []
        is_foreign = block.signature.startswith((CHAT_SIGNED, RESPONSES_SIGNED, RESPONSES_UNSIGNED))
        return [_thought(block)] if block.signature and not is_foreign and (self._thinks or self._server) else []

    def _result(self, message: ToolResultMessage) -> list[JsonObject]:
        call_id = self._ids.of_result(message)
        if call_id is None:  # its call is not in the request, so it would be refused as a result
            quoted = in_tags(text_of(message))
            return [_text(f"Result of an earlier call of {message.tool_name}:\n{quoted}")]
        content = self._content(message.content)
        result = _result(call_id, "(no output)")
        if content:
            result["content"] = [*content]
        if message.is_error:
            result["is_error"] = True
        return [result]

    def _content(self, content: tuple[UserContent, ...]) -> list[JsonObject]:
        """Return the blocks without blank texts, which the API refuses."""
        parts = [block if isinstance(block, Text) or self._sees else Text(PICTURE_OMITTED) for block in content]
        return [
            _picture(part) if isinstance(part, Image) else _text(part.text)
            for part in parts
            if isinstance(part, Image) or part.text.strip()
        ]


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _picture(image: Image) -> JsonObject:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _with_thought(blocks: list[JsonObject], message: AssistantMessage) -> list[JsonObject]:
    if blocks and blocks[0]["type"] in ("thinking", "redacted_thinking"):
        return blocks
    text = "".join(block.text for block in message.content if isinstance(block, Thinking))
    return [{"type": "thinking", "thinking": text or _NO_THOUGHTS, "signature": ""}, *blocks]


def _thought(thought: Thinking) -> JsonObject:
    if thought.signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": thought.signature.removeprefix(REDACTED)}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


def _result(call_id: str, text: str) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}

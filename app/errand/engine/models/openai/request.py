"""A request in OpenAI's chat format: messages, tools, call ids, reasoning effort by provider."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import msgspec

from errand.engine.core.messages import (
    PICTURE_OMITTED,
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
from errand.engine.models.base import ModelRequest, ToolDefinition
from errand.engine.models.call_ids import NO_RESULT, CallIdMapper, answered_calls, sendable_name
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import Provider, bare_id
from errand.engine.models.message_cache import BeginningCache
from errand.engine.models.openai.side_fields import THOUGHT_FIELDS, SideFields, side_fields_of
from errand.engine.models.reply.content import encode
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject, JsonValue

_OPEN_REASONING = re.compile(r"gpt-oss", re.IGNORECASE)
# For a server that requires thoughts where there are none, and Google's value for calls of other models.
_NO_THOUGHTS = "(none)"
_UNSIGNED_CALL: JsonObject = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
_GPT = re.compile(r"(?:^|/)gpt-(\d+)(?:\.(\d+))?")


def chat_messages(
    request: ModelRequest, provider: Provider, cache: "BeginningCache[ConvertedMessages]", server: str = ""
) -> msgspec.Raw:
    """Return the conversation as JSON in the format of the API, whichever models took part.

    `cache` keeps what was converted for one provider. Calls of a failed or aborted reply without a result are dropped;
    other calls without a result get one, since strict providers require it. What came beside calls is sent only to the
    model that wrote it, at the same `server`, pictures only to models that accept them. What the user says is one
    message up to the next reply.
    """
    messages = request.messages
    facts = model_facts.facts(request.model)
    sees = facts is None or facts.sees is not False
    options = request.options
    form = _Form(request.model, request.system_prompt, sees, server, options.left_out, options.required)
    nothing = ConvertedMessages(provider, form)
    count, beginning = cache.find(messages) or (0, nothing)
    goes_on_with_reply = count < len(messages) and isinstance(messages[count], AssistantMessage)
    if not goes_on_with_reply or beginning.form != form:
        count, beginning = 0, nothing
    # What is sent for a reply depends on the results that follow it.
    last = next((at for at in reversed(range(len(messages))) if isinstance(messages[at], AssistantMessage)), 0)
    beginning = beginning.with_more(messages[count:last])
    cache.put(messages[:last], beginning, covered=count)
    return beginning.with_more(messages[last:]).to_json()


def _is_of_user(entry: JsonValue) -> bool:
    return isinstance(entry, dict) and entry.get("role") == "user"


def _joined(earlier: JsonValue, later: JsonValue) -> JsonValue:
    """Return two messages of the user as one: servers refuse two in a row, or read only the last."""
    assert isinstance(earlier, dict)
    assert isinstance(later, dict)
    first, second = earlier["content"], later["content"]
    if isinstance(first, str) and isinstance(second, str):
        return {"role": "user", "content": "\n\n".join(filter(None, (first, second)))}
    return {"role": "user", "content": [*_as_parts(first), *_as_parts(second)]}


def _as_parts(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


@dataclass(frozen=True, slots=True)
class _Form:
    """The settings that decide how messages are sent. `sees`: the model accepts pictures."""

    model: str
    system_prompt: str
    sees: bool
    server: str
    left_out: frozenset[str]
    required: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConvertedMessages:
    """The beginning of a conversation as it is sent to one provider.

    `encoded` has the JSON of its entries, each with a comma, but for the `last`, which may still grow.
    """

    provider: Provider
    form: _Form
    encoded: bytes = b""
    last: JsonValue = None
    ids: CallIdMapper | None = None

    def with_more(self, messages: tuple[ModelMessage, ...]) -> "ConvertedMessages":
        """Return the conversation with the next messages: all of them, or all up to a reply."""
        ids = self.ids.copy() if self.ids is not None else CallIdMapper(self.provider)
        entries: list[JsonValue] = [self.last] if self.last is not None else []
        if not entries and self.form.system_prompt:
            entries.append({"role": "system", "content": self.form.system_prompt})
        for entry in _Converter(self.provider, ids, self.form).entries(messages):
            if entries and _is_of_user(entries[-1]) and _is_of_user(entry):
                entries[-1] = _joined(entries[-1], entry)
            else:
                entries.append(entry)
        last = entries.pop() if entries else None
        encoded = b"".join((self.encoded, *(encode(entry) + b"," for entry in entries)))
        return ConvertedMessages(self.provider, self.form, encoded, last, ids)

    def to_json(self) -> msgspec.Raw:
        last = encode(self.last) if self.last is not None else b""
        return msgspec.Raw(b"[%b%b]" % (self.encoded, last))


class _Converter:
    def __init__(self, provider: Provider, ids: CallIdMapper, form: _Form) -> None:
        self._provider = provider
        self._ids = ids
        self._form = form

    def entries(self, messages: tuple[ModelMessage, ...]) -> Iterator[JsonValue]:
        pending: list[JsonValue] = []  # pictures in results follow the batch: tool messages take only text
        for index, message in enumerate(messages):
            if pending and not isinstance(message, ToolResultMessage):
                yield from pending
                pending = []
            match message:
                case UserMessage():
                    yield {"role": "user", "content": _parts(message.content, self._form.sees)}
                case AssistantMessage():
                    yield from self._reply(message, answered_calls(messages, index))
                case ToolResultMessage():
                    yield from self._result(message)
                    pending += _pictures(message, self._form.sees)
        yield from pending

    def _reply(self, message: AssistantMessage, answered: set[str]) -> list[JsonValue]:
        named = self._ids.of_reply(message)
        if message.stop_reason in ("error", "aborted"):
            return self._entry(message, [(call, name) for call, name in named if call.id in answered])
        return self._entry(message, named) + [
            {"role": "tool", "tool_call_id": name, "content": NO_RESULT}
            for call, name in named
            if call.id not in answered
        ]

    def _entry(self, message: AssistantMessage, calls: list[tuple[ToolCall, str]]) -> list[JsonValue]:
        text = message.text
        if not text and not calls:
            return []
        entry: JsonObject = {"role": "assistant", "content": text or None}
        side = self._side_fields(message)
        if calls:
            positions = {id(call): at for at, call in enumerate(message.tool_calls)}
            entry["tool_calls"] = [
                _call(call, call_id) | self._call_fields(side, positions[id(call)]) for call, call_id in calls
            ]
            entry.update(self._reasoning(message, side))
        entry.update(self._required(message, entry))
        return [entry]

    def _side_fields(self, message: AssistantMessage) -> SideFields | None:
        """Return what this model sent beside its calls from this server; None for messages of others."""
        form = self._form
        is_own = bare_id(message.model) == bare_id(form.model)
        return side_fields_of(message, form.server) if is_own and form.server else None

    def _reasoning(self, message: AssistantMessage, side: SideFields | None) -> JsonObject:
        """Return the fields that go with calls: those that came with them, and those that a provider requires."""
        field, text = self._provider.reasoning_field, _thoughts_before_calls(message)
        # DeepSeek refuses calls without the field, so calls of other models get it too.
        fields: JsonObject = {field: text} if field and (text or field == "reasoning_content") else {}
        if side is not None:
            fields |= dict.fromkeys(side.texts, text) | side.fields
        return {name: value for name, value in fields.items() if name not in self._form.left_out}

    def _required(self, message: AssistantMessage, entry: JsonObject) -> JsonObject:
        """Return the fields that the server wants with every message, for those that have none."""
        text = _thoughts_before_calls(message) or _NO_THOUGHTS
        names = sorted(self._form.required & frozenset(THOUGHT_FIELDS))
        return {name: text for name in names if name not in entry}

    def _call_fields(self, side: SideFields | None, position: int) -> JsonObject:
        came = side.calls[position] if side is not None and position < len(side.calls) else {}
        if not came and "thought_signature" in self._form.required:
            came = _UNSIGNED_CALL
        return {name: value for name, value in came.items() if name not in self._form.left_out}

    def _result(self, message: ToolResultMessage) -> list[JsonValue]:
        call_id = self._ids.of_result(message)
        text = text_of(message)
        if call_id is None:  # its call is not in the request, so it would be refused as a result
            return [{"role": "user", "content": f"Result of an earlier call of {message.tool_name}:\n{in_tags(text)}"}]
        if not text:
            text = "(see the picture below)" if message.content else "(no output)"
        return [{"role": "tool", "tool_call_id": call_id, "content": text}]


def _thoughts_before_calls(message: AssistantMessage) -> str:
    # Text after a call was invented by a model with tools as text: it did not lead to the call.
    before = takewhile(lambda block: not isinstance(block, ToolCall), message.content)
    return "".join(block.text for block in before if isinstance(block, Thinking))


def tool_definitions(tools: tuple[ToolDefinition, ...]) -> list[JsonValue]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def _call(call: ToolCall, call_id: str) -> JsonObject:
    # Servers parse the arguments of earlier calls, so a call with invalid JSON is sent without arguments.
    arguments = encode(call.arguments).decode()
    return {"id": call_id, "type": "function", "function": {"name": sendable_name(call), "arguments": arguments}}


def _pictures(message: ToolResultMessage, sees: bool) -> list[JsonValue]:
    images = tuple(block for block in message.content if isinstance(block, Image))
    if not images:
        return []
    return [{"role": "user", "content": _parts((Text(f"Pictures from {message.tool_name}:"), *images), sees)}]


def _parts(content: tuple[UserContent, ...], sees: bool) -> JsonValue:
    """Return a single string if there is only text, since some servers accept no parts."""
    if not sees:
        content = tuple(block if isinstance(block, Text) else Text(PICTURE_OMITTED) for block in content)
    texts = [block.text for block in content if isinstance(block, Text)]
    if len(texts) == len(content):
        return "\n\n".join(texts)
    return [_part(block) for block in content]


def _part(block: UserContent) -> JsonValue:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{block.data}"}}


def effort_fields(request: ModelRequest, provider: Provider) -> JsonObject:
    """Return the fields that set the reasoning effort, such as `reasoning_effort`."""
    level = request.options.thinking_level
    if provider.family == "openrouter":
        budget = request.options.thinking_budget
        return {} if level == "off" else {"reasoning": {"max_tokens": budget} if budget else {"effort": level}}
    name = request.model.partition("/")[2]
    if level == "off":
        return _reasoning_off(request, provider)
    if provider.family == "openai" or _is_openai_name(provider, name):
        return {"reasoning_effort": openai_effort(request.model, level)} if _reasons(request.model) else {}
    if _OPEN_REASONING.search(name) or name.startswith("grok-3-mini"):
        return {"reasoning_effort": _basic_level(level)}
    if provider.family == "mistral" and _reasons(request.model):
        return {"reasoning_effort": "high"}
    return {}


def openai_effort(model: str, level: ThinkingLevel) -> ThinkingLevel:
    """Return the level, or the nearest that every reasoning model accepts."""
    facts = model_facts.facts(model)
    is_special = level in ("minimal", "xhigh")
    return _basic_level(level) if is_special and (facts is None or level not in facts.efforts) else level


def is_late_gpt(model: str) -> bool:
    """True from gpt-5.4 on."""
    version = _GPT.search(model)
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 4)


def _reasoning_off(request: ModelRequest, provider: Provider) -> JsonObject:
    """Late models refuse tools in chat completions unless they are told not to think."""
    late = provider.family == "openai" and is_late_gpt(request.model)
    return {"reasoning_effort": "none"} if late and request.tools else {}


def _basic_level(level: ThinkingLevel) -> ThinkingLevel:
    """Return the nearest of low, medium and high."""
    if level == "minimal":
        return "low"
    return "high" if level == "xhigh" else level


def _reasons(model: str) -> bool:
    facts = model_facts.facts(model)
    return facts is not None and facts.reasons


def _is_openai_name(provider: Provider, name: str) -> bool:
    return (provider.name == "openai_compatible" or provider.own) and re.match(r"(gpt-5|o[134](-|$))", name) is not None

"""A model that plays a YAML script (see `Script`), for the tour and for tests."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.messages import (
    AssistantMessage,
    ModelMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
    own_text_of,
    text_of,
)
from errand.engine.models.base import AttemptEvent, ModelEvent, ModelRequest, ReplyEnd
from errand.engine.models.deadline import Aborted, Deadline
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import ReplyTooLong
from errand.engine.models.reply.usage import CHARACTERS_A_TOKEN
from errand.protocol.base import JsonObject, JsonValue
from errand.system.regular_file import read_regular
from errand.text.printable import reason

_MAX_SCRIPT_BYTES = 5_000_000


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    arguments: JsonObject = {}
    id: str = ""


class ScriptedReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply. `when` is text that the last tool result must contain; `error` makes the reply fail."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    when: str = ""
    delay_s: float = 0.0
    piece_delay_s: float = 0.0
    piece_length: int = 0
    error: str = ""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A complete script; each entry is a reply or alternatives."""

    replies: tuple[ScriptedReply | tuple[ScriptedReply, ...], ...]
    about: str = ""

    def reply(self, number: int, last_result: str) -> ScriptedReply | None:
        """Return the reply with this number (from 0); None after the last one or if no alternative matches."""
        if number >= len(self.replies):
            return None
        entry = self.replies[number]
        choices = (entry,) if isinstance(entry, ScriptedReply) else entry
        return next((choice for choice in choices if choice.when in last_result), None)


@lru_cache(maxsize=32)
def load(path: Path) -> Script:
    """Read a script. Raises `ConfigurationError` with the file and the field."""
    import yaml  # 20 ms, and only scripts need it

    try:
        return msgspec.convert(yaml.safe_load(read_regular(path, _MAX_SCRIPT_BYTES).decode()), Script)
    except FileNotFoundError as error:
        names = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        raise ConfigurationError(f"There is no script named {path.stem}. Scripts there are: {names}.") from error
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(f"The script {path} cannot be read: {reason(error)}") from error


class ScriptedModel:
    """A `ModelProvider`: `scripted/NAME` plays NAME.yaml of its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        assembly = ReplyBuilder(request.model)
        with Deadline(stop) as watch:
            try:
                reply, number = self._choose(request)
                yield assembly.start()
                await _pause(watch, reply.delay_s)
                first = True
                for events in _pieces(assembly, reply, _Placeholders(request), number):
                    if not first:
                        await _pause(watch, reply.piece_delay_s)
                    first = False
                    for event in events:
                        yield event
                    assembly.check()
                assembly.usage = _usage(request, assembly.message)
                for event in _end(assembly, reply):
                    yield event
            except Aborted:
                yield assembly.abort()
            except ReplyTooLong as error:
                for event in assembly.cut(str(error)):
                    yield event
            except ConfigurationError as error:
                yield ReplyEnd(replace(assembly.message, stop_reason="error", error=str(error)))

    def _choose(self, request: ModelRequest) -> tuple[ScriptedReply, int]:
        """Return the reply to play and its number."""
        script = load(self._folder / f"{request.model.partition('/')[2]}.yaml")
        number = sum(1 for message in request.messages if _is_complete_reply(message))
        reply = script.reply(number, _last_result(request))
        if reply is None:
            reply = ScriptedReply(text="That is the end of this script: there is no further reply in it.")
        return reply, number


class _Placeholders:
    """The values of the placeholders `${…}` in one request."""

    def __init__(self, request: ModelRequest) -> None:
        prompts = [message for message in request.messages if isinstance(message, UserMessage)]
        self._values = {
            "${last_result}": _last_result(request),
            "${prompt}": own_text_of(prompts[-1]) if prompts else "",
        }

    def fill(self, text: str) -> str:
        for word, value in self._values.items():
            text = text.replace(word, value)
        return text

    def fill_object(self, arguments: JsonObject) -> JsonObject:
        return {name: self._fill_value(value) for name, value in arguments.items()}

    def _fill_value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self._fill_value(item) for item in value]
        return self.fill_object(value) if isinstance(value, dict) else value


def _pieces(
    assembly: ReplyBuilder, reply: ScriptedReply, values: _Placeholders, number: int
) -> Iterator[list[ModelEvent]]:
    """Yield the events of each piece of the reply, in order."""
    for piece in _split(values.fill(reply.thinking), reply.piece_length):
        yield assembly.thinking(piece)
    for piece in _split(values.fill(reply.text), reply.piece_length):
        yield assembly.text(piece)
    for index, call in enumerate(reply.calls):
        call_id = call.id or f"call_{number}_{index}"
        raw = msgspec.json.encode(values.fill_object(call.arguments)).decode()
        for at, piece in enumerate(_split(raw, reply.piece_length)):
            yield assembly.tool_call(index, call_id, "" if at else call.tool, piece)


def _split(text: str, length: int) -> list[str]:
    if not text:
        return []
    length = length or len(text)
    return [text[at : at + length] for at in range(0, len(text), length)]


def _end(assembly: ReplyBuilder, reply: ScriptedReply) -> list[ModelEvent]:
    if not reply.error:
        return assembly.end("stop")
    events = assembly.close_blocks()
    failed = replace(assembly.message, stop_reason="error", error=reply.error, usage=assembly.usage)
    return [*events, ReplyEnd(failed)]


async def _pause(watch: Deadline, seconds: float) -> None:
    """Wait until the delay is over or the stop signal is set. A delay of 0 checks the signal too."""
    async with watch.within(seconds + 60):
        await asyncio.sleep(seconds)


def _is_complete_reply(message: ModelMessage) -> bool:
    return isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted")


def _last_result(request: ModelRequest) -> str:
    results = [message for message in request.messages if isinstance(message, ToolResultMessage)]
    return text_of(results[-1]) if results else ""


def _usage(request: ModelRequest, reply: AssistantMessage) -> Usage:
    """Return the usage, estimated from the lengths of request and reply; it costs nothing."""
    sent = len(request.system_prompt) + sum(len(text_of(message)) for message in request.messages)
    received = len(reply.text) + sum(len(str(call.arguments)) for call in reply.tool_calls)
    return Usage(sent // CHARACTERS_A_TOKEN, received // CHARACTERS_A_TOKEN)

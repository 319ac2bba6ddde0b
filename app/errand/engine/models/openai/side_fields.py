"""What a model sends beside its text and calls: thoughts and signatures that its server wants back with the calls.

They are stored as the signature of a thought, and go back to the same model at the same server alone.
"""

import msgspec

from errand.engine.core.messages import AssistantMessage, Thinking
from errand.engine.models.reply.content import encode
from errand.engine.models.signatures import CHAT_SIGNED
from errand.protocol.base import JsonObject, JsonValue

# Names of fields of messages and calls. Those of thoughts come first, in the order in which their text is read.
THOUGHT_LISTS = ("reasoning_details", "thinking_blocks")
THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", *THOUGHT_LISTS)
OTHER_FIELDS = (
    "reasoning_opaque",
    "reasoning_signature",
    "encrypted_content",
    "extra_content",
    "thought_signature",
    "provider_specific_fields",
)
CALL_FIELDS = ("extra_content", "thought_signature", "provider_specific_fields")
_MAX_CHARACTERS = 200_000
# Texts inside the items of a list that grow from event to event.
_GROWING = frozenset({"text", "summary", "data", "thinking", "signature"})


class SideFields(msgspec.Struct, frozen=True, omit_defaults=True):
    """`texts` are the fields that had the thoughts as a text, `calls` the fields of each call, by position."""

    server: str
    texts: tuple[str, ...] = ()
    fields: JsonObject = {}
    calls: tuple[JsonObject, ...] = ()


class SideFieldCollector:
    """Collects the fields of one reply from its events.

    Fields of more than `_MAX_CHARACTERS` together are dropped: half of a signature would be refused.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._texts: list[str] = []
        self._fields: JsonObject = {}
        self._calls: dict[int, JsonObject] = {}
        self._characters = 0

    def take(self, fields: JsonObject) -> None:
        """Take the fields of one event of the message."""
        for name, value in fields.items():
            if name in THOUGHT_FIELDS and isinstance(value, str):
                self._texts += [name] if value and name not in self._texts else []
            elif self._fits(value):
                self._fields[name] = merged(self._fields.get(name), value)

    def take_call(self, position: int, fields: JsonObject) -> None:
        for name, value in fields.items():
            if self._fits(value):
                call = self._calls.setdefault(position, {})
                call[name] = merged(call.get(name), value)

    def _fits(self, value: JsonValue) -> bool:
        """Return True for a value that can be kept; too much drops what was kept before."""
        if not value or not isinstance(value, str | list | dict):
            return False
        self._characters += len(value) if isinstance(value, str) else len(encode(value))
        if self._characters > _MAX_CHARACTERS:
            self._fields, self._calls = {}, {}
        return self._characters <= _MAX_CHARACTERS

    @property
    def signature(self) -> str:
        """The fields of the whole reply as a signature; empty if nothing came."""
        if not self._server or not (self._texts or self._fields or self._calls):
            return ""
        calls = tuple(self._calls.get(at, {}) for at in range(max(self._calls, default=-1) + 1))
        side = SideFields(self._server, tuple(self._texts), self._fields, calls)
        return CHAT_SIGNED + encode(msgspec.to_builtins(side)).decode()


def merged(before: JsonValue, more: JsonValue) -> JsonValue:
    """Return a value with its continuation: texts go on, objects are completed, items of lists by their index."""
    match before, more:
        case str(), str():
            return before + more
        case dict(), dict():
            return before | {name: merged(before.get(name), value) for name, value in more.items()}
        case list(), list():
            items = list(before)
            for item in more:
                _add(items, item)
            return items
        case _:
            return more


def _add(items: list[JsonValue], item: JsonValue) -> None:
    last = items[-1] if items else None
    if isinstance(item, dict) and isinstance(last, dict) and _continues(last, item):
        grown = {name: merged(last.get(name), value) for name, value in item.items() if name in _GROWING}
        items[-1] = last | item | grown
    else:
        items.append(item)


def _continues(last: JsonObject, item: JsonObject) -> bool:
    """Return True if an item continues the one before: it has the same type and index, and no other id."""
    same = all(last.get(name) == item.get(name) for name in ("type", "index"))
    has_own_id = item.get("id") is not None and item.get("id") != last.get("id")
    return same and not has_own_id and not last.get("signature")


def side_fields_of(message: AssistantMessage, server: str) -> SideFields | None:
    """Return what came beside a message from this server; None if nothing did."""
    for block in message.content:
        if isinstance(block, Thinking) and block.signature.startswith(CHAT_SIGNED):
            try:
                side = msgspec.json.decode(block.signature.removeprefix(CHAT_SIGNED), type=SideFields)
            except (ValueError, RecursionError):  # an import, or a change by hand
                return None
            return side if side.server == server else None
    return None

"""Tool calls and their results as providers accept them: ids, names, and which calls have a result."""

import hashlib
import re

from errand.engine.core.messages import AssistantMessage, ModelMessage, ToolCall, ToolResultMessage
from errand.engine.models.catalog.providers import CallIdForm, Provider, provider_name

# Strict providers require a result for each call.
NO_RESULT = "(no result was recorded)"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_FORMS: dict[CallIdForm, re.Pattern[str]] = {
    "plain": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "nine": re.compile(r"[A-Za-z0-9]{9}"),
    # Its thought signatures refer to its own ids, which are sent back unchanged.
    "gemini": re.compile(r"[A-Za-z0-9_-]{1,64}"),
}
_LENGTHS: dict[CallIdForm, int] = {"plain": 40, "nine": 9, "gemini": 40}


class CallIdMapper:
    """Maps call ids to the provider's form; follows the messages of one request in order."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._used: set[str] = set()
        # The last number that made an id unique: some servers give each call the same id.
        self._numbers: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}

    def copy(self) -> "CallIdMapper":
        """Another one, to follow the messages from the next reply on."""
        other = CallIdMapper(self._provider)
        other._used, other._numbers = set(self._used), dict(self._numbers)
        return other

    def of_reply(self, message: AssistantMessage) -> list[tuple[ToolCall, str]]:
        """Return the calls of a reply with their ids."""
        named: list[tuple[ToolCall, str]] = []
        self._open = {}
        for call in message.tool_calls:
            sent_id = self._unique(call.id, self._in_provider_form(call.id, message.model), message.model)
            self._open.setdefault(call.id, []).append(sent_id)
            named.append((call, sent_id))
        return named

    def of_result(self, message: ToolResultMessage) -> str | None:
        """Return the id of the call that a result answers; None if the last reply has no such call."""
        open_ids = self._open.get(message.tool_call_id)
        return open_ids.pop(0) if open_ids else None

    def _unique(self, call_id: str, formed: str, model: str) -> str:
        number, unique_id = self._numbers.get(call_id, 1), formed
        while unique_id in self._used:
            number += 1
            unique_id = self._in_provider_form(f"{call_id} {number}", model)
        self._used.add(unique_id)
        self._numbers[call_id] = number
        return unique_id

    def _in_provider_form(self, call_id: str, model: str) -> str:
        form = self._provider.call_ids
        is_own = form == "gemini" and provider_name(model) == self._provider.name
        if is_own or _FORMS[form].fullmatch(call_id):
            return call_id
        return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[: _LENGTHS[form]]


def answered_calls(messages: tuple[ModelMessage, ...], index: int) -> set[str]:
    """Return the calls of the reply at `index` that have a result before the next reply."""
    answered: set[str] = set()
    for at in range(index + 1, len(messages)):
        message = messages[at]
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage):
            answered.add(message.tool_call_id)
    return answered


def sendable_name(call: ToolCall) -> str:
    """Return the name of a call in the characters that providers accept."""
    return _NOT_IN_NAMES.sub("_", call.name)[:64] or "_"

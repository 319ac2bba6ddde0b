"""The ids under which tool calls go to a provider: in the form it takes, and each only once in a request.

A conversation may begin with one provider and go on with another, or come from a file: ids that were good there are
too long here, hold other characters, or were counted anew in each reply.
"""

import hashlib
import re

from app.engine.messages import AssistantMessage, ToolCall, ToolResultMessage
from app.engine.models.catalog import CallIdForm, Provider, provider_name

_FORMS: dict[CallIdForm, re.Pattern[str]] = {
    "plain": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "nine": re.compile(r"[A-Za-z0-9]{9}"),
    # Its proofs of thought are in its own ids, which go back as they are.
    "gemini": re.compile(r"[A-Za-z0-9_-]{1,64}"),
}
_LENGTHS: dict[CallIdForm, int] = {"plain": 40, "nine": 9, "gemini": 40}


class CallIds:
    """Follows the messages of one request in their order."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._used: set[str] = set()
        self._open: dict[str, list[str]] = {}

    def of_reply(self, message: AssistantMessage) -> tuple[list[tuple[ToolCall, str]], bool]:
        """Its calls with their ids, and whether these are the same wherever the reply stands."""
        named: list[tuple[ToolCall, str]] = []
        is_independent = True
        self._open = {}
        for call in message.tool_calls:
            formed = self._formed(call.id, message.model)
            given = self._unique(call.id, formed, message.model)
            is_independent = is_independent and given == formed
            self._open.setdefault(call.id, []).append(given)
            named.append((call, given))
        return named, is_independent

    def of_result(self, message: ToolResultMessage) -> str | None:
        """The id of the call it answers; None where the last reply has no such call."""
        given = self._open.get(message.tool_call_id)
        return given.pop(0) if given else None

    def _unique(self, call_id: str, formed: str, model: str) -> str:
        number, given = 1, formed
        while given in self._used:
            number += 1
            given = self._formed(f"{call_id} {number}", model)
        self._used.add(given)
        return given

    def _formed(self, call_id: str, model: str) -> str:
        form = self._provider.call_ids
        is_own = form == "gemini" and provider_name(model) == self._provider.name
        if is_own or _FORMS[form].fullmatch(call_id):
            return call_id
        return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[: _LENGTHS[form]]

"""Reads a reply that is one call as JSON."""

from errand.engine.core.json_input.lenient_json import read_object
from errand.engine.core.messages import UNREADABLE_CALL
from errand.engine.models.json_calls.constraints import ANSWER
from errand.engine.models.react.call_parser import ToolCallText
from errand.engine.models.react.parser import ParsedCall, ParsedPiece, ShownText
from errand.engine.models.reply.content import encode


class JsonCallParser:
    """A `CallTextParser`: the call is known once the reply has ended. The text of an answer is shown."""

    def __init__(self) -> None:
        self._deltas: list[str] = []
        self.has_answer = False

    def feed(self, delta: str) -> list[ParsedPiece]:
        self._deltas.append(delta)
        return []

    def finish(self) -> list[ParsedPiece]:
        """Return the call or the answer; text that begins no JSON, from a server without constraints, is shown."""
        written = "".join(self._deltas).strip()
        if not written:
            return []
        call = read_object(written)
        name, arguments = (call.get("name"), call.get("arguments", {})) if call is not None else (None, {})
        if not isinstance(name, str):
            is_broken = written.startswith("{")
            return [ParsedCall(written, ToolCallText(UNREADABLE_CALL, written)) if is_broken else ShownText(written)]
        text = arguments.get("text") if isinstance(arguments, dict) else arguments
        if name == ANSWER and isinstance(text, str):
            self.has_answer = True
            return [ShownText(text)]
        return [ParsedCall(written, ToolCallText(name, encode(arguments).decode()))]

"""A scripted reply as the stream of Ollama's `/api/chat`, from its docs/api.md and source."""

from collections.abc import Iterable

import msgspec

from errand.protocol.base import JsonObject, JsonValue


def line_pieces(
    thoughts: Iterable[str],
    texts: Iterable[str],
    calls: Iterable[tuple[str, JsonValue]],
    finish: str,
    usage: tuple[int, int],
) -> list[bytes]:
    """One line a piece. Each call comes whole on a line of its own, always with index 0. Without `finish` it is cut."""
    messages: list[JsonObject] = []
    messages.extend({"content": "", "thinking": piece} for piece in thoughts)
    messages.extend({"content": piece} for piece in texts)
    for name, arguments in calls:
        function: JsonObject = {"index": 0, "name": name, "arguments": arguments}
        messages.append({"content": "", "tool_calls": [{"id": f"call_{len(messages)}", "function": function}]})
    lines = [_line(message) for message in messages]
    if finish:
        sent, generated = usage
        counts: JsonObject = {"prompt_eval_count": sent, "eval_count": generated, "eval_duration": 4535599000}
        lines.append(_line({"content": ""}, done=True, done_reason=finish, **counts))
    return lines


def _line(message: JsonObject, **fields: JsonValue) -> bytes:
    full_message: JsonObject = {"role": "assistant", **message}
    line: JsonObject = {
        "model": "m",
        "created_at": "2026-08-04T19:22:45.499127Z",
        "message": full_message,
        "done": False,
    }
    return msgspec.json.encode({**line, **fields}) + b"\n"

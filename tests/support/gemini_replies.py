"""A scripted reply as the stream of Gemini's generateContent."""

from collections.abc import Iterable, Iterator

import msgspec

from errand.protocol.base import JsonObject, JsonValue

_FINISH = {"tool_calls": "STOP", "stop": "STOP", "length": "MAX_TOKENS"}


def content_pieces(
    thoughts: Iterable[str], texts: Iterable[str], calls: Iterable[JsonObject], finish: str, usage: tuple[int, int]
) -> list[bytes]:
    """One event a piece; a call comes whole, as `{"name", "args"}`. An empty `finish` is left out."""
    parts: list[JsonObject] = [{"text": piece, "thought": True} for piece in thoughts]
    text_parts: list[JsonObject] = [{"text": piece} for piece in texts]
    called: list[JsonObject] = [{"functionCall": call} for call in calls]
    return list(_events([*parts, *text_parts, *called], _FINISH.get(finish, finish), usage))


def _events(parts: list[JsonObject], finish: str, usage: tuple[int, int]) -> Iterator[bytes]:
    sent, generated = usage
    counts: JsonObject = {
        "promptTokenCount": sent,
        "candidatesTokenCount": generated,
        "totalTokenCount": sent + generated,
    }
    for part in parts:
        yield _event([part], "", counts)
    yield _event([{"text": ""}], finish, counts)


def _event(parts: list[JsonObject], finish: str, counts: JsonObject) -> bytes:
    listed: list[JsonValue] = [*parts]
    candidate: JsonObject = {"content": {"parts": listed, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    chunk: JsonObject = {"candidates": [candidate], "usageMetadata": counts, "responseId": "response-1"}
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"

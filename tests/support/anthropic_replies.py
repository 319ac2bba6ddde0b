"""A scripted reply as the events of Anthropic's Messages API."""

from collections.abc import Iterator

import msgspec

from errand.protocol.base import JsonObject

_STOP_REASONS = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}


def message_pieces(
    blocks: Iterator[tuple[JsonObject, list[JsonObject]]], finish: str, usage: tuple[int, int], *, done: bool
) -> list[bytes]:
    """One event a piece. `blocks` are the beginning of each block and its deltas; an empty `finish` is left out."""
    sent, generated = usage
    start: JsonObject = {"role": "assistant", "content": [], "usage": {"input_tokens": sent, "output_tokens": 1}}
    events = [_event("message_start", {"message": start})]
    for index, (begun, deltas) in enumerate(blocks):
        events.append(_event("content_block_start", {"index": index, "content_block": begun}))
        events += [_event("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        events.append(_event("content_block_stop", {"index": index}))
    if finish:
        end: JsonObject = {"stop_reason": _STOP_REASONS.get(finish, finish)}
        events.append(_event("message_delta", {"delta": end, "usage": {"output_tokens": generated}}))
    return [*events, _event("message_stop", {})] if done else events


def _event(kind: str, fields: JsonObject) -> bytes:
    return f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **fields}) + b"\n\n"

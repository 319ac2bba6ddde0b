"""A scripted reply as the events of OpenAI's Responses API."""

from collections.abc import Iterator

import msgspec

from errand.protocol.base import JsonObject, JsonValue

Piece = tuple[str, JsonObject]


def response_pieces(
    thinking: list[str], text: list[str], calls: list[tuple[str, str, list[str]]], finish: str, usage: tuple[int, int]
) -> list[bytes]:
    """The first piece begins, then each has one delta, with what is sent before it, and the last one ends.

    A call is its id, its name and its arguments in pieces; without `finish` no end comes.
    """
    output: list[JsonValue] = []
    pieces: list[Piece] = [("response.created", {"response": _response("in_progress", [], None)})]
    if thinking:
        pieces += _item(output, _reasoning(thinking))
    if text:
        pieces += _item(output, _message(text))
    for call_id, name, arguments in calls:
        pieces += _item(output, _call(call_id, name, arguments))
    if finish:
        sent, generated = usage
        counts: JsonObject = {
            "input_tokens": sent,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": generated,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + generated,
        }
        is_cut = finish in ("length", "content_filter")
        response = _response("incomplete" if is_cut else "completed", output, counts)
        if is_cut:
            response["incomplete_details"] = {"reason": "max_output_tokens" if finish == "length" else finish}
        pieces.append((f"response.{response['status']}", {"response": response}))
    joined = [b""]
    for number, (kind, fields) in enumerate(pieces):
        joined[-1] += _event(number, kind, fields)
        if number == 0 or kind.endswith(".delta"):
            joined.append(b"")
    return joined


def _response(status: str, output: list[JsonValue], usage: JsonValue) -> JsonObject:
    head: JsonObject = {"id": "resp_1", "object": "response", "created_at": 1, "model": "test-model", "error": None}
    return {**head, "status": status, "output": output, "usage": usage, "incomplete_details": None}


def _item(output: list[JsonValue], events: Iterator[Piece]) -> Iterator[Piece]:
    """The events of one item with its index, and the item among those of the response."""
    for kind, fields in events:
        if kind == "response.output_item.done":
            output.append(fields["item"])
        index = len(output) - (kind == "response.output_item.done")
        yield kind, {"output_index": index, **fields}


def _reasoning(pieces: list[str]) -> Iterator[Piece]:
    begun: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": []}
    part: JsonObject = {"item_id": "rs_1", "summary_index": 0}
    summary: JsonObject = {"type": "summary_text", "text": "".join(pieces)}
    yield "response.output_item.added", {"item": begun}
    yield "response.reasoning_summary_part.added", {**part, "part": {"type": "summary_text", "text": ""}}
    for piece in pieces:
        yield "response.reasoning_summary_text.delta", {**part, "delta": piece}
    yield "response.reasoning_summary_text.done", {**part, "text": "".join(pieces)}
    yield "response.reasoning_summary_part.done", {**part, "part": summary}
    yield "response.output_item.done", {"item": {**begun, "summary": [summary]}}


def _message(pieces: list[str]) -> Iterator[Piece]:
    begun: JsonObject = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    part: JsonObject = {"item_id": "msg_1", "content_index": 0}
    text: JsonObject = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    yield "response.output_item.added", {"item": begun}
    yield "response.content_part.added", {**part, "part": {"type": "output_text", "text": "", "annotations": []}}
    for piece in pieces:
        yield "response.output_text.delta", {**part, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**part, "text": "".join(pieces), "logprobs": []}
    yield "response.content_part.done", {**part, "part": text}
    yield "response.output_item.done", {"item": {**begun, "status": "completed", "content": [text]}}


def _call(call_id: str, name: str, pieces: list[str]) -> Iterator[Piece]:
    item_id = f"fc_{call_id}"
    begun: JsonObject = {"type": "function_call", "id": item_id, "call_id": call_id, "name": name, "arguments": ""}
    yield "response.output_item.added", {"item": {**begun, "status": "in_progress"}}
    for piece in pieces:
        yield "response.function_call_arguments.delta", {"item_id": item_id, "delta": piece}
    arguments = "".join(pieces)
    yield "response.function_call_arguments.done", {"item_id": item_id, "name": name, "arguments": arguments}
    yield "response.output_item.done", {"item": {**begun, "status": "completed", "arguments": arguments}}


def _event(number: int, kind: str, fields: JsonObject) -> bytes:
    event: JsonObject = {"type": kind, "sequence_number": number, **fields}
    return f"event: {kind}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"

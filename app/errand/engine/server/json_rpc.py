"""JSON-RPC frames: size and depth checks, and failure objects."""

import difflib
import re
from collections.abc import Iterable
from itertools import accumulate

import msgspec

from errand.engine.core.errors import EngineError, InvalidParams
from errand.protocol.methods import FailureObject, Request

MAX_FRAME_BYTES = 1024 * 1024
_MAX_DEPTH = 64
_TOO_DEEP = f"A message nested deeper than {_MAX_DEPTH} levels."

# A string to its end, or to the end of the frame; possessive, so that no input causes backtracking.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DEPTH_CHANGES = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # one level up or down, read as signed bytes


class BadFrame(Exception):
    """The frame is rejected. `code` is JSON-RPC's; `request_id` is the frame's, if it could be read."""

    def __init__(self, code: int, text: str, request_id: str | int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.request_id = request_id


class _Id(msgspec.Struct):
    id: str | int | None = None


def read_request(frame: bytes) -> Request:
    """Decode the request, leaving its params raw. Raises `BadFrame` with the reason."""
    if len(frame) > MAX_FRAME_BYTES:
        raise BadFrame(-32600, f"A message of {len(frame):,} bytes; at most {MAX_FRAME_BYTES:,} are taken.")
    try:
        return msgspec.json.decode(frame, type=Request)
    except msgspec.ValidationError as error:
        raise BadFrame(-32600, f"Not a request: {error}. {_hint(frame)}", id_of(frame)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFrame(-32700, f"Not JSON: {error}.") from error
    except RecursionError as error:
        raise BadFrame(-32600, _TOO_DEEP) from error


def check_depth(frame: bytes, request_id: str | int) -> None:
    """Raises `BadFrame` for more than 64 levels. May take 100 ms, so it runs for authenticated clients only."""
    if _nests_too_deep(frame):
        raise BadFrame(-32600, _TOO_DEEP, request_id)


def _nests_too_deep(frame: bytes) -> bool:
    """Return True for more than 64 levels."""
    if frame.count(b"[") + frame.count(b"{") <= _MAX_DEPTH:
        return False
    steps = _STRING.sub(b"", frame).translate(_DEPTH_CHANGES, _ALL_BUT_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > _MAX_DEPTH


def _hint(frame: bytes) -> str:
    if frame.lstrip()[:1] == b"[":
        return "Batches are not served: send one request in a message."
    return 'It needs "jsonrpc": "2.0", a "method", an "id" (text or number) and "params" as an object.'


def id_of(frame: bytes) -> str | int | None:
    """Return the request's id, if it can be read."""
    try:
        return msgspec.json.decode(frame, type=_Id).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def bad_frame(error: BadFrame) -> FailureObject:
    return FailureObject(code=error.code, message=str(error), data={"code": "bad_message"})


def binary_frame() -> FailureObject:
    text = "Binary messages are not served: send JSON as a text message."
    return FailureObject(code=-32600, message=text, data={"code": "bad_message"})


def engine_error(error: EngineError) -> FailureObject:
    code = -32602 if isinstance(error, InvalidParams) else -32000
    return FailureObject(code=code, message=str(error), data={"code": error.code})


def unknown_method(name: str, known: Iterable[str]) -> FailureObject:
    near = difflib.get_close_matches(name[:100], known, n=3, cutoff=0.5)
    text = f"There is no method {name[:100]!r}." + (f" Did you mean {' or '.join(near)}?" if near else "")
    return FailureObject(code=-32601, message=text, data={"code": "unknown_method", "near": [*near]})


def not_initialized(name: str) -> FailureObject:
    text = f"Call initialize first, then {name}."
    return FailureObject(code=-32600, message=text, data={"code": "not_initialized"})


def token_replaced() -> FailureObject:
    text = "The token was replaced. Read the endpoint file again and connect anew."
    return FailureObject(code=-32600, message=text, data={"code": "token_replaced"})


def busy(text: str) -> FailureObject:
    return FailureObject(code=-32000, message=text, data={"code": "busy"})


def internal(name: str) -> FailureObject:
    text = f"The engine failed while serving {name}: a bug. Nothing else is affected; engine.log has the details."
    return FailureObject(code=-32603, message=text, data={"code": "internal"})

"""From an error to what the wire carries."""

import difflib
from collections.abc import Iterable

from app.engine.errors import EngineError, InvalidParams
from app.engine.server.frame import BadFrame
from app.protocol.wire import Failure


def bad_frame(error: BadFrame) -> Failure:
    return Failure(code=error.code, message=str(error), data={"code": "bad_message"})


def binary_frame() -> Failure:
    text = "Binary messages are not served: send JSON as a text message."
    return Failure(code=-32600, message=text, data={"code": "bad_message"})


def engine_error(error: EngineError) -> Failure:
    code = -32602 if isinstance(error, InvalidParams) else -32000
    return Failure(code=code, message=str(error), data={"code": error.code})


def unknown_method(name: str, known: Iterable[str]) -> Failure:
    near = difflib.get_close_matches(name[:100], known, n=3, cutoff=0.5)
    text = f"There is no method {name[:100]!r}." + (f" Did you mean {' or '.join(near)}?" if near else "")
    return Failure(code=-32601, message=text, data={"code": "unknown_method", "near": [*near]})


def not_initialized(name: str) -> Failure:
    text = f"Call initialize first, then {name}."
    return Failure(code=-32600, message=text, data={"code": "not_initialized"})


def busy(text: str) -> Failure:
    return Failure(code=-32000, message=text, data={"code": "busy"})


def internal(name: str) -> Failure:
    text = f"The engine failed while serving {name}: a bug. Nothing else is affected; engine.log has the details."
    return Failure(code=-32603, message=text, data={"code": "internal"})

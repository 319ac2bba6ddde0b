"""What a client tells the engine of its own environment: keys, and addresses of model servers."""

from collections.abc import Mapping

from app.protocol.engine import is_offered

_LONGEST = 10_000  # no key is as long; the first message must stay small


def keys_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the engine wants. Bytes that are no text are replaced: the engine then says what is wrong."""
    return {
        name: value.encode(errors="replace").decode()
        for name, value in environment.items()
        if name.isascii() and is_offered(name) and len(value) <= _LONGEST
    }

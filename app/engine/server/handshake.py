"""Who may use a connection: exact Host, no foreign web page, and who proves to know the token of the endpoint file."""

from collections.abc import Callable, Mapping

from app.engine.errors import Conflict, InvalidParams
from app.local_trust import is_proof, new_nonce, proof

_SHORTEST, _LONGEST = 16, 200


def refuse(headers: Mapping[str, str], port: int) -> tuple[int, str] | None:
    """The HTTP status and text of a refusal; None for a client that may try.

    The exact Host stops DNS rebinding, the Origin stops pages of other sites; programs send no Origin.
    """
    if headers.get("Host", "") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        return 403, f"Wrong Host. Use 127.0.0.1:{port}."
    if headers.get("Origin") not in (None, f"http://127.0.0.1:{port}"):
        return 403, "Pages of other sites may not use the engine."
    return None


class Handshake:
    """That of one connection. `on_passed` is called once the client has proved that it knows the token."""

    def __init__(self, token: str, on_passed: Callable[[], None]) -> None:
        self._token = token
        self._on_passed = on_passed
        self._nonces: tuple[str, str] | None = None

    def challenge(self, nonce: str) -> tuple[str, str]:
        """Our own nonce, and the proof that we know the token."""
        if not _SHORTEST <= len(nonce) <= _LONGEST:
            raise InvalidParams(f"nonce: a random text of {_SHORTEST} to {_LONGEST} characters.")
        own = new_nonce()
        self._nonces = nonce, own
        return own, proof(self._token, "answers", nonce, own)

    def check(self, given: str) -> None:
        """Raises `InvalidParams` or `Conflict` unless the client has proved that it knows the token."""
        if self._nonces is None:
            raise Conflict("Call `challenge` first: its answer is what the proof is made of.")
        if not is_proof(given, self._token, "asks", *self._nonces):
            raise InvalidParams("proof: wrong. The endpoint file in the data directory's run folder has the token.")
        self._on_passed()

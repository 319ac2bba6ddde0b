"""Who may connect: the headers of the upgrade, the access token, and the proofs that both sides know it."""

import hmac
import secrets
from collections.abc import Callable, Mapping

from errand.engine.core.errors import Conflict, InvalidParams
from errand.system.listeners import Listeners
from errand.system.local_trust import is_valid_proof, new_nonce, proof

_MIN_NONCE_LENGTH, _MAX_NONCE_LENGTH = 16, 200
_MAX_FAILURES = 5


def new_token() -> str:
    return secrets.token_urlsafe(32)


def refuse_headers(headers: Mapping[str, str], port: int) -> tuple[int, str] | None:
    """Return the HTTP status and text of a refusal; None if the client may connect.

    The exact Host prevents DNS rebinding, the Origin excludes pages of other sites; programs send no Origin.
    """
    if headers.get("Host", "") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        return 403, f"Wrong Host. Use 127.0.0.1:{port}."
    if headers.get("Origin") not in (None, f"http://127.0.0.1:{port}"):
        return 403, "Pages of other sites may not use the engine."
    return None


class AccessToken:
    """The token that clients prove to know. `announce` writes a new one where clients find it."""

    def __init__(self, value: str, announce: Callable[[str], None]) -> None:
        self.value = value
        self.rotated = Listeners[[]]()
        self._announce = announce

    def rotate(self, keep: "Handshake | None" = None) -> None:
        """Replace the token: from now on no client that proved an older one is served, except for `keep`."""
        new = new_token()
        self._announce(new)
        self.value = new
        if keep is not None:
            keep.renew()
        self.rotated.notify()


class Handshake:
    """The handshake of one connection. `on_passed` is called once the client has proved that it knows the token."""

    def __init__(self, token: AccessToken, on_passed: Callable[[], None]) -> None:
        self._token = token
        self._on_passed = on_passed
        self._nonces: tuple[str, str] | None = None
        self._proved = ""
        self._failures = 0

    @property
    def holds(self) -> bool:
        """True while the token that the client proved is the current one."""
        return hmac.compare_digest(self._proved, self._token.value)

    @property
    def is_exhausted(self) -> bool:
        """True for a client that has given too many wrong proofs."""
        return self._failures >= _MAX_FAILURES

    def rotate(self) -> None:
        """Replace the token on behalf of this client, which is served further."""
        self._token.rotate(self)

    def renew(self) -> None:
        """Count as having proved the current token."""
        self._proved = self._token.value

    def challenge(self, nonce: str) -> tuple[str, str]:
        """Returns our nonce, and the proof that we know the token."""
        if not _MIN_NONCE_LENGTH <= len(nonce) <= _MAX_NONCE_LENGTH:
            raise InvalidParams(f"nonce: a random text of {_MIN_NONCE_LENGTH} to {_MAX_NONCE_LENGTH} characters.")
        own = new_nonce()
        self._nonces = nonce, own
        return own, proof(self._token.value, "answers", nonce, own)

    def check(self, given: str) -> None:
        """Raises `InvalidParams` or `Conflict` unless the client has proved that it knows the token."""
        if self._nonces is None:
            raise Conflict("Call `challenge` first: its answer is what the proof is made of.")
        if not is_valid_proof(given, self._token.value, "asks", *self._nonces):
            self._failures += 1
            raise InvalidParams("proof: wrong. The endpoint file in the data directory's run folder has the token.")
        self.renew()
        self._on_passed()

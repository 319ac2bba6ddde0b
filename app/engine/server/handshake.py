"""Who may open a socket: bearer token, exact Host, and no foreign web page."""

import hmac
from collections.abc import Mapping


def refuse(headers: Mapping[str, str], token: str, port: int) -> tuple[int, str] | None:
    """The HTTP status and text of a refusal; None for a client that may enter.

    The exact Host stops DNS rebinding, the Origin stops pages of other sites; programs send no Origin.
    """
    if headers.get("Host", "") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        return 403, f"Wrong Host. Use 127.0.0.1:{port}."
    if headers.get("Origin") not in (None, f"http://127.0.0.1:{port}"):
        return 403, "Pages of other sites may not use the engine."
    given = headers.get("Authorization", "").encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(given, f"Bearer {token}".encode()):
        return 401, "Wrong or missing token. The endpoint file in the data directory's run folder has it."
    return None

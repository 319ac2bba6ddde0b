"""Model servers that happen to run on this machine's usual ports stay out of the tests.

Every provider that is looked for on this machine has a variable that moves it; here they all name a port at which
nothing ever answers: it is bound for as long as the process lives, so that nobody else can listen there.
"""

import socket
from collections.abc import Mapping

from app.engine.models.catalog import PROVIDERS


def _bound_port() -> int:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    port: int = bound.getsockname()[1]
    bound.detach()  # stays bound until the process ends
    return port


NOWHERE = f"127.0.0.1:{_bound_port()}"
NO_LOCAL_SERVERS: Mapping[str, str] = {row.base_variable: NOWHERE for row in PROVIDERS if row.is_local}

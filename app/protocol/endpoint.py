"""The endpoint file: where a running engine says how to reach it, readable by its owner only."""

from app.protocol.struct import Wire


class Endpoint(Wire, frozen=True, kw_only=True):
    """`url` is the WebSocket's. `token` is what both sides prove to know, see `challenge`; it is never sent.

    `process_start` is when the process was started, in clock ticks since the boot, 0 where the system does not tell.
    """

    url: str
    port: int
    pid: int
    token: str
    instance_id: str
    protocol_version: int
    process_start: int = 0

"""The endpoint file: where a running engine says how to reach it, readable by its owner only."""

from app.protocol.struct import Wire


class Endpoint(Wire, frozen=True, kw_only=True):
    """`url` is the WebSocket's; `token` goes into the handshake as `Authorization: Bearer …`."""

    url: str
    port: int
    pid: int
    token: str
    instance_id: str
    protocol_version: int

"""A real HTTP server that answers every request with the same bytes, in pieces of a given size."""

import asyncio
from typing import Self

from aiohttp import web


class StreamPlayer:
    """Answers any path on the loopback; `piece` 0 sends all at once. `paths` keeps what was asked for."""

    def __init__(self, body: bytes, piece: int = 0) -> None:
        self.url = ""
        self.paths: list[str] = []
        self._body = body
        self._piece = piece or len(body)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for at in range(0, len(self._body), self._piece):
            await response.write(self._body[at : at + self._piece])
            await asyncio.sleep(0)  # let the client read it before the next
        await response.write_eof()
        return response

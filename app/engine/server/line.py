"""One client's open socket: frames in, frames out, until either side ends it."""

import asyncio

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from app.engine.server import failure
from app.engine.server.dispatch import Dispatcher, refusal
from app.engine.server.rate import RateLimit
from app.engine.server.session import Session

_MOST_UNDER_WAY = 64


class Line:
    """Owns the tasks that serve one client. Its requests run side by side; reads end with the line."""

    def __init__(self, socket: web.WebSocketResponse, session: Session, dispatcher: Dispatcher) -> None:
        self._socket = socket
        self._session = session
        self._dispatcher = dispatcher
        self._rate = RateLimit()
        self._under_way: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(_MOST_UNDER_WAY)

    async def serve(self) -> None:
        """Returns when the socket is closed."""
        async with asyncio.TaskGroup() as group:
            sender = group.create_task(self._send(), name="send to client")
            try:
                async for message in self._socket:
                    # A client that asks faster than it reads, or than we answer, waits: its socket fills up.
                    await self._session.outbox.room()
                    await self._take(group, message)
            finally:
                sender.cancel()
                for task in self._under_way:
                    task.cancel()

    def tell(self, data: bytes) -> None:
        """Send what concerns every client that has introduced itself."""
        if self._session.client_id:
            self._session.reply(data)

    async def part(self, seconds: float) -> None:
        """Send what waits, for at most so long, then close."""
        try:
            async with asyncio.timeout(seconds):
                await self._session.outbox.emptied()
        except TimeoutError:
            pass  # it does not read; it is told by the close
        await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"The engine ends.")

    async def _take(self, group: asyncio.TaskGroup, message: WSMessage) -> None:
        if message.type is not WSMsgType.TEXT:
            self._session.reply(refusal(failure.binary_frame(), None))
            return
        frame: bytes = message.data
        if not self._rate.allows():
            self._session.reply(self._dispatcher.busy(frame))
            return
        await self._places.acquire()
        task = group.create_task(self._answer(frame), name="answer a request")
        self._under_way.add(task)
        task.add_done_callback(self._on_answered)

    def _on_answered(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._places.release()

    async def _answer(self, frame: bytes) -> None:
        self._session.reply(await self._dispatcher.answer(self._session, frame))

    async def _send(self) -> None:
        try:
            while True:
                await self._socket.send_frame(await self._session.outbox.take(), WSMsgType.TEXT)
        except ConnectionError:
            pass  # the client is gone; the reader learns it too and ends the line

"""Starts the server of the model that a request needs, ends the one before, and ends the last one when it is idle.

One model is in memory at a time. Requests for it run at once (its server queues them); one for another model waits
until they are done, and later ones wait behind it, so that no model starves.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from errand.engine.local_models.server_process import RunningServer
from errand.engine.models.servers.local_servers import LocalModelFailed

# A model that was loaded for a request stays at least so long, until it comes.
_MIN_PREPARED_S = 60.0


class ServerQueue:
    """`start` starts the server of a model by name; `idle_s` is how long one stays without requests.

    `changed` is called with the name of a model whose server has started or ended.
    """

    def __init__(
        self,
        start: Callable[[str], Awaitable[RunningServer]],
        idle_s: Callable[[], float],
        changed: Callable[[str], None],
    ) -> None:
        self._start = start
        self._idle_s = idle_s
        self._changed = changed
        self._turn = asyncio.Lock()  # first come, first served
        self._server: RunningServer | None = None
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()
        self._idle: asyncio.TimerHandle | None = None
        self._idle_end: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._starting = ""
        self._failed = ""
        self._is_closed = False

    @property
    def running(self) -> str:
        """The name of the model in memory; empty for none."""
        return self._server.options.name if self._server is not None and not self._server.has_ended else ""

    @property
    def context_tokens(self) -> int:
        """The context window of the model in memory."""
        return self._server.options.context_tokens if self._server is not None else 0

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[RunningServer]:
        """Wait for the turn of this request; the server stays at least until the block is left."""
        async with self._turn:
            if self._is_closed:
                raise LocalModelFailed("The engine ends.", "Try again when it has started again.")
            self._stop_idle()
            server = await self._ready(name)
            self._users += 1
            self._unused.clear()
        try:
            yield server
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()
                self._begin_idle()

    def is_loading(self, name: str) -> bool:
        """Return True while the model is loaded; begins to load it if the memory is not in use.

        After a failure it is False once, so that the request comes and gets the reason.
        """
        if self.running == name:
            return False
        if self._starting == name:
            return True
        if self._failed == name:
            self._failed = ""
            return False
        if self._is_closed or self._users or self._turn.locked():
            return False
        self._starting = name
        self._preparing = asyncio.get_running_loop().create_task(self._prepare(name), name=f"loading {name}")
        return True

    async def end(self, name: str) -> bool:
        """End the server of this model, if there is one. Return False if requests use it: then it stays."""
        if name not in (self.running, self._starting):
            return True
        if self.running == name and self._users:
            return False
        async with self._turn:
            if self.running == name:
                if self._users:
                    return False
                await self._end()
        return True

    async def close(self) -> None:
        """End the server at once; its requests fail."""
        self._is_closed = True
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait((self._preparing,))
        await self._end()
        if unfinished := [task for task in (self._idle_end, self._ending) if task is not None]:
            await asyncio.wait(unfinished)

    async def _ready(self, name: str) -> RunningServer:
        if self.running == name:
            assert self._server is not None
            return self._server
        await self._unused.wait()
        await self._end()
        self._starting = name
        try:
            server = await self._start(name)
        finally:
            self._starting = ""
        if self._is_closed:
            await server.end()
            raise LocalModelFailed("The engine ends.", "Try again when it has started again.")
        self._server = server
        self._changed(name)
        return server

    async def _prepare(self, name: str) -> None:
        """Load the model ahead of the request that is about to come, for which it stays."""
        try:
            async with self.use(name):
                pass
        except LocalModelFailed:
            self._failed = name
        finally:
            self._starting = ""
        self._begin_idle(_MIN_PREPARED_S)

    async def _end(self) -> None:
        """End the server. It ends also if the request that needs the memory is cancelled meanwhile."""
        self._stop_idle()
        server, self._server = self._server, None
        if server is not None:
            name = server.options.name
            self._ending = asyncio.get_running_loop().create_task(server.end(), name=f"end of {name}")
            self._ending.add_done_callback(lambda _: self._changed(name))
            await asyncio.shield(self._ending)

    def _begin_idle(self, min_s: float = 0.0) -> None:
        self._stop_idle()
        if self._server is not None and not self._users and not self._is_closed:
            self._idle = asyncio.get_running_loop().call_later(max(min_s, self._idle_s()), self._end_idle)

    def _end_idle(self) -> None:
        self._idle = None
        if not self._turn.locked():
            self._idle_end = asyncio.get_running_loop().create_task(self._end_unused(), name="end of an idle model")

    async def _end_unused(self) -> None:
        async with self._turn:
            if not self._users:
                await self._end()

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

"""The engine of a wire case: with its socket, and on demand with a task that waits for an answer."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from websockets.asyncio.client import connect

from errand.engine.server.authentication import AccessToken
from errand.engine.server.websocket_server import Server, bind_loopback
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.events import AskUpdate
from tests.support.connections import RawClient
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.engine_server import TOKEN
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

_FOLDER, _EFFECT = "sub", "made"
_ASKED = Reply(calls=(Call("shell", {"command": f"echo once >> {_EFFECT}", "working_dir": _FOLDER}),))
_EXPIRES_MINUTES = 0.01
_NEVER_IN_USE = "192.0.2.1"


@dataclass(slots=True)
class WireEngine:
    """`ask` is the pending ask: a command that leaves a line in a file."""

    parts: EngineParts
    server: Server
    token: AccessToken
    ask: Ask | None = None

    @property
    def pending(self) -> Ask:
        assert self.ask is not None
        return self.ask

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[RawClient]:
        """A connection that has not introduced itself."""
        url = self.server.url
        async with connect(url, proxy=None, compression=None, max_size=None, ping_interval=None) as line:
            yield RawClient(line)

    async def raise_ask(self, *, expires: bool) -> None:
        """Start a task that asks; if the case lets the ask expire, it does so within a second."""
        if expires:
            self.parts.services.settings.set("ask_timeout", _EXPIRES_MINUTES)
        (self.parts.workspace / _FOLDER).mkdir()
        started = await self.parts.start(approve="ask")
        self.ask = await self.parts.watcher.ask(started.id)

    def effects(self) -> int:
        """Return how often the command ran, in the original folder or in its replacement."""
        files = self.parts.workspace.glob(f"*/{_EFFECT}")
        return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)

    async def settled(self) -> None:
        """Wait until the task has ended or asks something else."""
        watcher, task_id = self.parts.watcher, self.pending.task_id

        def is_settled() -> bool:
            task = watcher.tasks(task_id)[-1]
            asks_again = task.activity.ask_id not in (None, self.pending.id)
            return task.outcome.ended_at is not None or asks_again

        await watcher.until(is_settled)

    async def answer(self, *, allow: bool) -> None:
        """Another client answers first."""
        await self.parts.services.asks.answer(AskAnswerParams(ask_id=self.pending.id, allow=allow), "another client")
        await self.settled()

    async def time_out(self) -> None:
        """Wait until the ask has expired."""
        await self.parts.watcher.until(
            lambda: any(
                isinstance(event, AskUpdate) and event.ask.id == self.pending.id and event.ask.status != "waiting"
                for event in self.parts.watcher.events
            )
        )

    def change_what_is_asked(self) -> None:
        """Another folder takes the place of the one that the command was to run in."""
        folder = self.parts.workspace / _FOLDER
        folder.rename(folder.with_name("gone"))
        folder.mkdir()

    async def is_reached_from_elsewhere(self) -> bool:
        """Tell whether the port answers on an address other than 127.0.0.1."""
        for address in {"127.0.0.2", own_address()}:
            try:
                _, writer = await asyncio.open_connection(address, self.server.port)
            except OSError:
                continue
            writer.close()
            return True
        return False


def own_address() -> str:
    """An address of this machine in a network, if it has one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_NEVER_IN_USE, 9))
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


@asynccontextmanager
async def wire_engine(folder: Path) -> AsyncGenerator[WireEngine]:
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with engine_parts(folder, ModelServer(turns=[_ASKED, DONE])) as parts:
        token = AccessToken(TOKEN, lambda _: None)
        server = Server(parts.services, token, bind_loopback(0))
        await server.start()
        try:
            yield WireEngine(parts, server, token)
        finally:
            await server.close()

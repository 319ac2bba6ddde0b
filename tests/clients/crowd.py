"""Twenty restless clients on one engine with scripted tasks; a seed determines every choice."""

import asyncio
import socket as sockets
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from errand.client.subscription import Detail
from errand.engine.server.authentication import AccessToken
from errand.engine.server.dispatcher import ROUTES
from errand.engine.server.outbox import Outbox
from errand.engine.server.services import Services
from errand.engine.server.session import ALL
from errand.engine.server.websocket_server import Server, bind_loopback
from errand.protocol.base import JsonObject
from errand.protocol.engine import PROTOCOL_VERSION, Endpoint
from tests.clients.client_state import differences
from tests.clients.errands import answer, plan
from tests.clients.restless import Gone, RestlessClient
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer

_TOKEN = "the-token-of-the-test"
_CLIENT_TIMEOUT_S = 60.0
# Small enough that a client which stops reading has to resynchronise within a task or two.
_SMALL_OUTBOX = partial(Outbox, most_messages=40, most_bytes=60_000)
_STEPS = 12
_SEND_BYTES = 8192


@dataclass(slots=True)
class Tally:
    """The actions of the crowd, and the faults it saw."""

    done: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])


class Crowd:
    """Its clients act concurrently until each has done its steps; `settle` waits for all and compares."""

    def __init__(self, services: Services, endpoint: Endpoint, model_url: str, workspace: Path, seed: int) -> None:
        self.tally = Tally()
        self._services = services
        self._random = Random(seed)
        self._model_url = model_url
        self._workspace = workspace
        self._endpoint = endpoint
        self._started: set[str] = set()
        self._clients: list[RestlessClient] = []

    async def play(self, clients: int) -> None:
        """Run this many clients, then compare the state of each with the database."""
        self._clients = [RestlessClient(f"client-{number}", self._endpoint) for number in range(clients)]
        seeds = [self._random.randrange(2**32) for _ in self._clients]
        async with asyncio.timeout(_CLIENT_TIMEOUT_S):
            async with asyncio.TaskGroup() as group:
                for client, seed in zip(self._clients, seeds, strict=True):
                    group.create_task(self._live(client, Random(seed)))
            await self._finish_tasks()
            for client in self._clients:
                await self._settle(client)
        await self._compare()

    async def _live(self, client: RestlessClient, random: Random) -> None:
        for _ in range(_STEPS):
            try:
                await self._act(client, random)
            except Gone:
                self.tally.done["broken off"] += 1
            await asyncio.sleep(random.choice((0, 0, 0.001, 0.01)))

    async def _act(self, client: RestlessClient, random: Random) -> None:
        if not client.is_connected:
            await client.connect()
            self.tally.done["connected"] += 1
            if client.follows.all:
                return
        if client.is_behind:
            self.tally.done["started over"] += 1
            await client.start_over()
            return
        acts = (
            self._follow,
            self._follow,
            self._follow_badly,
            self._unfollow,
            self._start,
            self._start,
            self._answer,
            self._answer,
            self._move,
            self._steer,
            self._gather,
            self._part,
            self._arrange,
            self._doze,
            self._die,
            self._leave_amid,
        )
        act = random.choice(acts)
        self.tally.done[act.__name__.strip("_")] += 1
        await act(client, random)

    async def _follow(self, client: RestlessClient, random: Random) -> None:
        scope = random.choice((ALL, ALL, await self._some_conversation(random)))
        detail: Detail = random.choice(("summary", "full"))
        await client.follow(scope, detail)

    async def _follow_badly(self, client: RestlessClient, random: Random) -> None:
        """Subscribe where nothing can be replayed, or to a conversation that does not exist."""
        after, epoch, scope = random.choice(
            ((3, "another", ALL), (client.head + 10_000, client.epoch, ALL), (0, "", "no"))
        )
        await client.follow(scope, after=after, epoch=epoch)

    async def _unfollow(self, client: RestlessClient, random: Random) -> None:
        if client.follows.all:
            await client.unfollow(random.choice(client.follows.all))

    async def _start(self, client: RestlessClient, random: Random) -> None:
        """Start a task; the command is sent twice."""
        conversation = await self._some_conversation(random) if random.random() < 0.4 else ALL
        params: JsonObject = {
            "prompt": plan(random, len(self._started)),
            "conversationId": None if conversation == ALL else conversation,
            "workspace": str(self._workspace) if conversation == ALL else None,
            "model": "openai_compatible/test-model",
            "apiBase": self._model_url,
            "apiKey": "sk-test-key-of-the-tests",
            "approve": random.choice(("ask", "all")),
        }
        first, again = await client.call_twice("task/start", **params)
        if first and again and first != again:  # a refusal is not stored
            self.tally.faults.append(f"a command sent twice was answered {first} and {again}")
        if "task" in first:
            self._started.add(_text(first["task"], "id"))

    async def _answer(self, client: RestlessClient, random: Random) -> None:
        """Answer an open ask from three clients at once."""
        waiting = await self._services.database.asks.waiting()
        if not waiting:
            return
        ask = random.choice(waiting)
        others = [peer for peer in self._clients if peer.is_connected and peer is not client and not peer.is_behind][:2]
        answers = await asyncio.gather(
            *(_settle_ask(peer, ask.id) for peer in (client, *others)), return_exceptions=True
        )
        heard = [settled for settled in answers if isinstance(settled, dict) and settled]
        winners = [settled for settled in heard if settled["won"]]
        self.tally.done["answered together"] += len(heard) > 1
        if len(winners) > 1:
            self.tally.faults.append(f"{len(winners)} answers won the ask {ask.id}")
        if any(settled["ask"] != heard[0]["ask"] for settled in heard):
            self.tally.faults.append(f"clients heard different answers to the ask {ask.id}")

    async def _move(self, client: RestlessClient, random: Random) -> None:
        task = await self._some_task(random)
        if task:
            await client.call_twice(random.choice(("task/stop", "task/pause", "task/resume")), taskId=task)

    async def _steer(self, client: RestlessClient, random: Random) -> None:
        task = await self._some_task(random)
        if task:
            method = random.choice(("task/steer", "task/follow_up"))
            await client.call_twice(method, taskId=task, text=f"word {random.random()}")

    async def _gather(self, client: RestlessClient, random: Random) -> None:
        """Add an agent at the first one's position; the command is sent twice."""
        conversation = await self._some_conversation(random)
        if conversation != ALL:
            first, again = await client.call_twice("agent/create", conversationId=conversation)
            if first and again and first != again:
                self.tally.faults.append(f"an agent that was created twice is {first} and {again}")

    async def _part(self, client: RestlessClient, random: Random) -> None:
        """Delete an agent that may be running."""
        agents = await self._services.database.agents.list(await self._some_conversation(random))
        if len(agents) > 1:
            await client.call_twice("agent/delete", agentId=random.choice(agents[1:]).id)

    async def _arrange(self, client: RestlessClient, random: Random) -> None:
        """Keep or release the node at an agent's head, and change the turn order."""
        agents = await self._services.database.agents.list(await self._some_conversation(random))
        head = agents[0].head_id if agents else None
        if head is not None:
            change = random.choice(("keepNodeId", "releaseNodeId"))
            taking: JsonObject = {"rule": "addressed", "limit": random.randint(1, 9)}
            params: JsonObject = {"conversationId": agents[0].conversation_id, change: head, "turnTaking": taking}
            await client.call_twice("conversation/change", **params)

    async def _doze(self, client: RestlessClient, random: Random) -> None:
        client.stop_reading()
        await asyncio.sleep(random.choice((0.05, 0.2, 0.5)))
        client.read_on()

    async def _die(self, client: RestlessClient, random: Random) -> None:
        await client.die(in_mid_frame=random.random() < 0.5)

    async def _leave_amid(self, client: RestlessClient, random: Random) -> None:
        """Send a command and disconnect before its answer."""
        command = asyncio.ensure_future(self._steer(client, random))
        await asyncio.sleep(0)
        await client.die(in_mid_frame=False)
        await asyncio.gather(command, return_exceptions=True)

    async def _some_conversation(self, random: Random) -> str:
        """An existing conversation; `all` while there is none."""
        there = (await self._services.database.conversations.page(limit=50)).conversations
        return random.choice(there).id if there else ALL

    async def _some_task(self, random: Random) -> str:
        active = await self._services.database.tasks.active()
        return random.choice(active).id if active else ""

    async def _finish_tasks(self) -> None:
        """Act like a patient person: answer every ask, resume paused tasks."""
        person = RestlessClient("person", self._endpoint)
        await person.connect()
        while active := await self._services.database.tasks.active():
            for ask in await self._services.database.asks.waiting():
                await _settle_ask(person, ask.id)
            for task in active:
                if task.activity.status == "paused":
                    await person.call("task/resume", taskId=task.id)
            await asyncio.sleep(0.01)
        await person.die(in_mid_frame=False)

    async def _settle(self, client: RestlessClient) -> None:
        """Reconnect and receive everything: an answer follows all events before it."""
        client.read_on()
        while True:
            try:
                if not client.is_connected:
                    await client.connect()
                if not client.follows.all:
                    await client.follow()
                await client.call("engine/status")
                if not client.is_behind:
                    return
                await client.start_over()
            except Gone:
                self.tally.done["broken off"] += 1

    async def _compare(self) -> None:
        database = self._services.database
        for client in self._clients:
            for follow in client.follows.all:
                mismatches = await differences(client.state, follow, database)
                self.tally.faults += [f"{client.name}, {follow.scope} {follow.detail}: {text}" for text in mismatches]
            self.tally.faults += [f"{client.name}: {text}" for text in client.state.faults]
            self.tally.done["resyncs"] += client.resyncs
            await client.die(in_mid_frame=False)
        stored = {task.id for task in (await database.tasks.page(500)).tasks}
        if not self._started <= stored:
            self.tally.faults.append("a task that was acknowledged is not stored")


async def _settle_ask(client: RestlessClient, ask_id: str) -> JsonObject:
    return await client.call("ask/answer", askId=ask_id, text=f"by {client.name}", allow=True)


def _text(value: object, name: str) -> str:
    return str(msgspec.convert(value, JsonObject)[name])


@asynccontextmanager
async def crowd(home: Path, seed: int) -> AsyncGenerator[Crowd]:
    async with AsyncExitStack() as stack:
        model = ModelServer(answer=answer)
        parts = await stack.enter_async_context(engine_parts(home, model))
        listener = bind_loopback(0)
        listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF, _SEND_BYTES)
        server = Server(parts.services, AccessToken(_TOKEN, lambda _: None), listener, ROUTES, _SMALL_OUTBOX)
        await server.start()
        stack.push_async_callback(server.close)
        endpoint = Endpoint(
            url=server.url,
            port=server.port,
            pid=1,
            token=_TOKEN,
            instance_id=parts.services.instance.id,
            protocol_version=PROTOCOL_VERSION,
        )
        yield Crowd(parts.services, endpoint, model.url, parts.workspace, seed)

"""A real server on a real socket over a real database; only the task runner is a stand-in."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.engine.agent.asks import AskDesk
from app.engine.agent.chats import Chats
from app.engine.agent.claims import Claims
from app.engine.agent.comparison import Comparison
from app.engine.agent.roster import Roster
from app.engine.broadcast import EventLog
from app.engine.models.own_servers import OwnServers
from app.engine.models.router import ModelRouter
from app.engine.permissions.grants import Grants
from app.engine.secrets import KeyStore
from app.engine.server.route import Served
from app.engine.server.routes import ROUTES
from app.engine.server.services import Services
from app.engine.server.socket import Server, bound
from app.engine.settings import Settings
from app.engine.stall import StallMeter
from app.engine.storage.database import Database
from app.paths import Paths
from app.protocol.endpoint import Endpoint
from app.protocol.engine import PROTOCOL_VERSION
from tests.support.no_local_servers import NO_LOCAL_SERVERS
from tests.support.plain_runner import PlainRunner

TOKEN = "the-token-of-the-test"


@dataclass(frozen=True, slots=True)
class EngineServer:
    services: Services
    runner: PlainRunner
    server: Server
    ended: asyncio.Event

    @property
    def log(self) -> EventLog:
        return self.services.log

    @property
    def database(self) -> Database:
        return self.services.database

    def endpoint(self) -> Endpoint:
        return Endpoint(
            url=self.server.url,
            port=self.server.port,
            pid=1,
            token=TOKEN,
            instance_id=self.services.instance_id,
            protocol_version=PROTOCOL_VERSION,
        )


@asynccontextmanager
async def engine_server(
    home: Path, *, port: int = 0, routes: Sequence[Served] = ROUTES, instance_id: str = "engine_test"
) -> AsyncGenerator[EngineServer]:
    """Opened anew on the same home it is the same engine after a restart."""
    paths = Paths(home)
    paths.prepare()
    database = await Database.open(f"sqlite+aiosqlite:///{paths.database}", paths.copies)
    log = EventLog(database.journal, database.epoch, (await database.events.bounds())[1])
    keys = KeyStore(paths.keys, NO_LOCAL_SERVERS, lambda: None)
    settings = Settings(paths.settings)
    models = ModelRouter(keys, home, settings=lambda: settings.values, lists=paths.models)
    runner = PlainRunner(log)
    claims = Claims(database, AskDesk(log, database.asks))
    roster = Roster(log, database, claims, paths)
    ended = asyncio.Event()
    services = Services(
        log=log,
        database=database,
        runner=runner,
        claims=claims,
        roster=roster,
        chats=Chats(database, roster, runner),
        comparison=Comparison(database, roster, runner, models, settings),
        models=models,
        own_servers=OwnServers(settings, keys, models.offer),
        keys=keys,
        settings=settings,
        grants=Grants(),
        paths=paths,
        instance_id=instance_id,
        version="0",
        started_at=datetime.now(UTC),
        shutdown=ended.set,
        stalls=StallMeter(),
    )
    server = Server(services, TOKEN, bound(port), routes)
    await server.start()
    try:
        yield EngineServer(services, runner, server, ended)
    finally:
        await server.close()
        await models.close()
        log.close()
        await database.close()

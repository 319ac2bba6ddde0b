"""The engine's entry point: joins the parts, announces the endpoint, and shuts down in order."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import msgspec

from errand.engine.agent.history.attachments import Attachments
from errand.engine.agent.prompt.personalities import BUILTIN_PERSONALITIES
from errand.engine.agent.run.limits import DailyBudget
from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.run.task_builder import MemoryDependencies, ModelDependencies, TaskBuilder, ToolDependencies
from errand.engine.agent.run.task_sandbox import SandboxFactory
from errand.engine.agent.tasks.chats import Chats
from errand.engine.agent.tasks.comparison import ModelComparison
from errand.engine.agent.tasks.conversation_agents import ConversationAgents
from errand.engine.agent.tasks.locks import AgentLocks
from errand.engine.agent.tasks.restart import mark_interrupted, restore_asks
from errand.engine.agent.tasks.runner import AgentTaskRunner
from errand.engine.background import Background
from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.undo import Checkpoints
from errand.engine.core import process_hardening, resources
from errand.engine.core.errors import EngineError
from errand.engine.core.heartbeat import Heartbeat, LoopLatency, new_heartbeat
from errand.engine.core.ids import new_id
from errand.engine.core.process_hardening import forbid_dumps
from errand.engine.core.resources import DescriptorLimit, keep_disk_reserve, release_disk_reserve
from errand.engine.core.secrets import KeyStore
from errand.engine.core.settings import Settings
from errand.engine.core.workspace_threads import end_idle
from errand.engine.data.forgetter import Forgetter
from errand.engine.data.remover import Remover
from errand.engine.event_log import EventLog
from errand.engine.local_models.local_models import LocalModels
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import folder_of_model, simple_model_folder
from errand.engine.memory.facts import Facts
from errand.engine.memory.memory import open_memory
from errand.engine.models.catalog.configured import ProviderDirectory, default_api_base
from errand.engine.models.custom_servers import CustomServers
from errand.engine.models.own_models import OwnModels
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter, window_of
from errand.engine.permissions.grants import Grants
from errand.engine.permissions.network import judge_named, own_port
from errand.engine.sandbox.detection import find_sandbox, missing_sandbox
from errand.engine.server.authentication import AccessToken, new_token
from errand.engine.server.endpoint_file import remove_endpoint, take_engine_lock, write_endpoint
from errand.engine.server.services import EngineInstance, ModelServices, Services, ToolServices
from errand.engine.server.websocket_server import Server, bind_loopback
from errand.engine.skills.skills import Skills
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, commands
from errand.engine.storage.sql.errors import condition
from errand.engine.storage.sqlite.backups import DailyBackups
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.engine.tools.mcp.administration import ServerAdministration
from errand.engine.tools.mcp.known import KnownServers
from errand.engine.tools.mcp.pool import McpPool
from errand.engine.tools.mcp.server import McpServer
from errand.engine.tools.processes import marks, watchdog
from errand.engine.tools.processes.termination import end_marked, reap_orphans
from errand.engine.tools.processes.watchdog import take_report, write_on_signal
from errand.engine.tools.sessions import ToolSessions
from errand.engine.tools.shell.login_environment import LoginEnvironment
from errand.protocol.engine import PROTOCOL_VERSION, Endpoint
from errand.protocol.events import LocalModelUpdate, McpUpdate
from errand.system import log as logs
from errand.system.database_file import NewestEventNote
from errand.system.local_trust import process_start
from errand.system.paths import Paths, default_paths
from errand.text.argument_parser import Parser
from errand.text.printable import printable

_logger = logging.getLogger(__name__)

_RETRY = RetryPolicy()

# Results of commands are stored this long; a command sent again later is executed again.
_COMMANDS_STORED = timedelta(days=7)

# Delay before a failed background job restarts.
_RESTART_S = 3600.0

# Time limits of an orderly shutdown: for current steps, and in total.
_STEP_S = 1.5
_SHUTDOWN_S = 3.0
# An event loop iteration of this length is a defect: no client gets a response, and no task can be stopped.
_STALL_S = 10.0
_MAX_STALL_S = 86_400.0
# A stall of the previous engine is reported to clients for an hour.
_STALL_REPORTED_S = 3_600.0
# That there is no sandbox is reported once for a data directory, for five minutes.
_BARE_REPORTED_S = 300.0


def main(arguments: Sequence[str], keys: Mapping[str, str]) -> int:
    """Run an engine until it is asked to end. Returns 1, with a line on stderr, if it cannot start.

    `keys` are those of its own environment, which must not contain them any more.
    """
    parser = Parser(prog="errand engine", description="Run the engine in the foreground.")
    parser.add_argument("--port", type=_port, default=0, help="the port to listen on; any free one by default")
    parser.add_argument(
        "--stall-limit", type=_seconds, default=_STALL_S, metavar="SECONDS",
        help="end the engine if it does not answer for this long; 0 for never (%(default)g)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    port: int = options.port
    stall_s: float = options.stall_limit
    paths = default_paths()
    process_hardening.limit_malloc_arenas()
    forbid_dumps()
    resources.raise_limit()
    store = KeyStore(paths.keys, keys)
    try:
        paths.prepare()
        release_disk_reserve(paths.disk_reserve)
        logs.configure(paths, "engine", store.redactor)
        heartbeat = new_heartbeat()
        with asyncio.Runner(loop_factory=heartbeat.loop if heartbeat is not None else None) as runner:
            runner.run(_serve(paths, port, store, heartbeat, stall_s))
    except (EngineError, OSError) as error:
        _logger.error("the engine did not start: %s", error)
        sys.stderr.write(f"errand engine: {printable(str(error))}\n")
        return 1
    return 0


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 65_536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 1 to 65535, or 0 for any free one")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds <= _MAX_STALL_S:
        return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {_MAX_STALL_S:g}")


async def _serve(paths: Paths, port: int, keys: KeyStore, heartbeat: Heartbeat | None, stall_s: float) -> None:
    """Run from acquiring the lock to the last commit; parts are closed in reverse order of their start."""
    async with AsyncExitStack() as stack:
        was_killed = paths.endpoint.exists()
        lock = take_engine_lock(paths)
        stack.callback(lock.release)
        # Before opening anything else: a port in use is reported in one line, at no cost.
        listener = bind_loopback(port)
        stack.callback(listener.close)
        loop = asyncio.get_running_loop()
        end = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(name, _on_signal, end, paths)
        stack.callback(reap_orphans(loop))
        stack.callback(watchdog.start_watchdog())
        stalled = take_report(paths)
        write_on_signal(paths)
        of_data = marks.name_data_directory(paths.home)
        if was_killed:  # the engine before, and maybe its watchdog too
            await end_marked(frozenset({of_data}))
        services = await open_services(paths, keys, end.set, stack)
        health = services.database.health
        loop.set_exception_handler(DescriptorLimit(health, lambda: condition("no_descriptors", "")).on_error)
        if stalled is not None:
            health.report(stalled)
            loop.call_later(_STALL_REPORTED_S, health.clear, stalled.kind)
        if (bare := missing_sandbox(paths, services.settings.values.command_sandbox)) is not None:
            health.report(bare)
            loop.call_later(_BARE_REPORTED_S, health.clear, bare.kind)
        await _listen(services, listener, stack)
        if heartbeat is not None:
            heartbeat.on_turn = services.instance.loop_latency.turn
            if stall_s:
                watchdog.watch(heartbeat, paths.stall, stall_s)
        keep_disk_reserve(paths.disk_reserve)
        # Everything allocated so far is permanent: the garbage collector need not scan it.
        gc.freeze()
        gc.enable()
        await end.wait()
        _logger.info("ending")
        # While clients are still connected: those following a task learn at once that it is interrupted.
        loop.call_later(_SHUTDOWN_S, _exit_now, paths)
        await services.runner.drain(_STEP_S)
        await services.runner.close()


def _on_signal(end: asyncio.Event, paths: Paths) -> None:
    if end.is_set():
        _exit_now(paths)  # requested twice
    end.set()


def _exit_now(paths: Paths) -> None:
    """Exit at once. Commits are kept, the watchdog ends tool processes, the next start does the rest."""
    _logger.warning("leaving before all is ended in order")
    with suppress(OSError):
        paths.endpoint.unlink(missing_ok=True)
    os._exit(1)


async def open_services(
    paths: Paths,
    keys: KeyStore,
    shutdown: Callable[[], None],
    stack: AsyncExitStack,
    retry: RetryPolicy = _RETRY,
) -> Services:
    """Build an engine on a data directory; `stack` closes it. Everything except lock, signals and socket."""
    settings = Settings(paths.settings)
    probed = asyncio.get_running_loop().run_in_executor(None, find_sandbox)  # while the database is opened
    url = settings.values.database_url or sqlite_url(paths.database)
    database = await Database.open(url, paths.copies, keys.redactor)
    stack.push_async_callback(database.close)
    _, head = await database.events.bounds()
    newest = NewestEventNote(None if settings.values.database_url else paths.database, database.epoch)
    stack.callback(newest.close)
    stack.callback(end_idle)
    log = EventLog(database.journal, database.epoch, head, newest.write)
    stack.callback(log.deltas.close)
    database.journal.put(
        commands.prune(datetime.now(UTC) - _COMMANDS_STORED),
        commands.forget_passwords(),
        *(agents.add_personality(shipped) for shipped in BUILTIN_PERSONALITIES),
    )
    asks = PendingAsks(log, database.asks, lambda: settings.values.ask_timeout)
    database.journal.set_waits_saved(True)
    await mark_interrupted(database, log, paths)
    embedder = Embedder(
        lambda: folder_of_model(settings.values.embedding_folder, paths), simple_model=simple_model_folder()
    )
    stack.push_async_callback(embedder.close)
    memory = await open_memory(database, log, settings, paths, keys, embedder, stack)
    background = Background()  # closed before what it works with
    stack.push_async_callback(background.close)
    await probed
    await _wait_recovered(database, log, asks, background)
    tour = Path(str(files("errand.resources") / "tour"))
    local = LocalModels(
        paths,
        lambda: settings.values,
        lambda model: log.publish(LocalModelUpdate(model=model)),
        background,
        home=Path.home(),
    )
    stack.push_async_callback(local.close)
    models = ModelRouter(keys, tour, retry, lambda: settings.values, paths.models, local)
    stack.push_async_callback(models.close)
    grants = Grants(await database.grants.valid())
    stack.callback(grants.subscribe(asks.grants_changed))
    facts = Facts(log, database, keys.redactor)
    day = DailyBudget(log, database.usage, settings)
    windows = partial(window_of, models=models, settings=settings)
    attachments = Attachments(paths.attachments)
    sessions = ToolSessions()
    contents = ContentStore(paths.replaced)
    stack.callback(contents.close)
    baselines = Baselines(contents, paths.replaced / "git", paths.home)
    stack.push_async_callback(baselines.close)
    checkpoints = Checkpoints(log, database, baselines)
    background.start(checkpoints.recover(), name="changes of an earlier engine")
    stack.push_async_callback(sessions.close)
    servers = McpPool(
        settings,
        keys,
        KnownServers(paths.mcp_known),
        SandboxFactory(settings, paths, grants, sessions).for_server,
        partial(_judge_named, paths),
    )
    stack.push_async_callback(servers.close)
    servers.changed = partial(_publish_server, log)
    builder = TaskBuilder(
        log=log,
        database=database,
        settings=settings,
        paths=paths,
        asks=asks,
        grants=grants,
        attachments=attachments,
        models=ModelDependencies(
            has_price=models.has_price,
            window_of=windows,
            daily_budget=day,
            open=lambda name: models.open_again(name, default_api_base(name, settings.values)),
            servers=models.servers,
        ),
        tools=ToolDependencies(
            sessions=sessions, baselines=baselines, redactor=keys.redactor, embed=embedder.embed, servers=servers
        ),
        memory=MemoryDependencies(facts=facts, source=memory.reader),
    )
    locks = AgentLocks(database, asks)
    runner = AgentTaskRunner(builder, locks, models, background)
    stack.push_async_callback(runner.close)
    memory.is_busy = lambda: bool(runner.running.shown())
    memory.start(background)
    conversation_agents = ConversationAgents(log, database, runner.changes, locks, paths)
    forgetter = Forgetter(log, database, runner.changes, locks, memory, facts, sessions, builder.memory.recalls, paths)
    background.start(forgetter.sweep(), name="texts that an earlier engine was forgetting")
    remover = Remover(log, database, runner.changes, locks, grants, baselines, paths)
    background.start(remover.sweep(), name="sweep of left files")
    background.keep(
        partial(checkpoints.run_pruning, lambda: settings.values.keep_changes_days), "pruning of changes", _RESTART_S
    )
    if not settings.values.database_url:
        copies = DailyBackups(paths.database, paths.copies, database.health)
        background.keep(copies.run, "daily copies", _RESTART_S)
    own_models = OwnModels(settings, ProviderDirectory(lambda: settings.values))
    return Services(
        instance=EngineInstance(
            id=new_id("engine"),
            version=version("errand-desktop"),
            started_at=datetime.now(UTC),
            shutdown=shutdown,
            loop_latency=LoopLatency(),
        ),
        log=log,
        database=database,
        paths=paths,
        settings=settings,
        keys=keys,
        runner=runner,
        asks=asks,
        locks=locks,
        agents=conversation_agents,
        chats=Chats(database, conversation_agents, runner),
        models=ModelServices(
            router=models,
            custom_servers=CustomServers(settings, keys, models.available, own_models),
            own_models=own_models,
            comparison=ModelComparison(database, conversation_agents, runner, models, settings),
            local=local,
        ),
        tools=ToolServices(
            mcp=ServerAdministration(settings, keys, servers),
            skills=Skills(paths, Path.home()),
            login=LoginEnvironment(lambda: settings.values.login_environment, background.start),
            sessions=sessions,
        ),
        grants=grants,
        memory=memory,
        facts=facts,
        forgetter=forgetter,
        checkpoints=checkpoints,
    )


def _judge_named(paths: Paths, url: str, resolved: Sequence[str], server: str, of_server: Sequence[str]) -> str | None:
    return judge_named(url, resolved, server, of_server, own_port(paths))


def _publish_server(log: EventLog, server: McpServer) -> None:
    problem = server.spec.problem or server.problem
    log.publish(McpUpdate(name=server.spec.name, state=server.state, problem=problem))


async def _wait_recovered(database: Database, log: EventLog, asks: PendingAsks, background: Background) -> None:
    """Wait until recovery from a crash is stored, unless nothing can be saved: reads work meanwhile."""
    keeping = background.start(restore_asks(database, log, asks), name="asks of an earlier engine")
    ill = asyncio.Event()
    unsubscribe = database.health.subscribe(ill.set)
    waiting = asyncio.create_task(ill.wait())
    try:
        if database.health.blocking_condition is None:
            await asyncio.wait((keeping, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        unsubscribe()
        waiting.cancel()


async def _listen(services: Services, listener: socket.socket, stack: AsyncExitStack) -> None:
    """Start listening and announce the endpoint: in the endpoint file, and as one JSON line on stdout."""
    file = services.paths.endpoint

    def announce(token: str) -> None:
        services.keys.redactor.add(token)
        write_endpoint(file, msgspec.structs.replace(endpoint, token=token))

    token = AccessToken(new_token(), announce)
    server = Server(services, token, listener)
    await server.start()
    stack.push_async_callback(server.close)
    endpoint = Endpoint(
        url=server.url,
        port=server.port,
        pid=os.getpid(),
        token=token.value,
        instance_id=services.instance.id,
        protocol_version=PROTOCOL_VERSION,
        process_start=process_start(os.getpid()),
    )
    announce(token.value)
    stack.callback(remove_endpoint, file, services.instance.id)
    ready = {"url": endpoint.url, "port": endpoint.port, "pid": endpoint.pid, "tokenFile": str(file)}
    sys.stdout.write(msgspec.json.encode(ready).decode() + "\n")
    sys.stdout.flush()
    _logger.info("listening on %s", endpoint.url)

"""Handlers of the engine itself: handshake, subscriptions, status, shutdown."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, TypeAlias

from errand.engine.core.errors import CannotSave, Conflict, InvalidParams, NotFound
from errand.engine.sandbox.detection import status_of
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ALL, ClientSession, Subscription
from errand.engine.server.snapshot import snapshot, with_running_tasks
from errand.engine.tools.shell.environment import client_environment
from errand.protocol.base import EmptyParams, EmptyResult
from errand.protocol.engine import (
    CHALLENGE,
    ENGINE_ROTATE_TOKEN,
    ENGINE_SHUTDOWN,
    ENGINE_STATUS,
    INITIALIZE,
    PROTOCOL_VERSION,
    SUBSCRIBE,
    UNSUBSCRIBE,
    ChallengeParams,
    ChallengeResult,
    EngineShutdownParams,
    EngineStatusResult,
    InitializeParams,
    InitializeResult,
    Snapshot,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
    is_offered,
)

_ROLLUP = Path("/proc/self/smaps_rollup")

# Reading and filtering more events than this is slower than making a snapshot.
_MAX_REPLAYED_EVENTS = 5_000
_MAX_ENVIRONMENT_BYTES = 256_000

SnapshotReason: TypeAlias = Literal["fresh", "out_of_range", "wrong_epoch"]


def memory_bytes() -> int:
    """Return the proportional set size if the system provides it, else the resident set size."""
    try:
        lines = _ROLLUP.read_text(encoding="ascii").splitlines()
    except OSError:
        import psutil  # only without /proc

        return psutil.Process().memory_info().rss
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


async def challenge(services: Services, session: ClientSession, params: ChallengeParams) -> ChallengeResult:
    nonce, proof = session.handshake.challenge(params.nonce)
    return ChallengeResult(nonce=nonce, proof=proof)


async def initialize(services: Services, session: ClientSession, params: InitializeParams) -> InitializeResult:
    if params.protocol_version != PROTOCOL_VERSION:
        raise InvalidParams(
            f"protocolVersion: this engine speaks {PROTOCOL_VERSION}, the client {params.protocol_version}. "
            "Update the older one, or end the engine with `errand engine --stop` and start again."
        )
    if session.client_id:
        raise Conflict("This connection is initialized already.")
    session.handshake.check(params.proof)
    if not params.client_id or len(params.client_id) > 200:
        raise InvalidParams("clientId: a text of 1 to 200 characters that no other client uses.")
    unwanted = sorted(name for name in params.keys if not is_offered(name))
    if unwanted:
        raise InvalidParams(
            f"keys: {unwanted[0][:100]!r} is neither a key nor the address of a model server or package index."
        )
    _check_environment(params.environment)
    session.environment, session.is_from_desktop = params.environment, params.from_desktop
    if session.is_from_desktop:
        services.tools.login.read(params.environment)
    # Tasks that an earlier engine left continue for this client.
    client_environment.set(await session.environment_of_commands(services.tools.login, wait=False))
    session.client_id, session.client_name = params.client_id, params.client_name[:200]
    services.keys.add_environment(params.keys)
    services.runner.resumption.resume_earlier_tasks()
    return InitializeResult(
        protocol_version=PROTOCOL_VERSION,
        instance_id=services.instance.id,
        engine_version=services.instance.version,
        epoch=services.log.epoch,
        head=services.log.head,
        health=services.database.health.conditions,
    )


def _check_environment(environment: dict[str, str]) -> None:
    if sum(len(name) + len(value) for name, value in environment.items()) > _MAX_ENVIRONMENT_BYTES:
        raise InvalidParams(f"environment: more than {_MAX_ENVIRONMENT_BYTES:,} characters.")
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise InvalidParams(f"environment: {name[:100]!r} is no variable that a system takes.")


async def subscribe(services: Services, session: ClientSession, params: SubscribeParams) -> SubscribeResult:
    if params.after is None:
        return await _with_snapshot(services, session, params, "fresh")
    if params.epoch != services.log.epoch:
        return await _with_snapshot(services, session, params, "wrong_epoch")
    return await _with_replay(services, session, params, params.after)


async def _with_replay(
    services: Services, session: ClientSession, params: SubscribeParams, after: int
) -> SubscribeResult:
    subscription = Subscription(params.scope, params.detail, since=after)
    # Events are held from here on, so read all events up to `upto` and none after it.
    session.follow(subscription)
    upto = services.log.committed
    oldest, _ = await services.database.events.bounds()
    if after > upto or after < oldest - 1:
        return await _with_snapshot(services, session, params, "out_of_range")
    conversation_id = None if params.scope == ALL else params.scope
    records = await services.database.events.after(after, _MAX_REPLAYED_EVENTS + 1, conversation_id)
    if len(records) > _MAX_REPLAYED_EVENTS:
        return await _with_snapshot(services, session, params, "out_of_range")
    replayed = session.replay(subscription, [record for record in records if record.sequence <= upto])
    if replayed is None:
        return await _with_snapshot(services, session, params, "out_of_range")
    session.go_live_after_reply(subscription)
    return SubscribeResult(epoch=services.log.epoch, head=upto, replayed=replayed)


async def _with_snapshot(
    services: Services, session: ClientSession, params: SubscribeParams, reason: SnapshotReason
) -> SubscribeResult:
    """The journal works in queue order: our turn comes when exactly the published events are committed.

    It is paused for the milliseconds of reading, so that the snapshot is consistent.
    """
    subscription = Subscription(params.scope, params.detail, since=services.log.head, agent_id=params.agent_id)
    session.follow(subscription)

    async def read() -> Snapshot:
        return await snapshot(services.database, subscription)

    try:
        state = await _read_snapshot(services, subscription, read)
    except NotFound:
        session.unfollow(params.scope)
        raise
    session.go_live_after_reply(subscription)
    return SubscribeResult(epoch=services.log.epoch, head=subscription.since, snapshot=state, reason=reason)


async def _read_snapshot(
    services: Services, subscription: Subscription, read: Callable[[], Awaitable[Snapshot]]
) -> Snapshot:
    try:
        return await services.database.journal.while_idle(read)
    except CannotSave:
        # Nothing is being committed; later commits follow as events.
        subscription.since = services.log.committed
        state = await snapshot(services.database, subscription)
        held = services.database.health.blocking_condition
        why = f"{held.text} {held.advice}" if held is not None else ""
        return with_running_tasks(state, services.runner.running.shown(), why)


async def unsubscribe(services: Services, session: ClientSession, params: UnsubscribeParams) -> EmptyResult:
    session.unfollow(params.scope)
    return EmptyResult()


async def status(services: Services, session: ClientSession, params: EmptyParams) -> EngineStatusResult:
    return EngineStatusResult(
        pid=os.getpid(),
        instance_id=services.instance.id,
        version=services.instance.version,
        started_at=services.instance.started_at,
        data_dir=str(services.paths.home),
        database=str(services.paths.database),
        memory_bytes=memory_bytes(),
        cpu_seconds=time.process_time(),
        running_tasks=sum(task.origin.parent_id is None for task in await services.database.tasks.active()),
        clients=services.log.client_count,
        loop_stall_p99_ms=services.instance.loop_latency.p99_ms(),
        loop_stall_max_ms=services.instance.loop_latency.max_ms(),
        sandbox=await asyncio.to_thread(status_of, services.settings.values.command_sandbox),
    )


async def shutdown(services: Services, session: ClientSession, params: EngineShutdownParams) -> EmptyResult:
    if params.hand_over:
        services.runner.running.hand_over()
    services.instance.shutdown()
    return EmptyResult()


async def rotate_token(services: Services, session: ClientSession, params: EmptyParams) -> EmptyResult:
    session.handshake.rotate()
    return EmptyResult()


HANDLERS = (
    Route(CHALLENGE, challenge),
    Route(INITIALIZE, initialize),
    Route(SUBSCRIBE, subscribe),
    Route(UNSUBSCRIBE, unsubscribe),
    Route(ENGINE_STATUS, status),
    Route(ENGINE_SHUTDOWN, shutdown),
    Route(ENGINE_ROTATE_TOKEN, rotate_token),
)

"""Failing background jobs: they are logged and restarted if required, and the engine keeps working."""

import asyncio
import logging
from pathlib import Path

import pytest

from errand.engine.background import Background
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import StorageError
from errand.engine.core.resources import Health
from errand.engine.models.deadline import Aborted, Deadline
from errand.engine.storage.database import Database
from errand.engine.storage.records import nodes
from errand.engine.storage.sql.errors import condition
from errand.engine.storage.sqlite.engines import sqlite_url
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import ModelServer
from tests.support.records import node


async def fail() -> None:
    raise ZeroDivisionError("a defect")


async def test_a_task_that_raises_ends_no_other_and_is_logged_by_its_name(caplog: pytest.LogCaptureFixture) -> None:
    background, go_on, notified = Background(), asyncio.Event(), asyncio.Event()

    async def other() -> None:
        await go_on.wait()

    other_task = background.start(other(), "the other")
    background.start(fail(), "the one that fails", notified.set)
    await notified.wait()
    go_on.set()
    await other_task
    await background.close()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "the one that fails failed")
    ]


async def test_kept_task_restarts_after_a_failure_until_the_close(caplog: pytest.LogCaptureFixture) -> None:
    background, third = Background(), asyncio.Event()
    begun: list[int] = []

    async def work() -> None:
        begun.append(len(begun))
        if len(begun) == 3:
            third.set()
        raise ZeroDivisionError

    with caplog.at_level(logging.CRITICAL):
        background.keep(work, "work", 0.001)
        await third.wait()
        await background.close()
        count = len(begun)
        await asyncio.sleep(0.01)
    assert len(begun) == count


async def test_close_cancels_running_tasks_and_waits_for_them() -> None:
    background, begun = Background(), asyncio.Event()
    ended: list[str] = []

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.append("in order")

    background.start(work(), "work")
    await begun.wait()
    await background.close()
    assert ended == ["in order"]


async def test_a_task_of_the_background_has_changes_of_its_own(tmp_path: Path) -> None:
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path)
    background = Background()
    errors: list[str] = []

    async def work() -> None:
        database.journal.put(nodes.save(node("orphan", conversation_id="none")))
        try:
            await database.journal.flush()
        except StorageError as error:
            errors.append(str(error))

    async def careless() -> None:
        database.journal.put(nodes.save(node("another orphan", conversation_id="none")))

    await background.start(work(), "work")
    await background.start(careless(), "careless")
    await database.journal.flush()
    assert len(errors) == 1
    await background.close()
    await database.close()


async def test_engine_works_if_a_daily_copy_is_a_broken_link(tmp_path: Path) -> None:
    copies = tmp_path / "data" / "copies"
    copies.mkdir(parents=True)
    (copies / "errand-daily-20260101T000000000000.db").symlink_to(tmp_path / "unplugged" / "copy.db")
    async with engine_parts(tmp_path, ModelServer(replies=[DONE])) as engine:
        task = await engine.start()
        assert (await engine.watcher.end(task.id)).activity.status == "completed"


def test_every_subscriber_of_a_stop_is_called_although_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> list[str]:
        stop, calls = CancelSignal(), list[str]()

        def bad() -> None:
            calls.append("bad")
            raise ZeroDivisionError

        for callback in (lambda: calls.append("first"), bad, lambda: calls.append("last")):
            stop.subscribe(callback)
        stop.set()
        assert stop.is_set
        return calls

    assert asyncio.run(play()) == ["first", "bad", "last"]
    assert [record.getMessage() for record in caplog.records] == ["a listener failed"]


async def test_stop_at_the_moment_a_limit_expires_reaches_every_subscriber() -> None:
    stop, calls = CancelSignal(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stop.set()  # the time limit has cancelled us, and has not ended yet

    with Deadline(stop) as watch:
        stop.subscribe(lambda: calls.append("later"))
        with pytest.raises(Aborted):
            async with watch.within(0.001):
                await work()
    assert calls == ["later"]


def test_failing_health_listener_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    health, calls = Health(), list[str]()

    def bad() -> None:
        raise ZeroDivisionError

    health.subscribe(bad)
    health.subscribe(lambda: calls.append("told"))
    health.report(condition("disk_full", "errand.db"))
    assert calls == ["told"]
    assert len(caplog.records) == 1

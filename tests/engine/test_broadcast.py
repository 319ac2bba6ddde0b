"""The event log: numbers, commits, fan-out, and how far back it reaches."""

from datetime import UTC, datetime
from pathlib import Path

from app.protocol.conversations import Conversation
from app.protocol.events import ConversationUpdate
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer


def an_event(number: int) -> ConversationUpdate:
    now = datetime.now(UTC)
    return ConversationUpdate(conversation=Conversation(id="c", title=f"{number}", created_at=now, updated_at=now))


async def test_events_reach_listeners_in_order_and_after_they_are_stored(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        log, database = engine.services.log, engine.services.database
        published = [an_event(number) for number in range(20)]
        for event in published:
            log.publish(event)
        assert engine.watcher.events == []
        await engine.watcher.until(lambda: len(engine.watcher.events) == 20)
        assert engine.watcher.events == published
        assert [record.event for record in await database.events.after(0)] == published


async def test_the_log_keeps_its_newest_twenty_thousand_events(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        for number in range(22_000):
            engine.services.log.publish(an_event(number))
        await engine.services.log.flush()
        oldest, newest = await engine.services.database.events.bounds()
        assert (oldest, newest) == (2_001, 22_000)

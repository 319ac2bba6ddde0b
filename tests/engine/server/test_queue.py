"""The queue of a task through the dispatcher: its methods work, and refusals have a reason."""

from tests.support.connections import error_of, raw_client
from tests.support.engine_server import EngineServer


async def test_change_of_a_read_message_is_a_conflict(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        changed = await client.ask("task/change_queued", 1, taskId="t", queuedId="q", text="other", place=0)
        removed = await client.ask("task/remove_queued", 2, taskId="t", queuedId="q")
    assert [error_of(answer)[1:] for answer in (changed, removed)] == [("conflict", "The agent has read it.")] * 2


async def test_unknown_kind_or_field_is_refused(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        kind = await client.ask("task/change_queued", 1, taskId="t", queuedId="q", kind="later")
        field = await client.ask("task/steer", 2, taskId="t", text="x", files=["/etc/passwd"])
    assert [error_of(answer)[1] for answer in (kind, field)] == ["invalid_params"] * 2

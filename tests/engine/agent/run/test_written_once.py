"""The words of a task are stored and sent once, however many steps follow."""

from pathlib import Path

from errand.engine.event_log import Frame
from errand.protocol.events import Delta, EventRecord
from tests.support.engine_parts import engine_parts
from tests.support.model_server import Call, ModelServer, Reply

_WORD = "marsupial "
# Much longer than a page of the database.
_PROMPT = _WORD * 4000


class _Frames:
    """Counts the word in what a client that follows everything is sent."""

    def __init__(self) -> None:
        self.count = 0

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        self.count += frame.data.count(_WORD.encode())

    def on_delta(self, delta: Delta, data: bytes) -> None:
        """Has no words of a person."""


async def test_a_long_prompt_is_stored_and_sent_once_however_many_steps_follow(tmp_path: Path) -> None:
    (stored_few, sent_few), (stored_many, sent_many) = [await _counts(tmp_path, steps) for steps in (2, 10)]
    assert sent_few == sent_many
    # Pages with a few of the words are written again, as neighbours of what is new, but not the prompt.
    assert stored_many - stored_few < _PROMPT.count(_WORD)


async def _counts(folder: Path, steps: int) -> tuple[int, int]:
    """Return how often the word was written to the database's log, and sent."""
    calls = [Call("shell", {"command": f"echo {number}"}) for number in range(steps)]
    replies = [*(Reply(calls=(call,)) for call in calls), Reply(text="Done.")]
    home = folder / str(steps)
    async with engine_parts(home, ModelServer(replies=replies)) as engine:
        frames = _Frames()
        detach = engine.services.log.attach(frames)
        task = await engine.start(_PROMPT)
        ended = await engine.watcher.end(task.id)
        await engine.services.log.flush()
        detach()
        (log,) = home.rglob("errand.db-wal")
        stored = log.read_bytes().count(_WORD.encode())
    assert ended.progress.step_count == steps + 1
    assert ended.request.prompt == _PROMPT
    return stored, frames.count

"""A task says which calls of its turn have begun, and how those end that a stop or a message prevents."""

from pathlib import Path

from tests.support.engine_parts import engine_parts
from tests.support.model_replies import results
from tests.support.model_server import Call, ModelServer, Reply

_SLOW = Call("shell", {"command": "sleep 30"}, id="slow")
_NEXT = Call("shell", {"command": "echo next"}, id="next")
_READ = Call("code", {"action": "list", "path": "."}, id="read")


async def test_a_call_that_waits_for_the_one_before_it_has_not_begun(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer([Reply(calls=(_READ, _SLOW, _NEXT))])) as engine:
        task = await engine.start()
        at_work = await engine.watcher.task(task.id, lambda now: now.activity.current_tool == "shell")
        assert [(call.call_id, call.ended_at is None) for call in at_work.activity.calls] == [
            ("read", False),
            ("slow", True),
        ]
        await engine.services.runner.stop(task.id, "me")
        ended = await engine.watcher.end(task.id)
        assert ended.activity.calls == ()
        read, slow, following = results(engine.watcher.nodes())
        assert (read.marks, slow.marks, following.marks) == ((), ("stopped",), ("stopped",))
        assert (slow.summary, following.summary) == ("stopped", "stopped before it began")
        assert slow.details is not None and following.details is None


async def test_a_tool_that_does_not_exist_is_reported_in_words_for_people(tmp_path: Path) -> None:
    async with engine_parts(
        tmp_path, ModelServer([Reply(calls=(Call("weather", {}),)), Reply(text="Sorry.")])
    ) as engine:
        task = await engine.start()
        await engine.watcher.end(task.id)
        (result,) = results(engine.watcher.nodes())
        assert result.summary == "there is no such tool"
        assert result.text.startswith("Tool weather not found")

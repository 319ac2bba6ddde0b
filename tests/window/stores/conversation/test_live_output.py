"""Output of a command while it runs: each piece once, in its row, and the states of the calls beside it."""

from pathlib import Path

from errand.client.conversation.rows import ReplyRow, StepRow, ToolCallRow
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until
from tests.support.store_engine import Mirror, store_engine


def calls(mirror: Mirror) -> list[ToolCallRow]:
    return [row for row in mirror.rows if isinstance(row, ToolCallRow)]


async def test_live_output_is_appended_and_the_next_call_is_not_running_before_it_runs(tmp_path: Path) -> None:
    command = "for i in 1 2 3; do echo line $i; while [ ! -e go$i ]; do sleep 0.02; done; done"
    shell, other = Call("shell", {"command": command}, id="call_1"), Call("shell", {"command": "true"}, id="call_2")
    seen: list[str] = []
    async with store_engine(tmp_path, ModelServer(turns=[Reply(calls=(shell, other)), DONE])) as engine:
        task = await engine.parts.start()
        _, mirror = await engine.open(task.conversation_id)
        for number in (1, 2, 3):
            await until(lambda number=number: f"line {number}" in next((row.output for row in calls(mirror)), ""))
            seen.append(calls(mirror)[0].output)
            assert [row.state for row in calls(mirror)] == ["running", "pending"]
            (Path(task.request.workspace) / f"go{number}").touch()
        await mirror.until("TaskEnd")
        assert seen == ["line 1", "line 1\nline 2", "line 1\nline 2\nline 3"]
        first, second = calls(mirror)
        assert first.result is not None and first.result.text.count("line") == 3
        assert second.result is not None and not second.result.is_error


async def test_steps_are_counted_without_holes_through_turns_without_words(tmp_path: Path) -> None:
    run = Call("shell", {"command": "true"})
    turns = [
        Reply(text="First.", calls=(run,)),
        Reply(calls=(Call("unknown_tool", {}),)),
        Reply(thinking="Hm.", calls=(run, run)),
        Reply(text="Last words.", calls=(Call("send_update", {"message": "soon"}),)),
        DONE,
    ]
    async with store_engine(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.parts.start()
        _, mirror = await engine.open(task.conversation_id)
        await mirror.until("TaskEnd")
        assert [row.number for row in mirror.rows if isinstance(row, StepRow)] == [2, 3, 4]
        assert [row.step for row in mirror.rows if isinstance(row, ReplyRow) and row.step] == [1, 4]

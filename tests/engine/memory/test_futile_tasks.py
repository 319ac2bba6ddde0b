"""Tasks that came to nothing: what their agents said ranks last."""

from pathlib import Path

import msgspec
import pytest

from errand.engine.memory.futile_tasks import all_undone, failed
from errand.protocol.changes import Change, ChangeKind
from errand.protocol.tasks.groups import Completion, TaskOutcome, TaskStopReason
from tests.engine.memory.test_memory import found
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.records import NOW, task

CLAIM = "The boiler is mended: I closed the crack in the pipe behind the wall."
DONE = "The boiler is mended: I closed the crack in the pipe near the stairs."


def a_change(change_id: str, kind: ChangeKind, *changes: str, task_id: str = "t1") -> Change:
    return Change(
        id=change_id,
        task_id=task_id,
        conversation_id="c1",
        step=1,
        kind=kind,
        path="/tmp/a",
        at=NOW,
        before="x",
        after="y",
        changes=changes,
    )


@pytest.mark.parametrize(
    ("changes", "is_undone"),
    [
        ([], False),
        ([a_change("a", "edit")], False),
        ([a_change("a", "edit"), a_change("u", "undo", "a")], True),
        ([a_change("a", "edit"), a_change("b", "command"), a_change("u", "undo", "a")], False),
        ([a_change("a", "edit"), a_change("b", "command"), a_change("u", "undo", "a", "b")], True),
        ([a_change("a", "edit"), a_change("u", "undo", "a"), a_change("r", "redo", "a")], False),
        ([a_change("a", "edit", task_id="t2"), a_change("u", "undo", "a", task_id="t2")], False),
    ],
)
def test_a_task_is_undone_if_each_of_its_changes_is(changes: list[Change], is_undone: bool) -> None:
    assert all_undone("t1", changes) == is_undone


@pytest.mark.parametrize(
    ("stop_reason", "completion", "is_failed"),
    [
        ("error", None, True),
        ("completed", "no_work", True),
        ("completed", "declared", False),
        ("completed", "answered", False),
        ("manual_stop", None, False),
    ],
)
def test_a_task_failed_if_it_did_not_do_its_work(
    stop_reason: TaskStopReason, completion: Completion | None, is_failed: bool
) -> None:
    outcome = TaskOutcome(stop_reason=stop_reason, completion=completion, ended_at=NOW)
    assert failed(msgspec.structs.replace(task(), outcome=outcome)) == is_failed


async def ended(engine: EngineParts, prompt: str) -> str | None:
    """Run a task to its end; return how it completed."""
    started = await engine.start(prompt, mode="task")
    return (await engine.watcher.end(started.id)).outcome.completion


async def test_a_claim_without_work_comes_after_work_also_in_a_new_index(tmp_path: Path) -> None:
    work = Reply(calls=(Call("shell", {"command": "true"}),))
    declared = Reply(calls=(Call("task_complete", {"summary": DONE}),))
    replies = [work, Reply(text=DONE), declared, Reply(text=CLAIM), Reply(text=CLAIM)]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        completions = [await ended(engine, "Mend the boiler"), await ended(engine, "Mend the boiler again")]
        await remembered(engine)
        texts = await found(engine, "Is the crack in the pipe of the boiler mended?")
        await engine.services.memory.rebuild("a person")
        await remembered(engine)
        texts_again = await found(engine, "Is the crack in the pipe of the boiler mended?")
    assert completions == ["declared", "no_work"]
    assert texts.index(DONE) < texts.index(CLAIM) == len(texts) - texts.count(CLAIM)
    assert texts_again == texts

"""The person's own words stay in requests, however often what is around them is summarised or left out."""

from pathlib import Path

import msgspec

from errand.engine.agent.history.conversion import message_of
from errand.engine.agent.history.person_messages import kept_messages
from errand.engine.core.messages import text_of
from errand.protocol.base import JsonValue
from errand.protocol.blocks import FileBlock, ImageBlock, TextBlock
from errand.protocol.conversations import Node
from tests.engine.agent.compaction.test_context_window import (
    SUMMARY,
    WINDOW,
    echo,
    is_summary,
    narrow,
    reader,
    size,
    summaries,
    until_done,
)
from tests.engine.agent.compaction.test_visible_history import a_node, said
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

ORDER = "Find the blue fox and NEVER touch file Z"


def _texts(request: ReceivedRequest) -> str:
    return str(request.messages[1:])


def _working(engine: EngineParts) -> list[ReceivedRequest]:
    return [request for request in engine.model.requests if not is_summary(request)]


def _text(node: Node) -> str:
    message = message_of(node)
    assert message is not None
    return text_of(message)


async def test_words_stay_over_several_summaries_and_later_tasks(tmp_path: Path) -> None:
    steps = iter([*map(echo, range(12)), Reply(text="Done."), *map(echo, range(12)), Reply(text="Done.")])
    async with engine_parts(tmp_path, reader(lambda _: next(steps), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        first = await engine.watcher.end((await engine.start(ORDER)).id)
        count = len(_working(engine))
        second = await engine.start("Look for a green one too", conversation_id=first.conversation_id)
        ended = await engine.watcher.end(second.id)
        assert ended.activity.status == "completed" and len(summaries(engine)) > 3
        assert all(ORDER in _texts(request) for request in _working(engine))
        assert all("Look for a green one too" in _texts(request) for request in _working(engine)[count:])
        assert max(map(size, _working(engine))) < WINDOW


async def test_words_of_messages_sent_meanwhile_stay_after_a_restart(tmp_path: Path) -> None:
    later = "And leave the red boat alone"
    async with engine_parts(tmp_path, reader(until_done(30), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        task = await engine.start(ORDER)
        await engine.watcher.task(task.id, lambda task: task.progress.step_count == 2)
        await engine.say(task.id, later)
        await engine.watcher.until(lambda: len(summaries(engine)) > 1)
        await engine.services.log.flush()
        port = crash(engine, tmp_path / "after")
        await engine.services.runner.stop(task.id, "the test")
        await engine.watcher.end(task.id)
    server = ModelServer(answer=lambda r: Reply(text=SUMMARY if is_summary(r) else "Done."), port=port)
    async with engine_parts(tmp_path / "after", server) as engine:
        await engine.services.runner.resume(task.id)
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
        assert all(ORDER in _texts(request) and later in _texts(request) for request in _working(engine))


async def test_words_stay_where_entries_are_left_out(tmp_path: Path) -> None:
    steps = iter([*map(echo, range(12)), Reply(text="Done."), *map(echo, range(12)), Reply(text="Done.")])
    async with engine_parts(tmp_path, reader(lambda _: next(steps), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        engine.services.settings.set("summarise_at", 0)
        first = await engine.watcher.end((await engine.start(ORDER)).id)
        second = await engine.start("Look for a green one too", conversation_id=first.conversation_id)
        assert (await engine.watcher.end(second.id)).activity.status == "completed"
        assert any("left out here" in _texts(request) for request in _working(engine))
        assert all(ORDER in _texts(request) for request in _working(engine))


async def test_long_message_keeps_its_head_and_tail_within_a_fifth_of_the_window(tmp_path: Path) -> None:
    pasted = f"{ORDER}. The log:\n" + "a line of the log\n" * 800 + "Answer in French."
    async with engine_parts(tmp_path, reader(until_done(12), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine, WINDOW + 3_000)
        ended = await engine.watcher.end((await engine.start(pasted)).id)
        assert ended.activity.status == "completed" and summaries(engine)
        last = _texts(_working(engine)[-1])
        assert ORDER in last and "Answer in French." in last and "characters left out" in last
        assert last.count("a line of the log") * len("a line of the log\n") < 0.2 * 4 * (WINDOW + 3_000)


async def test_words_stay_for_a_model_with_a_smaller_window(tmp_path: Path) -> None:
    steps = iter([*map(echo, range(20)), Reply(text="Done."), *map(echo, range(3)), Reply(text="Done.")])
    async with engine_parts(tmp_path, reader(lambda _: next(steps), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine, 20_000)
        first = await engine.watcher.end((await engine.start(f"{ORDER}. {'Details. ' * 1_000}")).id)
        count = len(_working(engine))
        narrow(engine, WINDOW)
        second = await engine.start("Go on", conversation_id=first.conversation_id)
        assert (await engine.watcher.end(second.id)).activity.status == "completed"
        assert all(ORDER in _texts(request) for request in _working(engine)[count:])
        assert max(map(size, _working(engine)[count:])) < WINDOW


async def test_words_of_the_order_to_a_sub_agent_stay_in_its_requests(tmp_path: Path) -> None:
    order: dict[str, JsonValue] = {"description": "Fox", "prompt": ORDER}
    steps = iter(
        [Reply(calls=(Call("task", order),)), *map(echo, range(12)), Reply(text="Found."), Reply(text="Done.")]
    )
    async with engine_parts(tmp_path, reader(lambda _: next(steps), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        ended = await engine.watcher.end((await engine.start("go")).id)
        assert ended.activity.status == "completed" and summaries(engine)
        assert all(ORDER in _texts(request) for request in _working(engine)[1:])


async def test_summaries_are_no_turns(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, reader(until_done(11), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        ended = await engine.watcher.end((await engine.start(ORDER, max_turns=12)).id)
        assert (ended.activity.status, ended.progress.step_count) == ("completed", 12) and summaries(engine)
        usages = await engine.services.database.turns.usages(ended.id)
        assert len(usages) == len(engine.model.requests)
        assert ended.progress.usage.input_tokens == sum(usage.input_tokens for usage in usages)


async def test_limit_of_turns_holds_beside_summaries(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, reader(until_done(40), lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        ended = await engine.watcher.end((await engine.start(ORDER, max_turns=12, attended=False)).id)
        assert (ended.outcome.stop_reason, ended.progress.step_count) == ("iteration_limit", 12) and summaries(engine)


def test_first_and_newest_messages_stay_before_those_between_them() -> None:
    nodes = [said(f"u{number}", f"{number:2} " + "x" * 497) for number in range(20)]
    kept_nodes = kept_messages(nodes, 2_000)
    assert list(kept_nodes) == ["u0", "u17", "u18", "u19"]
    assert [len(_text(node)) for node in kept_nodes.values()] == [500, 500, 500, 500]
    assert list(kept_messages(nodes, 10)) == ["u0", "u19"]
    assert kept_messages([], 10) == {}


def test_long_message_has_the_room_that_the_others_leave() -> None:
    long = said("u0", "x" * 9_000)
    assert 1_900 < len(_text(kept_messages([long], 2_000)["u0"])) < 2_100
    kept_nodes = kept_messages([long, said("u1", "y" * 100)], 2_000)
    assert 1_800 < len(_text(kept_nodes["u0"])) < 2_000 and _text(kept_nodes["u1"]) == "y" * 100


def test_long_messages_lose_their_middle_and_keep_within_the_room() -> None:
    nodes = [said("u0", "first " + "x" * 9_000), said("u1", "second " + "y" * 9_000 + " end")]
    kept_nodes = kept_messages(nodes, 2_000)
    assert sum(len(_text(node)) for node in kept_nodes.values()) < 2_200
    assert _text(kept_nodes["u0"]).startswith("first x") and _text(kept_nodes["u1"]).endswith("y end")
    assert all("characters left out" in _text(node) for node in kept_nodes.values())


def test_attachments_stay_by_name_and_messages_of_the_engine_do_not_stay() -> None:
    blocks = (TextBlock(text="Look"), ImageBlock(media_type="image/png", data="AAAA" * 9_000, name="fox.png"))
    picture = a_node("u1", "user", *blocks, FileBlock(path="/tmp/notes.txt", name="notes.txt", size=3))
    nudge = msgspec.structs.replace(said("n", "Go on."), author="engine")
    (node,) = kept_messages([picture, nudge], 1_000).values()
    assert node.id == "u1"
    assert all(name in _text(node) for name in ("Look", "fox.png", "/tmp/notes.txt"))

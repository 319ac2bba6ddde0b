"""Long conversations and lists, page by page, and after a reconnect."""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from errand.client.conversation.branch import LoadedBranch
from errand.client.conversation.rows import AskRow, ReplyRow, Speaker, SpeakerRow, TaskEndRow, ToolCallRow, UserRow
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.blocks import NoticeBlock, TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.events import AgentUpdate, AskUpdate, ConversationUpdate, TaskMessage, TaskUpdate, TextDelta
from errand.window.stores.stores import Stores
from tests.support.connections import cable_to
from tests.support.engine_server import EngineServer, engine_server
from tests.support.processes import until
from tests.support.records import NOW, agent, conversation, task
from tests.support.store_engine import Mirror, stores_on


def turn(number: int, parent: str | None) -> list[Node]:
    """A task's message, a call with the id that every turn uses, and its result."""
    user = Node(
        id=f"u{number}", conversation_id="c1", parent_id=parent, role="user", author="user",
        blocks=(TextBlock(text=f"Request {number}."),), status="complete", created_at=at(number, 0),
        task_id=f"t{number}",
    )  # fmt: skip
    call = ToolCallBlock(call_id="call_0", tool="shell", arguments={"command": f"echo {number}"})
    result = ToolResultBlock(call_id="call_0", tool="shell", text=f"{number}\n", is_error=False)
    reply = msgspec.structs.replace(
        user, id=f"r{number}", parent_id=user.id, role="assistant", blocks=(call,), created_at=at(number, 1)
    )
    answer = msgspec.structs.replace(
        reply, id=f"a{number}", parent_id=reply.id, role="tool_result", blocks=(result,), created_at=at(number, 3)
    )
    return [user, reply, answer]


def at(number: int, second: int) -> datetime:
    return NOW + timedelta(minutes=number, seconds=second)


async def store_turns(engine: EngineServer, first: int, count: int) -> None:
    """Publish this many turns, each a separate task with an answered approval."""
    if first == 0:
        engine.log.publish(ConversationUpdate(conversation=conversation()))
        engine.log.publish(AgentUpdate(agent=agent()))
    for number in range(first, first + count):
        engine.log.publish(TaskUpdate(task=task(f"t{number}", started_at=at(number, 0))))
        for node in turn(number, f"a{number - 1}" if number else None):
            engine.log.publish(TaskMessage(node=node))
        approval = Ask(
            id=f"k{number}", task_id=f"t{number}", conversation_id="c1", kind="approval", text="Run it.",
            created_at=at(number, 2), status="answered", allowed=True, answered_by="me",
        )  # fmt: skip
        engine.log.publish(AskUpdate(ask=approval))
        engine.log.publish(AgentUpdate(agent=agent(version=number + 1, head_id=f"a{number}")))
        ended = task(f"t{number}", started_at=at(number, 0), ended_at=at(number, 4))
        engine.log.publish(TaskUpdate(task=ended))
    await engine.log.flush()


def requests_of(mirror: Mirror) -> list[str]:
    return [row.text for row in mirror.rows if isinstance(row, UserRow)]


async def opened(stores: Stores) -> Mirror:
    store = stores.open("c1")
    mirror = Mirror(store)
    await until(lambda: store.is_loaded)
    return mirror


async def test_older_pages_are_prepended_and_every_call_keeps_its_result(tmp_path: Path) -> None:
    async with engine_server(tmp_path / "home") as engine, stores_on(engine.endpoint) as stores:
        await store_turns(engine, 0, 60)
        mirror = await opened(stores)
        assert mirror.store.has_older
        assert mirror.changes == [("reset", 0, len(mirror.rows))]
        while mirror.store.has_older:
            count = len(mirror.rows)
            mirror.store.load_older()
            mirror.store.load_older()
            await until(lambda: len(mirror.rows) > count)  # noqa: B023 -- awaited at once
        assert requests_of(mirror) == [f"Request {number}." for number in range(60)]
        assert mirror.kinds == ["User", "ToolCall", "Ask", "TaskEnd"] * 60
        results = [row.result.text for row in mirror.rows if isinstance(row, ToolCallRow) and row.result is not None]
        assert results == [f"{number}\n" for number in range(60)]
        asks = [row.ask.id for row in mirror.rows if isinstance(row, AskRow)]
        assert asks == [f"k{number}" for number in range(60)]


def replies_of_one_agent() -> list[Node]:
    """A task with two calls, a notice and a last reply, then a request and a reply of another agent."""
    message, call, result = turn(0, None)
    call = msgspec.structs.replace(call, author="a1")
    notice = msgspec.structs.replace(
        message, id="n0", parent_id=result.id, author="engine", blocks=(NoticeBlock(kind="info", text="Go on."),)
    )
    more = ToolCallBlock(call_id="call_1", tool="shell", arguments={"command": "ls"})
    printed = ToolResultBlock(call_id="call_1", tool="shell", text="a\n", is_error=False)
    again = msgspec.structs.replace(call, id="r0b", parent_id=notice.id, blocks=(more,))
    second = msgspec.structs.replace(result, id="a0b", parent_id=again.id, blocks=(printed,))
    last = msgspec.structs.replace(call, id="r0c", parent_id=second.id, blocks=(TextBlock(text="Done."),))
    request, other, _ = turn(1, last.id)
    return [message, call, result, notice, again, second, last, request, msgspec.structs.replace(other, author="a2")]


@pytest.mark.parametrize("cut", range(1, 9))
def test_speaker_names_do_not_depend_on_where_a_page_begins(cut: int) -> None:
    nodes = replies_of_one_agent()
    speakers = {"a1": Speaker("Anna", ""), "a2": Speaker("Ben", "")}
    full_branch = LoadedBranch()
    full_branch.set_speakers(speakers)
    full_branch.show(nodes, False, ())
    branch = LoadedBranch()
    branch.set_speakers(speakers)
    branch.show(nodes[cut:], True, ())
    rows = {node_id: branch.rows(node_id) for node_id in branch.ids}
    for node_id in branch.prepend(nodes[:cut], False, ()):
        rows[node_id] = branch.rows(node_id)
    assert rows == {node.id: full_branch.rows(node.id) for node in nodes}
    assert [each for each in full_branch.ids if any(isinstance(row, SpeakerRow) for row in rows[each])] == ["r0", "r1"]


def test_an_older_page_keeps_the_text_that_has_streamed_so_far() -> None:
    message, reply, _ = turn(0, None)
    streaming = msgspec.structs.replace(reply, blocks=(), status="streaming")
    branch = LoadedBranch()
    branch.show([streaming], True, ())

    def stream(text: str, offset: int) -> None:
        branch.drafts["r0"].add(
            TextDelta(conversation_id="c1", task_id="t0", node_id="r0", block=0, kind="text", offset=offset, text=text)
        )

    stream("Some ", 0)
    branch.prepend([message], False, ())
    stream("words", 5)
    assert [row.markdown for row in branch.rows("r0") if isinstance(row, ReplyRow)] == ["Some words"]


async def test_seeking_a_node_far_above_loads_all_pages_up_to_it(tmp_path: Path) -> None:
    async with engine_server(tmp_path / "home") as engine, stores_on(engine.endpoint) as stores:
        await store_turns(engine, 0, 60)
        store = stores.open("c1")
        reached: list[int] = []
        missed: list[bool] = []
        store.reached.connect(reached.append)
        store.missed.connect(lambda: missed.append(True))
        store.seeker.seek("u3")
        assert store.seeker.is_seeking
        await until(lambda: bool(reached))
        row = store.row(reached[0])
        assert isinstance(row, UserRow)
        assert (row.text, store.rows.section_of(reached[0]), store.seeker.is_seeking) == (
            "Request 3.",
            ("u3", 0),
            False,
        )
        store.seeker.seek("a7")  # a result is shown with its call
        store.seeker.seek("r7", 1)
        store.seeker.seek("gone")
        assert [store.rows.section_of(index) for index in reached[1:]] == [("r7", 0), ("r7", 1)]
        await until(lambda: bool(missed))


async def test_the_end_of_the_oldest_of_many_tasks_is_shown(tmp_path: Path) -> None:
    async with engine_server(tmp_path / "home") as engine, stores_on(engine.endpoint) as stores:
        await store_turns(engine, 0, 560)
        store = stores.open("c1")
        reached: list[int] = []
        store.reached.connect(reached.append)
        store.seeker.seek("u0")
        await until(lambda: bool(reached))
        assert [type(store.row(index)) for index in range(4)] == [UserRow, ToolCallRow, AskRow, TaskEndRow]


async def test_events_missed_while_disconnected_are_added_and_other_rows_stay(tmp_path: Path) -> None:
    async with (
        engine_server(tmp_path / "home") as engine,
        cable_to(engine.endpoint()) as cable,
        stores_on(cable.find) as stores,
    ):
        states: list[str] = []
        stores.session.state_changed.connect(lambda: states.append(stores.session.state))
        await store_turns(engine, 0, 3)
        mirror = await opened(stores)
        cable.pull()
        await until(lambda: stores.session.state == "lost")
        assert stores.session.reason
        await store_turns(engine, 3, 2)
        cable.pulled = False
        await until(lambda: len(mirror.rows) == 20 and states[-1:] == ["ready"])
        assert requests_of(mirror) == [f"Request {number}." for number in range(5)]
        assert all(how == "changed" or first >= 12 for how, first, _ in mirror.changes[1:])


async def test_an_engine_with_another_event_log_causes_a_reload(tmp_path: Path) -> None:
    async with cable_to(None) as cable:
        async with engine_server(tmp_path / "one") as engine:
            await store_turns(engine, 0, 4)
            cable.target = engine.endpoint()
            context = stores_on(cable.find)
            stores = await context.__aenter__()
            mirror = await opened(stores)
            assert len(mirror.rows) == 16
        async with engine_server(tmp_path / "two") as engine:
            await store_turns(engine, 0, 2)
            cable.target = engine.endpoint()
            await until(lambda: len(mirror.rows) == 8)
            assert requests_of(mirror) == ["Request 0.", "Request 1."]
            assert [how for how, _, _ in mirror.changes] == ["reset", "removed", "changed"]
            assert stores.session.state == "ready"
            await context.__aexit__(None, None, None)


async def test_a_missing_conversation_is_reported(tmp_path: Path) -> None:
    async with engine_server(tmp_path / "home") as engine, stores_on(engine.endpoint) as stores:
        store = stores.open("gone")
        failures: list[str] = []
        store.failed.connect(failures.append)
        await until(lambda: bool(failures))
        assert failures == ["There is no conversation 'gone'."]
        assert not store.is_loaded
        stores.close(store)


async def test_without_an_engine_the_session_gives_the_reason_and_can_retry(tmp_path: Path) -> None:
    async with cable_to(None) as cable, stores_on(cable.find) as stores:
        assert (stores.session.state, stores.session.reason) == ("lost", "No engine runs.")
        failures: list[str] = []
        stores.asks.failed.connect(failures.append)
        stores.asks.answer(AskAnswerParams(ask_id="k1", text="yes"))
        await until(lambda: bool(failures))
        assert "No engine runs." in failures[0]
        async with engine_server(tmp_path / "home") as engine:
            cable.target = engine.endpoint()
            stores.session.retry()
            await until(lambda: stores.session.state == "ready")
            await stores.session.close()

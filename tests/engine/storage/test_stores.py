"""The stores: saved records are read back unchanged, in the documented order and pages."""

from datetime import timedelta

import msgspec
import pytest
from sqlalchemy import insert

from errand.engine.core.errors import InvalidParams, StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, asks, commands, conversations, tasks, turns
from errand.engine.storage.records.turns import UnfinishedTurn
from errand.engine.storage.sql.statements import Write, is_one_of
from errand.engine.storage.sql.tables import prompts
from errand.engine.storage.sql.tables import tasks as tasks_table
from errand.protocol.agents import Personality
from errand.protocol.context import PromptPart
from errand.protocol.conversations import Conversation
from errand.protocol.tasks.task import AgentPlan, PlannedCall, Task, replace_fields
from errand.protocol.usage import Usage
from tests.support.records import NOW, agent, ask, conversation, task


async def put(database: Database, *writes: Write) -> None:
    for write in writes:
        database.journal.put(write)
    await database.journal.flush()


async def test_pages_of_conversations_have_no_gaps_or_duplicates(database: Database) -> None:
    # Many with the same time: the id decides the order.
    saved = [conversation(f"d{number:02}", at=NOW + timedelta(seconds=number // 4)) for number in range(25)]
    await put(database, *(conversations.save(record) for record in saved))
    seen: list[Conversation] = []
    cursor = None
    while True:
        page = await database.conversations.page(limit=7, cursor=cursor)
        seen += page.conversations
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [*reversed(saved[4:]), *reversed(saved[:4]), conversation("c1")]


async def test_full_last_page_has_no_next_page(database: Database) -> None:
    await put(database, conversations.save(conversation("c2")))
    assert (await database.conversations.page(limit=2)).next_cursor is None


async def test_conversations_are_read_by_lists_of_any_length_with_few_statements(database: Database) -> None:
    saved = [conversation(f"d{number:02}") for number in range(20)]
    await put(database, *(conversations.save(record) for record in saved))
    for count in range(21):
        named = await database.conversations.named([record.id for record in saved[:count]])
        assert sorted(record.id for record in named) == [record.id for record in saved[:count]]
    lists = (is_one_of(tasks_table.c.id, ["a"] * count) for count in range(300))
    statements = {str(query.compile(compile_kwargs={"render_postcompile": True})) for query in lists}
    assert len(statements) == 11  # one for none, and 1, 2, 4 … 512


async def test_archived_conversations_have_a_list_of_their_own(database: Database) -> None:
    await put(database, conversations.save(conversation("c2", archived=True)))
    assert (await database.conversations.page()).conversations == (conversation("c1"),)
    assert (await database.conversations.page(archived=True)).conversations == (conversation("c2", archived=True),)


async def test_pinned_conversations_and_the_others_have_pages_of_their_own(database: Database) -> None:
    pins = [msgspec.structs.replace(conversation(f"p{number}"), pinned=True) for number in range(3)]
    archived = msgspec.structs.replace(conversation("a1", archived=True), pinned=True)
    await put(database, *(conversations.save(record) for record in (*pins, archived)))
    first = await database.conversations.page(limit=2, pinned=True)
    assert first.conversations == (pins[2], pins[1])
    assert (await database.conversations.page(cursor=first.next_cursor, pinned=True)).conversations == (pins[0],)
    assert (await database.conversations.page(pinned=False)).conversations == (conversation("c1"),)
    assert len((await database.conversations.page()).conversations) == 4


async def test_conversations_are_found_by_parts_of_id_and_title_and_by_folder(database: Database) -> None:
    folders = ("/work/a%b", "/work/A%b", "/work/a_b", '/work/"ä"')
    titled = [
        msgspec.structs.replace(conversation(f"conv_{number}"), title=f"The {number}. Parser_x", workspace=folder)
        for number, folder in enumerate(folders)
    ]
    hidden = msgspec.structs.replace(conversation("conv_9", archived=True), title="Other")
    await put(database, *(conversations.save(record) for record in (*titled, hidden)))
    page = database.conversations.page
    assert (await page(id_part="nv_2")).conversations == (titled[2],)
    assert (await page(id_part="v%2")).conversations == ()
    assert (await page(title_part="2. pARSER_")).conversations == (titled[2],)
    assert [(await page(workspace=record.workspace)).conversations for record in titled] == [
        (record,) for record in titled
    ]
    assert (await page(archived=None, id_part="9")).conversations == (hidden,)


async def test_tasks_are_found_by_a_part_of_their_id(database: Database) -> None:
    await put(database, *tasks.add(task("task_1f")), *tasks.add(task("task_1f_2")))
    assert [record.id for record in (await database.tasks.page(id_part="1f_")).tasks] == ["task_1f_2"]


@pytest.mark.parametrize("cursor", ["", "x", "x ", "2026"])
async def test_invalid_cursor_is_refused(database: Database, cursor: str) -> None:
    with pytest.raises(InvalidParams, match="cursor"):
        await database.conversations.page(cursor=cursor)
    with pytest.raises(InvalidParams, match="cursor"):
        await database.tasks.page(cursor=cursor)


async def test_a_changed_conversation_replaces_the_old_one(database: Database) -> None:
    renamed = msgspec.structs.replace(conversation("c1"), title="New", pinned=True)
    await put(database, conversations.save(renamed))
    assert (await database.conversations.page()).conversations == (renamed,)


async def test_an_agents_head_never_goes_back_to_an_older_version(database: Database) -> None:
    await put(
        database, agents.save_agent(agent(version=2, head_id="n2")), agents.save_agent(agent(version=1, head_id="n1"))
    )
    await put(database, agents.save_agent(agent(version=2, head_id="other")))
    assert await database.agents.get("a1") == agent(version=2, head_id="n2")


async def test_agents_come_oldest_first(database: Database) -> None:
    old, new = agent("a9"), agent("a1", at=NOW + timedelta(seconds=1))
    await put(database, agents.save_agent(new), agents.save_agent(old))
    assert await database.agents.list("c1") == await database.agents.list() == (old, new)
    assert await database.agents.list(limit=1) == (new,)
    assert await database.agents.list("c2") == ()


async def test_personalities_are_saved_and_listed_by_name(database: Database) -> None:
    other = Personality(id="p2", name="A critic", system_prompt="Be strict.", tools=("code",))
    await put(database, agents.save_personality(other))
    assert await database.personalities.all() == (other, agents.ASSISTANT)
    assert await database.personalities.get("p2") == other


async def test_tasks_come_newest_first_and_the_ended_ones_are_not_active(database: Database) -> None:
    ended = task("t2", started_at=NOW + timedelta(seconds=1), ended_at=NOW + timedelta(seconds=5))
    newest = task("t3", started_at=NOW + timedelta(seconds=2))
    await put(database, *tasks.add(newest), *tasks.add(ended))
    assert (await database.tasks.page()).tasks == (newest, ended, task("t1"))
    assert (await database.tasks.page(limit=1, conversation_id="c1")).tasks == (newest,)
    assert (await database.tasks.page(conversation_id="none")).tasks == ()
    assert await database.tasks.active() == (newest, task("t1"))


async def test_pages_of_tasks_have_no_gaps_or_duplicates(database: Database) -> None:
    # Two with each time: the id decides the order.
    saved = [task(f"t{number}", started_at=NOW + timedelta(seconds=number // 2)) for number in range(10, 19)]
    ended = replace_fields(saved[3], ended_at=NOW)
    await put(database, *(write for record in saved for write in tasks.add(record)), *tasks.add(ended))
    for active in (False, True):
        seen: list[Task] = []
        cursor = None
        while True:
            page = await database.tasks.page(2, "c1", active=active, cursor=cursor)
            seen += page.tasks
            cursor = page.next_cursor
            if cursor is None:
                break
        expected = [
            ended if record.id == ended.id else record
            for record in reversed(saved)
            if not active or record.id != ended.id
        ]
        assert seen == [*expected, task("t1")]


async def test_a_task_is_replaced_with_every_change(database: Database) -> None:
    await put(database, *(tasks.save(task("t1", step_count=count)) for count in range(10)))
    assert await database.tasks.get("t1") == task("t1", step_count=9)
    assert await database.tasks.get("none") is None


async def test_turn_is_started_until_its_outcome_is_known(database: Database) -> None:
    await put(database, turns.started("c1", "t1", 1, "m", NOW), turns.started("c1", "t1", 2, "m", NOW))
    await put(database, turns.finished("t1", 1, "complete", Usage(input_tokens=3, cost_usd=0.5), NOW))
    assert await database.turns.started("t1") == (UnfinishedTurn(2, "m"),)
    await put(database, turns.started("c1", "t1", 1, "other", NOW))
    assert await database.turns.started("t1") == (UnfinishedTurn(1, "other"), UnfinishedTurn(2, "m"))


async def test_plans_come_in_the_order_of_turns_and_leave_the_turn_as_it_is(database: Database) -> None:
    def plan(turn: int) -> AgentPlan:
        call = PlannedCall(tool_name="shell", parameters={"command": "ls"})
        return AgentPlan(
            task_id="t1", turn=turn, reasoning="Look", tool_calls=(call,), question=None, is_complete=False
        )

    await put(database, turns.save_plan(plan(2)), turns.started("c1", "t1", 1, "m", NOW), turns.save_plan(plan(1)))
    assert await database.turns.plans("t1") == (plan(1), plan(2))
    assert await database.turns.started("t1") == (UnfinishedTurn(1, "m"),)


async def test_the_first_answer_to_an_ask_stays(database: Database) -> None:
    first = msgspec.structs.replace(ask(), status="answered", answer="blue", answered_by="window")
    await put(database, asks.save(ask()), asks.save(first))
    await put(database, asks.save(msgspec.structs.replace(first, answer="red")))
    assert await database.asks.get("k1") == first
    assert await database.asks.waiting() == ()


async def test_waiting_asks_come_oldest_first_and_all_others_newest_first(database: Database) -> None:
    later = ask("k0", at=NOW + timedelta(seconds=1))
    await put(database, *tasks.add(task("t2")), asks.save(later), asks.save(ask("k1")))
    assert await database.asks.waiting() == (ask("k1"), later)
    assert await database.asks.waiting(("t2",)) == ()
    assert await database.asks.page(task_ids=("t1",)) == (later, ask("k1"))
    assert await database.asks.page(limit=1) == (later,)
    other = msgspec.structs.replace(ask("k3"), task_id="t2")
    await put(database, asks.save(other))
    assert await database.asks.page(task_ids=("t1", "t2", "none")) == (later, other, ask("k1"))
    assert await database.asks.page(task_ids=()) == ()


async def test_a_command_keeps_its_first_result_until_it_is_pruned(database: Database) -> None:
    await put(database, commands.save("window", "7", "task/start", '{"a":1}', NOW))
    await put(database, commands.save("window", "7", "task/start", '{"a":2}', NOW))
    assert await database.commands.answered("window", "7") == commands.AnsweredCommand("task/start", '{"a":1}')
    assert await database.commands.answered("cli", "7") is None
    await put(database, commands.prune(NOW + timedelta(seconds=1)))
    assert await database.commands.answered("window", "7") is None


async def test_a_row_that_another_version_wrote_is_a_storage_error(database: Database) -> None:
    await put(database, Write(tasks_table.update().values(body='{"id": 5}'), {}))
    with pytest.raises(StorageError, match="A stored Task cannot be read"):
        await database.tasks.get("t1")


async def test_value_that_no_row_can_have_is_invalid_input(database: Database) -> None:
    with pytest.raises(InvalidParams):
        await database.events.after(2**70)


async def test_a_prompt_of_an_older_version_is_read(database: Database) -> None:
    parts = (PromptPart(name="role", text="You are …"), PromptPart(name="plan", text="## Plan mode"))
    older = Write(insert(prompts), {"task_id": "t1", "parts": msgspec.json.encode(parts).decode()})
    await put(database, *tasks.add(task()), older)
    assert await database.prompts.of_task("t1") == parts

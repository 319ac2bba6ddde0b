"""Branches in an open conversation, on a real engine: edit, retry, fork, switch, and their rows."""

from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from errand.client.conversation.rows import BranchEndRow, BranchSwitchRow, EditMessageRow, ReplyRow, TaskEndRow, UserRow
from errand.protocol.tasks.task import Task
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.task_options import TaskOptions
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until
from tests.support.store_engine import Mirror, StoreEngine, store_engine

ONE, TWO, THREE = Reply(text="One."), Reply(text="Two."), Reply(text="Three.")


class Talk:
    """An open conversation with one ended task."""

    def __init__(self, engine: StoreEngine, store: ConversationStore, mirror: Mirror) -> None:
        self.engine = engine
        self.store = store
        self.mirror = mirror
        self.trouble: list[str] = []
        store.failed.connect(self.trouble.append)

    @property
    def said(self) -> list[str]:
        """The texts of people and the agent, and the branch switches between."""
        texts: list[str] = []
        for row in self.mirror.rows:
            match row:
                case UserRow(text=text) | ReplyRow(markdown=text):
                    texts.append(text)
                case BranchSwitchRow(number=number, count=count):
                    texts.append(f"{number}/{count}")
                case EditMessageRow():
                    texts.append("edit")
                case BranchEndRow(child_ids=children):
                    texts.append(f"{len(children)} below")
                case _:
                    pass
        return texts

    @property
    def task(self) -> Task:
        assert self.store.task is not None
        return self.store.task

    @property
    def message(self) -> str:
        """The node of the first message."""
        return next(row.node.id for row in self.mirror.rows if isinstance(row, UserRow))

    @property
    def end(self) -> TaskEndRow:
        end = self.mirror.rows[-1]
        assert isinstance(end, TaskEndRow)
        return end

    @property
    def fork(self) -> BranchSwitchRow:
        return next(row for row in self.mirror.rows if isinstance(row, BranchSwitchRow))

    async def until_said(self, *texts: str) -> None:
        try:
            await until(lambda: self.said == [*texts] and self.task.outcome.ended_at is not None)
        except TimeoutError:
            assert self.said == [*texts], str(self.trouble)
            raise


async def begin(stack: AsyncExitStack, home: Path, *replies: Reply) -> Talk:
    engine = await stack.enter_async_context(store_engine(home, ModelServer(replies=list(replies))))
    engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
    task = await engine.parts.start("write a poem", approve="all")
    store, mirror = await engine.open(task.conversation_id)
    store.commands.options = TaskOptions("openai_compatible/test-model")
    await mirror.until("TaskEnd")
    return Talk(engine, store, mirror)


async def test_a_resent_message_is_another_version_and_both_can_be_shown(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        talk = await begin(stack, tmp_path, ONE, TWO)
        old = talk.message
        talk.store.branches.edit(old)
        assert talk.said == ["edit", "One."]
        talk.store.branches.resend(talk.store.branch.node(old), "write an ode")
        await talk.until_said("write an ode", "2/2", "Two.")
        assert talk.fork.previous_id == old and talk.fork.next_id is None
        assert talk.task.request.prompt == "write an ode"
        talk.store.branches.switch(old)
        await talk.until_said("write a poem", "1/2", "One.")
        assert talk.task.request.prompt == "write a poem", "the last task of this branch"
        assert talk.fork.next_id is not None
        talk.store.branches.switch(talk.fork.next_id)
        await talk.until_said("write an ode", "2/2", "Two.")
        _, again = await talk.engine.open(talk.task.conversation_id)
        assert again.rows == talk.mirror.rows
        assert talk.trouble == []


async def test_a_retried_reply_is_another_version(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        talk = await begin(stack, tmp_path, ONE, TWO, THREE)
        assert talk.end.retry_id is not None
        talk.store.branches.retry(talk.end.retry_id)
        await talk.until_said("write a poem", "2/2", "Two.")
        kinds = ["User", "BranchSwitch", "Reply", "TaskEnd"]
        assert talk.mirror.kinds == kinds, "the end of the first try is not on this branch"
        assert not talk.fork.is_user
        assert talk.end.retry_id is not None
        talk.store.branches.retry(talk.end.retry_id)
        await talk.until_said("write a poem", "3/3", "Three.")
        assert talk.fork.previous_id is not None
        talk.store.branches.switch(talk.fork.previous_id)
        await talk.until_said("write a poem", "2/3", "Two.")


async def test_a_fork_shows_its_continuations_and_the_next_message_starts_a_branch(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        talk = await begin(stack, tmp_path, ONE, TWO, THREE)
        assert talk.end.fork_id is None, "it goes on from here anyway"
        talk.store.commands.send("and a second one")
        await talk.until_said("write a poem", "One.", "and a second one", "Two.")
        here = next(row.fork_id for row in talk.mirror.rows if isinstance(row, TaskEndRow))
        assert here is not None
        talk.store.branches.fork(here)
        await talk.until_said("write a poem", "One.", "1 below")
        talk.store.commands.send("rather an ode")
        await talk.until_said("write a poem", "One.", "rather an ode", "2/2", "Three.")
        talk.store.branches.fork(here)
        await talk.until_said("write a poem", "One.", "2 below")
        below = talk.mirror.rows[-1]
        assert isinstance(below, BranchEndRow)
        talk.store.branches.switch(below.child_ids[0])
        await talk.until_said("write a poem", "One.", "and a second one", "1/2", "Two.")


async def test_another_window_follows_the_head_and_shows_the_fork(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        talk = await begin(stack, tmp_path, ONE, TWO)
        other_store, other = await talk.engine.open(talk.task.conversation_id)
        talk.store.branches.resend(talk.store.branch.node(talk.message), "write an ode")
        await talk.until_said("write an ode", "2/2", "Two.")
        await until(lambda: other.rows == talk.mirror.rows)
        assert talk.fork.previous_id is not None
        other_store.branches.switch(talk.fork.previous_id)
        await talk.until_said("write a poem", "1/2", "One.")
        await until(lambda: other.rows == talk.mirror.rows)


async def test_during_a_task_no_branch_is_switched_and_the_reason_is_reported(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        slow = Reply(text="A long reply that takes its time.", piece_length=4, stall_after=2)
        talk = await begin(stack, tmp_path, ONE, TWO, slow)
        talk.store.branches.resend(talk.store.branch.node(talk.message), "write an ode")
        await talk.until_said("write an ode", "2/2", "Two.")
        assert not talk.fork.locked and talk.fork.previous_id is not None
        locks: list[bool] = []
        talk.store.branches.lock_changed.connect(lambda: locks.append(bool(talk.store.branches.locked)))
        talk.store.commands.send("more")
        await until(lambda: talk.fork.locked)
        talk.store.branches.switch(talk.fork.previous_id)
        assert talk.trouble == ["The agent is working here. Stop it or wait until it's done, then try again."]
        await until(lambda: "Reply" in talk.mirror.kinds[4:])
        talk.store.branches.edit(talk.message)
        assert [row.locked for row in talk.mirror.rows if isinstance(row, EditMessageRow)] == [True]
        talk.store.commands.stop()
        await until(lambda: [row.locked for row in talk.mirror.rows if isinstance(row, EditMessageRow)] == [False])
        await until(lambda: not talk.fork.locked and isinstance(talk.mirror.rows[-1], TaskEndRow))
        broken = talk.mirror.rows[-2]
        assert isinstance(broken, ReplyRow) and talk.end.retry_id == broken.node.id
        assert locks == [True, False]


async def test_a_refused_edit_keeps_its_draft(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        talk = await begin(stack, tmp_path, ONE, TWO)
        message = talk.message
        begun: list[int] = []
        talk.store.edit_started.connect(begun.append)
        talk.store.branches.edit_last()
        assert begun == [0]
        talk.store.branches.drafts[message] = "write an ode"
        talk.store.commands.options = TaskOptions("nowhere/model")
        talk.store.branches.resend(talk.store.branch.node(message), "write an ode")
        await until(lambda: bool(talk.trouble))
        assert "nowhere" in talk.trouble[0]
        assert talk.said == ["edit", "One."]
        assert talk.store.branches.drafts.get(message) == "write an ode"
        talk.store.branches.end_edit()
        assert talk.said == ["write a poem", "One."]


async def test_while_a_branch_is_reloading_no_message_becomes_an_edit_field(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        talk = await begin(stack, tmp_path, ONE)
        begun: list[int] = []
        talk.store.edit_started.connect(begun.append)
        talk.store.is_current = False  # as between a snapshot and its past tasks
        loaded = msgspec.structs.replace(talk.store.branch.node(talk.message), id="new", parent_id=None)
        talk.store.branch.show((loaded,), False, ())
        talk.store.branches.edit_last()
        assert begun == []
        talk.store.load()
        await until(lambda: talk.store.is_current)
        assert talk.said == ["write a poem", "One."]
        talk.store.branches.edit_last()
        assert begun == [0]


async def test_a_fork_inside_a_task_does_not_show_the_end_of_the_task(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        call = Call("shell", {"command": "true"})
        talk = await begin(stack, tmp_path, Reply(text="First.", calls=(call,)), Reply(text="Second."))
        first = next(row.node.id for row in talk.mirror.rows if isinstance(row, ReplyRow))
        talk.store.branches.fork(first)
        await talk.until_said("write a poem", "First.", "1 below")
        assert talk.mirror.kinds == ["User", "Reply", "ToolCall", "BranchEnd"]
        below = talk.mirror.rows[-1]
        assert isinstance(below, BranchEndRow)
        talk.store.branches.switch(below.child_ids[0])
        await talk.until_said("write a poem", "First.", "Second.")
        assert talk.mirror.kinds[-1] == "TaskEnd"


async def test_seeking_a_message_switches_branches_but_restoring_a_scroll_position_does_not(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        talk = await begin(stack, tmp_path, ONE, TWO)
        old = talk.message
        talk.store.branches.resend(talk.store.branch.node(old), "write an ode")
        await talk.until_said("write an ode", "2/2", "Two.")
        reached: list[int] = []
        missed: list[bool] = []
        talk.store.reached.connect(reached.append)
        talk.store.missed.connect(lambda: missed.append(True))
        talk.store.seeker.seek(old)
        assert missed == [True] and not talk.store.seeker.is_seeking
        talk.store.seeker.seek(old, switches=True)
        await until(lambda: reached == [0])
        await talk.until_said("write a poem", "1/2", "One.")
        talk.store.seeker.seek("no such node", switches=True)
        await until(lambda: bool(talk.trouble))
        assert not talk.store.seeker.is_seeking

"""Branches side by side, on a real engine: where they diverge, live updates, stopping, and the choice of one."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from errand.client.conversation.branch import ComparedBranch
from errand.client.conversation.branch_rows import BranchRows
from errand.client.conversation.rows import ReplyRow, TaskEndRow, UserRow
from errand.window.stores.conversation.comparison import ComparisonStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.conversation.tree import TreeStore
from errand.window.stores.task_options import TaskOptions
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.processes import until
from tests.support.store_engine import StoreEngine, store_engine

MODELS = tuple(f"openai_compatible/{name}" for name in ("one", "two", "three"))


def said(side: BranchRows) -> list[str]:
    texts: list[str] = []
    for index in range(side.count()):
        match side.row(index):
            case UserRow(text=text) | ReplyRow(markdown=text):
                texts.append(text)
            case TaskEndRow():
                texts.append("end")
            case _:
                pass
    return texts


async def engine_of(stack: AsyncExitStack, home: Path, model: ModelServer) -> StoreEngine:
    engine = await stack.enter_async_context(store_engine(home, model))
    engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
    return engine


def comparison_of(engine: StoreEngine, store: ConversationStore, branches: Sequence[ComparedBranch]) -> ComparisonStore:
    return ComparisonStore(store, engine.stores.session, engine.stores.tasks, branches)


class Answering:
    """Each model begins with "I am" when `begin` is called for it, and ends at `end`."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._gates: dict[str, tuple[asyncio.Event, asyncio.Event]] = {}
        for model in MODELS:
            self._gates[model.partition("/")[2]] = gates = (asyncio.Event(), asyncio.Event())
            for gate in gates:
                stack.callback(gate.set)

    def answer(self, request: ReceivedRequest) -> Reply:
        model = str(request.body["model"])
        begin, rest = self._gates[model]
        return Reply(text=f"I am {model}.", piece_length=5, gate=begin, stall_after=2, rest=rest)

    def begin(self, model: str) -> None:
        self._gates[model][0].set()

    def end(self, model: str) -> None:
        self.begin(model)
        self._gates[model][1].set()


async def asked_of(store: ConversationStore) -> tuple[ComparedBranch, ...]:
    """The branches of the three models, after they were asked who they are."""
    asked: list[tuple[ComparedBranch, ...]] = []
    trouble: list[str] = []
    store.commands.compared.connect(asked.append)
    store.failed.connect(trouble.append)
    store.commands.ask_models("who are you?", MODELS)
    await until(lambda: bool(asked or trouble) and store.is_loaded)
    assert trouble == []
    return asked[0]


async def test_both_sides_start_at_the_fork_and_show_the_totals_of_their_tasks(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        engine = await engine_of(stack, tmp_path, ModelServer([Reply(text=text) for text in ("A.", "B.", "C.")]))
        task = await engine.parts.start("begin", approve="all")
        store, mirror = await engine.open(task.conversation_id)
        store.commands.options = TaskOptions("openai_compatible/test-model")
        await mirror.until("TaskEnd")
        fork = store.branch.ids[-1]
        store.commands.send("one way")
        await until(lambda: len(store.branch.ids) == 4 and store.branches.locked == "")
        left = store.branch.ids[-1]
        store.branches.fork(fork)
        await until(lambda: store.branch.ids[-1] == fork)
        store.commands.send("another way")
        await until(lambda: len(store.branch.ids) == 4 and store.branches.locked == "")
        right = store.branch.ids[-1]
        comparison = comparison_of(engine, store, (ComparedBranch(left), ComparedBranch(right)))
        stack.callback(comparison.close)
        loaded: list[bool] = []
        comparison.loaded.connect(lambda: loaded.append(True))
        comparison.load()
        await until(lambda: bool(loaded))
        assert [said(side) for side in comparison.sides] == [["one way", "B.", "end"], ["another way", "C.", "end"]]
        assert comparison.common_text == "A."
        for side in comparison.sides:
            assert [task.progress.usage.output_tokens for task in side.tasks] == [20]
            assert side.models == ("openai_compatible/test-model",)
            assert (side.is_working, comparison.can_continue(side)) == (False, True)
        comparison.show_branch(1, ComparedBranch(fork))
        await until(lambda: len(loaded) == 2)
        assert [said(side) for side in comparison.sides] == [["one way", "B.", "end"], []]
        assert (comparison.sides[1].tasks, comparison.can_continue(comparison.sides[1])) == ((), False)
        comparison.continue_with(comparison.sides[0])
        await until(lambda: store.branch.ids[-1] == left)


async def test_three_models_stream_side_by_side_and_one_is_chosen_while_the_others_write(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        models = Answering(stack)
        engine = await engine_of(stack, tmp_path, ModelServer(answer=models.answer))
        store = engine.stores.open(None)
        comparison = comparison_of(engine, store, await asked_of(store))
        stack.callback(comparison.close)
        comparison.load()
        await until(lambda: comparison.is_loaded and len(store.agents.all) == 3)
        side_one, side_two, side_three = comparison.sides
        assert comparison.common_text == "who are you?"
        assert [side.models for side in comparison.sides] == [(model,) for model in MODELS], "before they have replied"
        assert [(said(side), side.streams, comparison.can_continue(side)) for side in comparison.sides] == [
            ([], "none", False)
        ] * 3
        models.begin("one")
        models.begin("two")
        await until(lambda: [said(side_one), said(side_two), said(side_three)] == [["I am "], ["I am "], []])
        assert (side_two.streams, comparison.can_continue(side_two)) == ("reply", False), (
            "its agent stays on its branch"
        )
        models.end("two")
        await until(lambda: said(side_two) == ["I am two.", "end"])
        assert comparison.can_continue(side_two)
        chosen: list[bool] = []
        comparison.chosen.connect(lambda: chosen.append(True))
        comparison.continue_with(side_two)
        await until(lambda: bool(chosen) and store.branch.ids[-1:] == [side_two.leaf_id])
        await until(lambda: not engine.stores.tasks.at_work(store.conversation_id or ""))
        assert [side.task.outcome.stop_reason for side in comparison.sides if side.task is not None] == [
            "manual_stop",
            "completed",
            "manual_stop",
        ]
        shown_agent = store.agents.shown
        assert shown_agent is not None and shown_agent.beside is None, "the conversation's own agent goes on there"


async def test_a_comparison_that_is_opened_later_shows_what_is_being_written(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        models = Answering(stack)
        engine = await engine_of(stack, tmp_path, ModelServer(answer=models.answer))
        store = engine.stores.open(None)
        await asked_of(store)
        models.begin("one")
        models.end("two")
        await until(lambda: len(store.branch.newest_fork()) == 2 and len(store.agents.all) == 3)
        await until(lambda: said(store)[-1] == "I am ")
        requested: list[tuple[ComparedBranch, ...]] = []
        store.branches.compare_requested.connect(requested.append)
        store.branches.compare_newest()
        comparison = comparison_of(engine, store, requested[0])
        stack.callback(comparison.close)
        comparison.load()
        await until(lambda: comparison.is_loaded)
        assert sorted(said(side) for side in comparison.sides) == [[], ["I am "], ["I am two.", "end"]], (
            "the third one has not replied, but it is asked"
        )
        models.end("one")
        models.end("three")
        await until(lambda: not any(side.is_working for side in comparison.sides))
        assert sorted(said(side) for side in comparison.sides) == [
            ["I am one.", "end"],
            ["I am three.", "end"],
            ["I am two.", "end"],
        ]


async def test_one_column_is_stopped_and_a_failed_one_says_why(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        models = Answering(stack)

        def answer(request: ReceivedRequest) -> Reply:
            if request.body["model"] == "three":
                return Reply(status=400, error="this model is gone")
            return models.answer(request)

        engine = await engine_of(stack, tmp_path, ModelServer(answer=answer))
        store = engine.stores.open(None)
        comparison = comparison_of(engine, store, await asked_of(store))
        stack.callback(comparison.close)
        comparison.load()
        side_one, side_two, side_three = comparison.sides
        await until(lambda: side_three.task is not None and side_three.task.activity.status == "error")
        assert side_three.task is not None and "this model is gone" in (side_three.task.outcome.error or "")
        models.begin("one")
        models.begin("two")
        await until(lambda: said(side_one) == said(side_two) == ["I am "])
        comparison.stop(side_two)
        await until(lambda: not side_two.is_working)
        assert side_two.task is not None and side_two.task.outcome.stop_reason == "manual_stop" and side_one.is_working
        assert comparison.can_continue(side_two), "what was written is kept"
        comparison.stop_all()
        await until(lambda: not comparison.is_working)


async def test_more_versions_than_columns_can_be_shown_one_after_the_other(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        engine = await engine_of(stack, tmp_path, ModelServer([Reply(text=text) for text in "ABCDEF"]))
        task = await engine.parts.start("begin", approve="all")
        store, mirror = await engine.open(task.conversation_id)
        store.commands.options = TaskOptions("openai_compatible/test-model")
        for number in range(6):
            await mirror.until("TaskEnd")
            end = mirror.rows[-1]
            assert isinstance(end, TaskEndRow) and end.retry_id is not None
            if number < 5:
                store.branches.retry(end.retry_id)
                await until(lambda number=number: len(store.branch.newest_fork()) == number + 2)
                await until(lambda: store.branches.locked == "")
        requested: list[tuple[ComparedBranch, ...]] = []
        store.branches.compare_requested.connect(requested.append)
        store.branches.switch(store.branch.newest_fork()[0])
        await until(lambda: "A" in [row.markdown for row in mirror.rows if isinstance(row, ReplyRow)])
        store.branches.compare_newest()
        comparison = comparison_of(engine, store, requested[0])
        stack.callback(comparison.close)
        comparison.load()
        await until(lambda: comparison.is_loaded)
        assert [said(side)[0] for side in comparison.sides] == ["A", "D", "E", "F"], "the shown one and the newest ones"
        assert [branch.number for branch in comparison.others] == [2, 3]
        comparison.show_branch(1, comparison.others[0])
        await until(lambda: comparison.is_loaded and said(comparison.sides[1])[0] == "B")
        assert [branch.number for branch in comparison.others] == [3, 4]


async def test_the_tree_compares_all_versions_of_a_fork_that_is_not_on_the_shown_branch(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        engine = await engine_of(stack, tmp_path, ModelServer([Reply(text=text) for text in "ABCD"]))
        task = await engine.parts.start("begin", approve="all")
        store, mirror = await engine.open(task.conversation_id)
        store.commands.options = TaskOptions("openai_compatible/test-model")
        await mirror.until("TaskEnd")
        first = store.branch.ids[-1]
        store.commands.send("go on")
        await until(lambda: said(store)[-2:] == ["B", "end"] and store.branches.locked == "")
        store.branches.retry(store.branch.ids[-1])
        await until(lambda: said(store)[-2:] == ["C", "end"] and store.branches.locked == "")
        second = store.branch.ids[-1]
        store.branches.retry(first)
        await until(lambda: said(store)[-2:] == ["D", "end"] and store.branches.locked == "")
        tree = TreeStore(store, engine.stores.session)
        tree.open()
        await until(lambda: tree.is_loaded)
        requested: list[tuple[ComparedBranch, ...]] = []
        store.branches.compare_requested.connect(requested.append)
        tree.compare_versions(second)
        tree.compare_versions(store.branch.ids[-1])
        comparisons = [comparison_of(engine, store, branches) for branches in requested]
        for comparison in comparisons:
            stack.callback(comparison.close)
            comparison.load()
        await until(lambda: all(comparison.is_loaded for comparison in comparisons))
        assert [[said(side) for side in comparison.sides] for comparison in comparisons] == [
            [["B", "end"], ["C", "end"]],
            [["A", "end", "go on", "C", "end"], ["D", "end"]],
        ]
        tree.close()


async def test_a_comparison_that_was_closed_before_its_conversation_is_followed_stays_closed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        engine = await engine_of(stack, tmp_path, ModelServer([Reply(text=text) for text in "AB"]))
        task = await engine.parts.start("begin", approve="all")
        first = (await engine.parts.watcher.end(task.id)).conversation_id
        (agent,) = await engine.parts.services.database.agents.list(first)
        store = engine.stores.open(first)
        branches = (ComparedBranch(agent.head_id or ""), ComparedBranch(agent.head_id or ""))
        closed, open_comparison = comparison_of(engine, store, branches), comparison_of(engine, store, branches)
        seen: list[str] = []
        closed.loaded.connect(lambda: seen.append("loaded"))
        closed.failed.connect(seen.append)
        for comparison in (closed, open_comparison):
            comparison.load()
        assert not store.is_followed
        closed.close()
        await until(lambda: open_comparison.is_loaded)
        assert (seen, closed.is_loaded, closed.sides[0].count()) == ([], False, 0)
        closed.load()
        open_comparison.load()
        open_comparison.close()
        assert not open_comparison.is_loaded

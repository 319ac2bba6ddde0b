"""Two branches side by side, on a real engine: where they diverge, their usage, and live updates."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from errand.window.rows.row import ReplyRow, TaskEndRow, UserRow
from errand.window.stores.conversation.branch import ComparedBranch
from errand.window.stores.conversation.comparison import ComparedBranchStore, ComparisonStore
from errand.window.stores.task_options import TaskOptions
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.processes import until
from tests.support.store_engine import StoreEngine, store_engine

MODELS = tuple(f"openai_compatible/{name}" for name in ("one", "two", "three"))


def said(side: ComparedBranchStore) -> list[str]:
    words: list[str] = []
    for index in range(side.count()):
        match side.row(index):
            case UserRow(text=text) | ReplyRow(markdown=text):
                words.append(text)
            case TaskEndRow():
                words.append("end")
            case _:
                pass
    return words


async def engine_of(stack: AsyncExitStack, home: Path, model: ModelServer) -> StoreEngine:
    engine = await stack.enter_async_context(store_engine(home, model))
    engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
    return engine


async def test_both_sides_start_at_the_fork_and_show_the_totals_of_their_tasks(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        engine = await engine_of(stack, tmp_path, ModelServer([Reply(text=text) for text in ("A.", "B.", "C.")]))
        task = await engine.parts.start("begin", approve="all")
        store, mirror = await engine.open(task.conversation_id)
        store.requests.options = TaskOptions("openai_compatible/test-model")
        await mirror.until("TaskEnd")
        fork = store.branch.ids[-1]
        store.requests.send("one way")
        await until(lambda: len(store.branch.ids) == 4 and store.branches.locked == "")
        left = store.branch.ids[-1]
        store.branches.fork(fork)
        await until(lambda: store.branch.ids[-1] == fork)
        store.requests.send("another way")
        await until(lambda: len(store.branch.ids) == 4 and store.branches.locked == "")
        right = store.branch.ids[-1]
        comparison = ComparisonStore(store, engine.stores.session, ComparedBranch(left), ComparedBranch(right))
        stack.callback(comparison.close)
        loaded: list[bool] = []
        comparison.loaded.connect(lambda: loaded.append(True))
        comparison.load()
        await until(lambda: bool(loaded))
        assert [said(side) for side in comparison.sides] == [["one way", "B.", "end"], ["another way", "C.", "end"]]
        assert comparison.common_text == "A."
        for side in comparison.sides:
            assert side.figures.startswith("1 task · 120 tokens · ")
            assert side.models == ("openai_compatible/test-model",)
        comparison.show_branch(1, ComparedBranch(fork))
        await until(lambda: len(loaded) == 2)
        assert [said(side) for side in comparison.sides] == [["one way", "B.", "end"], []]
        assert comparison.sides[1].figures == "No task worked here"
        store.agents.continue_with(left)
        await until(lambda: store.branch.ids[-1] == left)


async def test_several_models_answer_one_message_and_two_are_compared_live(tmp_path: Path) -> None:
    gates = {model.split("/")[1]: asyncio.Event() for model in MODELS}

    def answer(request: ReceivedRequest) -> Reply:
        model = str(request.body["model"])
        return Reply(text=f"I am {model}.", gate=gates[model])

    async with AsyncExitStack() as stack:
        engine = await engine_of(stack, tmp_path, ModelServer(answer=answer))
        for gate in gates.values():
            stack.callback(gate.set)
        store = engine.stores.open(None)
        asked: list[ComparedBranch] = []
        trouble: list[str] = []

        def keep(left: ComparedBranch, right: ComparedBranch) -> None:
            asked.extend((left, right))

        store.requests.compared.connect(keep)
        store.failed.connect(trouble.append)
        store.requests.ask_models("who are you?", MODELS)
        await until(lambda: bool(asked or trouble) and store.is_loaded)
        assert trouble == []
        comparison = ComparisonStore(store, engine.stores.session, asked[0], asked[1])
        stack.callback(comparison.close)
        comparison.load()
        await until(lambda: comparison.is_loaded and len(store.agents.all) == 3)
        assert comparison.common_text == "who are you?"
        assert [said(side) for side in comparison.sides] == [[], []]
        gates["two"].set()
        await until(lambda: said(comparison.sides[1]) == ["I am two.", "end"])
        assert said(comparison.sides[0]) == []
        gates["one"].set()
        await until(lambda: said(comparison.sides[0]) == ["I am one.", "end"])
        store.requests.stop_all()
        await until(lambda: not engine.stores.tasks.at_work(store.conversation_id or ""))
        first = store.agents.shown
        assert first is not None and first.beside is None
        assert [row.markdown for row in map(store.row, range(store.count())) if isinstance(row, ReplyRow)] == [
            "I am one."
        ], "the conversation shows the branch of its own agent"
        store.agents.continue_with(comparison.sides[1].leaf_id)
        await until(lambda: store.branch.ids[-1] == comparison.sides[1].leaf_id)

"""Several agents in an open conversation, on a real engine: selected, addressed, mentioned and stopped."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from errand.client.conversation.rows import ReplyRow, SpeakerRow, UserRow
from errand.protocol.agents import Agent
from errand.protocol.conversations import TurnTaking
from errand.window.stores.conversation.agents import NewAgent
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.task_options import TaskOptions
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.processes import until
from tests.support.store_engine import Mirror, StoreEngine, store_engine


class Company:
    """A conversation of two agents, both at the end of the first reply."""

    def __init__(self, engine: StoreEngine, store: ConversationStore, mirror: Mirror) -> None:
        self.engine = engine
        self.store = store
        self.mirror = mirror
        self.trouble: list[str] = []
        store.failed.connect(self.trouble.append)

    @property
    def said(self) -> list[str]:
        """The texts, with their authors where these are shown."""
        texts: list[str] = []
        for row in self.mirror.rows:
            match row:
                case UserRow(text=text) | ReplyRow(markdown=text):
                    texts.append(text)
                case SpeakerRow(speaker=speaker):
                    texts.append(f"{speaker.name}:")
                case _:
                    pass
        return texts

    def agent(self, name: str) -> Agent:
        return next(agent for agent in self.store.agents.all if agent.name == name)

    def has_answered(self, name: str) -> bool:
        task = self.engine.stores.tasks.of_agent(self.agent(name).id)
        return task is not None and task.outcome.ended_at is not None

    async def until_said(self, *texts: str) -> None:
        try:
            await until(lambda: self.said == [*texts])
        except TimeoutError:
            assert self.said == [*texts], str((self.said, self.trouble))
            raise


async def company(stack: AsyncExitStack, home: Path, model: ModelServer) -> Company:
    engine = await stack.enter_async_context(store_engine(home, model))
    engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
    task = await engine.parts.start("begin", approve="all")
    store, mirror = await engine.open(task.conversation_id)
    store.commands.options = TaskOptions("openai_compatible/test-model")
    await mirror.until("TaskEnd")
    assert store.conversation_id is not None
    store.agents.add(store.conversation_id, NewAgent("coder", color="teal"))
    await until(lambda: store.agents.is_several)
    return Company(engine, store, mirror)


def echo(request: ReceivedRequest) -> Reply:
    """Repeats the last text."""
    return Reply(text=f"You said {request.last_said}.")


async def test_an_added_agent_is_selected_and_names_appear_above_replies(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        people = await company(stack, tmp_path, ModelServer(answer=echo))
        await until(lambda: people.store.agents.shown == people.agent("Coder"))
        await people.until_said("begin", "Assistant:", "You said begin.")
        people.store.commands.send("go on")
        await people.until_said("begin", "Assistant:", "You said begin.", "go on", "Coder:", "You said go on.")
        assert people.store.task is not None
        assert people.store.task.agent_id == people.agent("Coder").id
        await until(lambda: people.has_answered("Coder"))  # otherwise a side-branch agent answers
        # The others move to its reply after its task has ended: until then the Assistant answers on a side branch.
        await until(lambda: people.agent("Assistant").head_id == people.agent("Coder").head_id)
        people.store.commands.send("@Assistant and you?")
        await until(lambda: people.said[-2:] == ["Assistant:", "You said @Assistant and you?."])
        assert people.trouble == []


async def test_two_agents_working_at_once_have_separate_branches_and_stop_separately(tmp_path: Path) -> None:
    gate = asyncio.Event()

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(text="At last.", gate=gate) if request.last_said in ("one", "two") else Reply(text="Hello.")

    async with AsyncExitStack() as stack:
        people = await company(stack, tmp_path, ModelServer(answer=answer))
        stack.callback(gate.set)
        store, tasks = people.store, people.engine.stores.tasks
        assistant, coder = people.agent("Assistant"), people.agent("Coder")
        await until(lambda: store.agents.shown is not None and store.agents.shown.id == coder.id)
        store.commands.send("one")
        await people.until_said("begin", "Assistant:", "Hello.", "one")
        await until(lambda: people.agent("Assistant").head_id != assistant.head_id)  # it moves along
        store.agents.move_head(assistant.id, assistant.head_id or "")
        await until(lambda: people.agent("Assistant").head_id == assistant.head_id)
        store.agents.show_agent(assistant.id)
        await people.until_said("begin", "Assistant:", "Hello.")
        assert store.branches.locked == "", "who is looked at rests, and can go elsewhere"
        store.commands.send("two")
        await people.until_said("begin", "Assistant:", "Hello.", "two")
        conversation_id = store.conversation_id or ""
        assert len(tasks.at_work(conversation_id)) == 2
        store.commands.stop()
        await until(lambda: len(tasks.at_work(conversation_id)) == 1)
        assert tasks.at_work(conversation_id)[0].agent_id == coder.id
        assert tasks.of_conversation(conversation_id) == tasks.of_agent(coder.id), "the one at work says most"
        store.agents.show_agent(coder.id)
        await people.until_said("begin", "Assistant:", "Hello.", "one")
        gate.set()
        await people.until_said("begin", "Assistant:", "Hello.", "one", "Coder:", "At last.")
        assert people.trouble == []


async def test_options_of_one_agent_are_not_sent_to_another(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        people = await company(stack, tmp_path, ModelServer(answer=echo))
        store = people.store
        store.agents.add(store.conversation_id or "", NewAgent("assistant", "Ada", model="openai_compatible/own"))
        await until(lambda: any(agent.name == "Ada" for agent in store.agents.all))
        store.agents.show_agent(people.agent("Assistant").id)
        models: list[str] = []
        for name in ("Ada", "Coder"):
            store.commands.send(f"@{name} and you?")
            await until(lambda name=name: people.has_answered(name))
            task = people.engine.stores.tasks.of_agent(people.agent(name).id)
            models.append(task.request.model if task is not None else "")
        assert models == ["openai_compatible/own", "openai_compatible/test-model"]


async def test_removing_an_agent_deselects_it_and_keeps_its_messages(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        people = await company(stack, tmp_path, ModelServer(answer=echo))
        store = people.store
        await until(lambda: store.agents.shown == people.agent("Coder"))
        store.commands.send("go on")
        await until(lambda: people.said[-1] == "You said go on." and store.branches.locked == "")
        store.agents.remove(people.agent("Coder").id)
        await until(lambda: not store.agents.is_several)
        await people.until_said("begin", "Assistant:", "You said begin.", "go on", "Coder:", "You said go on.")
        assert store.agents.shown == people.agent("Assistant")


async def test_the_turn_order_is_stored_and_followed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        people = await company(stack, tmp_path, ModelServer(answer=echo))
        store = people.store
        rule = TurnTaking(rule="round_robin", limit=4)
        store.agents.set_turns(store.conversation_id or "", rule)
        await until(lambda: store.agents.turns == rule)
        store.commands.send("both of you")
        await until(lambda: store.branch.replies_since_user() == 2 and store.branches.locked == "")
        await until(lambda: people.agent("Assistant").head_id == people.agent("Coder").head_id)
        assert [word for word in people.said[-5:] if word.endswith(":")] == ["Coder:", "Assistant:"], (
            "the first has spoken last"
        )
        again, mirror = await people.engine.open(store.conversation_id or "")
        assert again.agents.turns == rule
        assert [row.key for row in mirror.rows] == [row.key for row in people.mirror.rows]


async def test_a_selected_agent_that_no_longer_exists_is_deselected_on_load(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        people = await company(stack, tmp_path, ModelServer(answer=echo))
        stores = people.engine.stores
        again = stores.open(people.store.conversation_id, "agent_gone")
        stack.callback(stores.close, again)
        assert again.agents.chosen_id == "agent_gone", "nothing is known yet"
        await until(lambda: again.is_loaded)
        assert again.agents.chosen_id is None
        assert again.agents.shown == people.agent("Assistant")

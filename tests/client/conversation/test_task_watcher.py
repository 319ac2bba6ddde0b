"""A small client on a real engine: a display of the items of a conversation, and an answerer."""

from pathlib import Path

from errand.client.connection import Connection
from errand.client.conversation.feed import ConversationFeed
from errand.client.conversation.items import AskItem, Item, TaskEndItem, TextItem
from errand.client.conversation.task_watcher import ShownMessage, TaskWatcher
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.engine import Condition
from errand.protocol.events import EventRecord, TextDelta
from errand.protocol.tasks.task import Task
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.store_engine import store_engine

QUESTION = Call("ask_user", {"question": "Which?", "choices": ["a", "b"]}, id="call_1")


class ItemDisplay:
    def __init__(self) -> None:
        self.items: list[Item] = []
        self._feed = ConversationFeed(streams=True, thinking=True, names_all=False)

    def show(self, conversation_id: str, message: ShownMessage) -> None:
        if isinstance(message, EventRecord):
            self.items += self._feed.event(message.event)
        elif isinstance(message, TextDelta):
            self.items += self._feed.delta(message)

    def connection(self, *, lost: bool) -> None:
        raise AssertionError("the connection holds")

    def health(self, conditions: tuple[Condition, ...]) -> None:
        raise AssertionError("the engine is healthy")

    def tick(self) -> None:
        pass


class FirstChoice:
    is_person = True

    async def answer(self, ask: Ask, task: Task | None) -> AskAnswerParams:
        return AskAnswerParams(ask_id=ask.id, text=ask.choices[0])


def kinds(items: list[Item]) -> list[str]:
    """The kinds of items, without the pieces of texts that stream."""
    return [kind for item in items if (kind := type(item).__name__.removesuffix("Item")) != "Piece"]


async def test_a_task_is_watched_from_its_first_message_to_its_end_and_its_asks_are_answered(tmp_path: Path) -> None:
    replies = [Reply(text="I ask.", calls=(QUESTION,)), Reply(text="You said a.")]
    async with store_engine(tmp_path, ModelServer(turns=replies)) as engine:
        connection = Connection(engine.cable.find, "an editor", patience_s=0.2)
        await connection.open()
        display, ended = ItemDisplay(), list[Task]()
        watcher = TaskWatcher(connection, display, FirstChoice(), ended.append)
        try:
            task = await engine.parts.start("ask me", attended=True)
            await watcher.follow(task.conversation_id, task.id)
            await watcher.until_ended([task.id])
        finally:
            watcher.close()
            await connection.close()
        assert kinds(display.items) == ["Message", "Text", "Call", "Ask", "Ask", "Text", "TaskEnd"]
        asks = [item.ask for item in display.items if isinstance(item, AskItem)]
        assert [(ask.status, ask.answer) for ask in asks] == [("waiting", None), ("answered", "a")]
        assert [item.text for item in display.items if isinstance(item, TextItem)] == ["I ask.", "You said a."]
        (end,) = (item for item in display.items if isinstance(item, TaskEndItem))
        assert [end.task] == ended == [watcher.tasks[task.id]]


async def test_a_conversation_that_ended_before_is_shown_from_its_history(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(turns=[Reply(text="Hello.")])) as engine:
        task = await engine.parts.start("greet")
        await engine.parts.watcher.end(task.id)
        connection = Connection(engine.cable.find, "an editor", patience_s=0.2)
        await connection.open()
        display = ItemDisplay()
        watcher = TaskWatcher(connection, display, FirstChoice())
        try:
            assert not await watcher.follow(task.conversation_id), "no older messages"
            await watcher.until_shown()
        finally:
            watcher.close()
            await connection.close()
        assert kinds(display.items) == ["Message", "Text", "TaskEnd"]

"""The slash commands of a conversation that only look something up or choose the model."""

from app.cli.live_prompt import LivePrompt
from app.cli.models import model_lines, ready_lines
from app.cli.search import hit_lines
from app.cli.tasks import task_row
from app.client.connection import Connection
from app.protocol.conversations import ConversationSearchParams
from app.protocol.models import ModelListParams
from app.protocol.tasks import TaskListParams
from app.protocol.wire import CONVERSATION_SEARCH, MODEL_LIST, TASK_LIST

HELP = """\
/model [ID]   list the models, or use one from the next task on
/stop         stop the task, as Ctrl+C does
/pause        hold the task before its next step
/resume       go on with it, also after the engine was killed
/as MODE      take the task for a chat, or a chat that has answered for a task
/tasks        the newest tasks, of all conversations
/search TEXT  full-text search in all conversations
/new          start a new conversation
/help         this list
=TEXT         as an answer: exactly this text, also where it looks like a number of the list or a command
Enter sends or steers, Alt+Enter queues a follow-up,
Ctrl+C stops the task, Ctrl+D leaves."""


class SlashCommands:
    """`model` is the one chosen here, None before that."""

    def __init__(self, connection: Connection, prompt: LivePrompt) -> None:
        self._connection = connection
        self._prompt = prompt
        self.model: str | None = None

    async def run(self, name: str, rest: str) -> None:
        match name:
            case "model" if "/" in rest.strip("/"):
                self.model = rest
                self._prompt.note(f"The next task uses {rest}.")
            case "model" if rest:
                self._prompt.note(f"{rest!r} is no model id: write provider/model, as /model lists them.")
            case "model":
                await self._models()
            case "tasks":
                await self._tasks()
            case "search" if rest:
                await self._search(rest)
            case "search":
                self._prompt.note("Say what to look for: /search TEXT")
            case _:
                self._prompt.note(f"There is no /{name}. /help lists the commands. Nothing was sent.")

    async def _models(self) -> None:
        found = await self._connection.call(MODEL_LIST, ModelListParams())
        for line in [*ready_lines(found, self._prompt.style), *model_lines(found, self._prompt.style)]:
            self._prompt.line(line)

    async def _tasks(self) -> None:
        for task in (await self._connection.call(TASK_LIST, TaskListParams(limit=10))).tasks:
            self._prompt.line(task_row(task, self._prompt.width, self._prompt.style))

    async def _search(self, text: str) -> None:
        params = ConversationSearchParams(text=text, limit=10)
        found = await self._connection.call(CONVERSATION_SEARCH, params)
        for hit in found.hits:
            self._prompt.line(hit_lines(hit, self._prompt.style))
        if not found.hits:
            self._prompt.note(found.advice or f"Nothing was found for {text!r}.")

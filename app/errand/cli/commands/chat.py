"""`errand chat`: a conversation in the terminal, with slash commands; the prompt stays usable while a task runs."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec

from errand.cli.arguments import TargetOptions, TaskOptions, UsageError, start_params
from errand.cli.command import Command
from errand.cli.commands.conversations.search import hit_lines
from errand.cli.commands.models import format_models, format_ready
from errand.cli.commands.run import confirm_workspace, resolve_target
from errand.cli.commands.tasks import task_lines
from errand.cli.follow.memory_offer import offer_embedding_model
from errand.cli.follow.typed_lines import ANSWER_HELP, TASK_HELP, TaskLines, completions, is_command
from errand.cli.options import CommandOptions, Flag
from errand.cli.output import CommandOutput
from errand.cli.rendering.screen import TextScreen
from errand.cli.terminal.text import one_line, plain, short_id, wrapped
from errand.client.connection import Connection
from errand.client.conversation.task_watcher import TaskWatcher
from errand.client.errors import CallError
from errand.client.launch import connect
from errand.client.texts.tasks import unread_messages
from errand.protocol.conversations import CONVERSATION_SEARCH, ConversationSearchParams
from errand.protocol.memory import MEMORY_WARM_UP, MemoryWarmUpParams
from errand.protocol.settings import MODEL_LIST, MODEL_WARM_UP, ModelListParams, ModelWarmUpParams
from errand.protocol.tasks.methods import TASK_LIST, TASK_START, TaskListParams, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import tr

if TYPE_CHECKING:
    from errand.cli.terminal.prompt import LivePrompt, SendMode  # prompt_toolkit takes 90 ms

HELP = tr(
    "/model [ID]   list models, or use one from the next task on\n/stop         stop the "
    "task, like Ctrl+C\n{TASK_HELP}\n/tasks        the newest tasks of all "
    "conversations\n/search TEXT  search all conversations\n/new          start a new "
    "conversation\n/help         this list\n{ANSWER_HELP}\nEnter sends or steers, Alt+Enter "
    "queues a message,\nCtrl+C stops the task, Ctrl+D leaves."
).format(TASK_HELP=TASK_HELP, ANSWER_HELP=ANSWER_HELP)

WELCOME = tr(
    "Type what to do and press Enter. While a task runs, Enter steers it and Alt+Enter "
    "queues a message. Ctrl+C stops it, Ctrl+D leaves, /help lists the commands."
)
LEAVE = tr("A task is running: l leave it running · s stop it and leave · Enter stay ")


class SlashCommands:
    """`model` is the one of the next task, chosen with a command or when the chat began; None is the default."""

    def __init__(self, connection: Connection, prompt: "LivePrompt", model: str | None) -> None:
        self._connection = connection
        self._prompt = prompt
        self.model = model

    async def run(self, name: str, rest: str) -> None:
        match name:
            case "model" if "/" in rest.strip("/"):
                self.model = rest
                self._prompt.note(tr("The next task uses {rest}.").format(rest=rest))
            case "model" if rest:
                self._prompt.note(
                    tr("{rest!r} is not a model id. Use provider/model, as listed by /model.").format(rest=rest)
                )
            case "model":
                await self._models()
            case "tasks":
                await self._tasks()
            case "search" if rest:
                await self._search(rest)
            case "search":
                self._prompt.note(tr("Usage: /search TEXT"))
            case _:
                self._prompt.note(
                    tr("There is no command /{name}. /help lists the commands. Nothing was sent.").format(name=name)
                )

    async def _models(self) -> None:
        models = await self._connection.call(MODEL_LIST, ModelListParams())
        for line in [*format_ready(models, self._prompt.style), *format_models(models, self._prompt.style)]:
            self._prompt.line(line)
        if self.model is not None:
            self._prompt.line(tr("this conversation: {model}").format(model=self._prompt.style.bold(plain(self.model))))

    async def _tasks(self) -> None:
        tasks = (await self._connection.call(TASK_LIST, TaskListParams(limit=10))).tasks
        for line in task_lines(tasks, self._prompt.width, self._prompt.style):
            self._prompt.line(line)

    async def _search(self, text: str) -> None:
        params = ConversationSearchParams(text=text, limit=10)
        results = await self._connection.call(CONVERSATION_SEARCH, params)
        for hit in results.hits:
            self._prompt.line(hit_lines(hit, self._prompt.style, self._prompt.width))
        if not results.hits:
            self._prompt.note(results.advice or tr("No results for {text!r}.").format(text=text))


class Chat:
    """One conversation at a time; `/new` switches to another."""

    def __init__(self, connection: Connection, prompt: "LivePrompt", first: TaskStartParams, *, thinking: bool) -> None:
        self._connection = connection
        self._prompt = prompt
        self._first = first
        self._screen = TextScreen(prompt, thinking=thinking)
        self._lines = TaskLines(connection, prompt)
        self._answers = self._lines.answers
        self._watch = TaskWatcher(connection, self._screen, self._answers, self._on_task_ended)
        self._slash = SlashCommands(connection, prompt, first.model)
        self._approve = first.approve  # of the next conversation, or still to be applied to the given one
        self._conversation: str | None = first.conversation_id
        self._task_id: str | None = None
        self._is_leaving = asyncio.Event()

    async def run(self) -> None:
        """Read lines until the person leaves."""
        if self._conversation is not None:
            self._screen.add(self._conversation)
            if await self._watch.follow(self._conversation):
                self._prompt.note(
                    tr("Earlier messages: errand show {conversation}").format(conversation=short_id(self._conversation))
                )
        with suppress(CallError):
            await self._connection.call(MEMORY_WARM_UP, MemoryWarmUpParams())
            await self._connection.call(MODEL_WARM_UP, ModelWarmUpParams(model=self._first.model))
        with self._prompt.opened():
            try:
                async with asyncio.TaskGroup() as group:
                    watching = group.create_task(self._watch.until(self._is_leaving.is_set))
                    await self._read()
                    watching.cancel()
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None
        self._watch.close()

    async def _read(self) -> None:
        while not self._is_leaving.is_set():
            how, line = await self._prompt.read()
            await self._on_key(how, line)

    async def _on_key(self, how: "SendMode", line: str) -> None:
        try:
            match how:
                case "interrupt":
                    await self._interrupt()
                case "end":
                    await self._leave()
                case "enter" | "alt_enter":
                    await self._line(line, queued=how == "alt_enter")
        except CallError as error:
            self._prompt.note(str(error))

    async def _line(self, line: str, *, queued: bool) -> None:
        task = self._working()
        if is_command(line):
            await self._command(line)
        elif self._answers.ask is not None:
            self._answers.take(line)
        elif not line:
            return
        elif task is None:
            await self._start(line)
        else:
            self._screen.mark_typed(task.conversation_id, line)
            await self._lines.say(task.id, line, queued=queued)

    async def _start(self, prompt: str) -> None:
        before = self._connection.welcome
        model = self._slash.model
        params = _next_params(self._first, prompt, self._conversation, model)
        params = msgspec.structs.replace(params, approve=self._approve if self._task_id is None else None)
        if self._conversation is not None:
            self._screen.mark_typed(self._conversation, prompt)
        task = (await self._connection.call(TASK_START, params)).task
        self._task_id = task.id
        if task.conversation_id != self._conversation:
            self._conversation = task.conversation_id
            self._screen.add(task.conversation_id)
            self._screen.mark_typed(task.conversation_id, prompt)
            await self._watch.follow(task.conversation_id, after=before.head, epoch=before.epoch)

    async def _command(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        working = self._working()
        task_id = self._task_id or (working.id if working is not None else None)
        match name:
            case "new":
                self._conversation = self._task_id = None
                if self._approve == "all":  # chosen again for each conversation, unless the command line says so
                    self._approve = self._first.approve
                self._prompt.note(tr("Your next message starts a new conversation."))
            case "stop":
                await self._interrupt()
            case "pause" | "resume" if task_id:
                await self._lines.order(name, task_id)
            case "approve":
                self._approve = await self._lines.set_approvals(self._conversation, rest.strip()) or self._approve
            case "as" if task_id:
                self._task_id = await self._lines.set_mode(task_id, rest.strip())
            case "pause" | "resume" | "as":
                self._prompt.note(tr("This conversation has no task yet."))
            case "help":
                self._prompt.line(HELP)
            case _:
                await self._slash.run(name, rest.strip())

    def _on_task_ended(self, task: Task) -> None:
        """Put the messages that a stopped task has not read back into the input line."""
        if task.origin.parent_id is None and task.conversation_id == self._conversation:
            self._prompt.put_back("\n".join(entry.text for entry in unread_messages(task)))

    def _working(self) -> Task | None:
        """Return the task started here, or the running task of the agent whose turn follows."""
        every = [self._watch.tasks.get(self._task_id or ""), *reversed(self._watch.tasks.values())]
        return next((task for task in every if task is not None and self._is_working(task)), None)

    def _is_working(self, task: Task) -> bool:
        is_here = task.conversation_id == self._conversation
        return is_here and task.outcome.ended_at is None and task.activity.status != "interrupted"

    async def _interrupt(self) -> None:
        task = self._working()
        if task is None:
            self._prompt.note(tr("No task is running. Ctrl+D leaves."))
            return
        await self._lines.order("stop", task.id)

    def _show_unsent(self) -> None:
        task = self._working()
        for entry in task.queue if task is not None else ():
            self._prompt.note(tr("errand: not sent: {unsent}").format(unsent=one_line(entry.text, 200)))

    async def _leave(self) -> None:
        while self._working() is not None:
            how, choice = await self._prompt.read(LEAVE)
            match choice.lower():
                case "l":
                    break
                case "s":
                    self._show_unsent()
                    await self._interrupt()
                    break
                case "" if how == "end":
                    break
                case "":
                    return
                case other:
                    self._prompt.note(
                        tr("{other!r} is not a choice. Type l or s, or press Enter to stay.").format(other=other)
                    )
        self._is_leaving.set()


class ChatOptions(CommandOptions, frozen=True, kw_only=True):
    target: TargetOptions = TargetOptions()
    task: TaskOptions = TaskOptions()
    no_thinking: Annotated[bool, Flag("--no-thinking", "hide thinking, which is shown dimmed")] = False


async def chat(options: ChatOptions, paths: Paths, output: CommandOutput) -> int:
    terminal = output.terminal
    if not terminal.interactive:
        raise UsageError(tr("errand chat needs a terminal. Without one, use: errand run 'what to do'"))
    from errand.cli.terminal.prompt import LivePrompt

    async with await connect(paths, "errand chat") as connection:
        terminal.line(terminal.style.dim(wrapped(WELCOME, terminal.width)))
        prompt = LivePrompt(terminal.style, lambda: terminal.width, paths.home / "chat_history", completions(HELP))
        params = start_params("", options.target, options.task, attended=True)
        first = await resolve_target(connection, params, options.target, options.task.workspace)
        await confirm_workspace(connection, first, output)
        await Chat(connection, prompt, first, thinking=not options.no_thinking).run()
        await offer_embedding_model(connection, output)
    return 0


CHAT = Command(ChatOptions, chat)


def _next_params(first: TaskStartParams, prompt: str, conversation: str | None, model: str | None) -> TaskStartParams:
    agent = first.agent_id if conversation == first.conversation_id else None
    return msgspec.structs.replace(first, prompt=prompt, conversation_id=conversation, agent_id=agent, model=model)

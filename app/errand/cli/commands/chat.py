"""`errand chat`: a conversation in the terminal, with slash commands; the prompt stays usable while a task runs."""

import asyncio
from contextlib import suppress
from typing import Annotated

import msgspec

from errand.cli.arguments import TargetOptions, TaskOptions, UsageError, start_params
from errand.cli.command import Command
from errand.cli.commands.conversations.search import hit_lines
from errand.cli.commands.models import format_models, format_ready
from errand.cli.commands.run import confirm_workspace, resolve_target
from errand.cli.commands.tasks import approvals_text, change_approvals, format_task
from errand.cli.follow.answers import Answerer
from errand.cli.follow.watch import TaskWatcher
from errand.cli.options import CommandOptions, Flag
from errand.cli.rendering.asks import AskInput, InvalidReply, hint
from errand.cli.rendering.screen import TextScreen
from errand.cli.terminal.prompt import LivePrompt, SendMode
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import short_id, wrapped
from errand.client.connection import Connection
from errand.client.display_text import APPROVAL_MODES, approve_mode
from errand.client.errors import CallError
from errand.client.launch import connect
from errand.paths import Paths
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.conversations import CONVERSATION_SEARCH, ConversationSearchParams
from errand.protocol.memory import MEMORY_WARM_UP, MemoryWarmUpParams
from errand.protocol.settings import MODEL_LIST, MODEL_WARM_UP, ModelListParams, ModelWarmUpParams
from errand.protocol.tasks import (
    TASK_FOLLOW_UP,
    TASK_LIST,
    TASK_PAUSE,
    TASK_RESUME,
    TASK_SET_MODE,
    TASK_START,
    TASK_STEER,
    TASK_STOP,
    DecidedMode,
    Task,
    TaskIdParams,
    TaskListParams,
    TaskMessageParams,
    TaskSetModeParams,
    TaskStartParams,
)

HELP = """\
/model [ID]   list the models, or use one from the next task on
/stop         stop the task, as Ctrl+C does
/pause        hold the task before its next step
/resume       go on with it, also after the engine was killed
/approve MODE ask, edits (of files in the workspace), plan (only reading), never, or all
/as MODE      take the task for a chat, or a chat that has answered for a task
/tasks        the newest tasks, of all conversations
/search TEXT  full-text search in all conversations
/new          start a new conversation
/help         this list
=TEXT         as an answer: exactly this text, also where it looks like a number of the list or a command
Enter sends or steers, Alt+Enter queues a follow-up,
Ctrl+C stops the task, Ctrl+D leaves."""

_COMMANDS: dict[str, tuple[str, ...]] = {
    **{line[1:].split()[0]: () for line in HELP.splitlines() if line.startswith("/")},
    "approve": tuple(APPROVAL_MODES),
    "as": ("task", "chat"),
}

WELCOME = (
    "Type what to do; Enter sends. While a task works, Enter steers it and Alt+Enter queues a follow-up. "
    "Ctrl+C stops it, Ctrl+D leaves, /help says more."
)
LEAVE = "A task is still working. l leaves it working, s stops it and leaves, Enter stays: "


class SlashCommands:
    """`model` is the model chosen with a command, None by default."""

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
                self._prompt.note(f"{rest!r} is not a model id: write provider/model, as listed by /model.")
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
        for line in [*format_ready(found, self._prompt.style), *format_models(found, self._prompt.style)]:
            self._prompt.line(line)

    async def _tasks(self) -> None:
        for task in (await self._connection.call(TASK_LIST, TaskListParams(limit=10))).tasks:
            self._prompt.line(format_task(task, self._prompt.width, self._prompt.style))

    async def _search(self, text: str) -> None:
        params = ConversationSearchParams(text=text, limit=10)
        found = await self._connection.call(CONVERSATION_SEARCH, params)
        for hit in found.hits:
            self._prompt.line(hit_lines(hit, self._prompt.style))
        if not found.hits:
            self._prompt.note(found.advice or f"Nothing was found for {text!r}.")


class TypedAnswerer:
    """Takes the next line typed at the prompt as the answer to an ask."""

    is_person = True

    def __init__(self, prompt: LivePrompt) -> None:
        self._prompt = prompt
        self._reply: asyncio.Future[AskAnswerParams] | None = None
        self._typing: AskInput | None = None

    @property
    def ask(self) -> Ask | None:
        return self._typing.ask if self._typing is not None else None

    async def answer(self, ask: Ask, about: str) -> AskAnswerParams:
        self._typing, self._reply = AskInput(ask), asyncio.get_running_loop().create_future()
        if about:
            self._prompt.note(about)
        self._prompt.note(f"  {hint(ask)}")
        self._show_hint(self._typing)
        try:
            return await self._reply
        finally:
            self._typing = None
            self._prompt.hint("")

    def take(self, line: str) -> None:
        if self._typing is None or self._reply is None or self._reply.done():
            return
        reply = self._typing.read(line)
        if isinstance(reply, InvalidReply):
            self._prompt.note(f"  {reply.text}")
            self._show_hint(self._typing)
        else:
            self._reply.set_result(reply)

    def _show_hint(self, typing: AskInput) -> None:
        self._prompt.hint(typing.short_hint.removesuffix("> "))


class Chat:
    """One conversation at a time; `/new` switches to another."""

    def __init__(self, connection: Connection, prompt: LivePrompt, first: TaskStartParams, *, thinking: bool) -> None:
        self._connection = connection
        self._prompt = prompt
        self._first = first
        self._screen = TextScreen(prompt, thinking=thinking)
        self._answers = TypedAnswerer(prompt)
        answers: Answerer = self._answers
        self._watch = TaskWatcher(connection, self._screen, answers)
        self._slash = SlashCommands(connection, prompt)
        self._approve = first.approve  # of the next conversation, or still to be applied to the given one
        self._conversation: str | None = first.conversation_id
        self._task_id: str | None = None
        self._is_leaving = asyncio.Event()

    async def run(self) -> None:
        """Read lines until the person leaves."""
        if self._conversation is not None:
            self._screen.add(self._conversation)
            if await self._watch.follow(self._conversation):
                self._prompt.note(f"What came before is shown by: errand show {short_id(self._conversation)}")
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

    async def _on_key(self, how: SendMode, line: str) -> None:
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
        if _is_command(line):
            await self._command(line)
        elif self._answers.ask is not None:
            self._answers.take(line)
        elif not line:
            return
        elif task is None:
            await self._start(line)
        else:
            method = TASK_FOLLOW_UP if queued else TASK_STEER
            self._screen.said(task.conversation_id, line)
            await self._connection.call(method, TaskMessageParams(task_id=task.id, text=line))
            self._prompt.note("queued for when the work at hand is done" if queued else "it reads this next")

    async def _start(self, prompt: str) -> None:
        before = self._connection.welcome
        model = self._slash.model or self._first.model
        params = _next_params(self._first, prompt, self._conversation, model)
        params = msgspec.structs.replace(params, approve=self._approve if self._task_id is None else None)
        if self._conversation is not None:
            self._screen.said(self._conversation, prompt)
        task = (await self._connection.call(TASK_START, params)).task
        self._task_id = task.id
        if task.conversation_id != self._conversation:
            self._conversation = task.conversation_id
            self._screen.add(task.conversation_id)
            self._screen.said(task.conversation_id, prompt)
            await self._watch.follow(task.conversation_id, after=before.head, epoch=before.epoch)

    async def _command(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        match name:
            case "new":
                self._conversation = self._task_id = None
                if self._approve == "all":  # chosen again for each conversation, unless the command line says so
                    self._approve = self._first.approve
                self._prompt.note("A new conversation starts with what you send next.")
            case "stop":
                await self._interrupt()
            case "pause" if self._task_id:
                await self._connection.call(TASK_PAUSE, TaskIdParams(task_id=self._task_id))
            case "resume" if self._task_id:
                await self._connection.call(TASK_RESUME, TaskIdParams(task_id=self._task_id))
            case "approve":
                await self._set_approve(rest.strip())
            case "as" if self._task_id and rest.strip() in ("task", "chat"):
                await self._set_mode(self._task_id, "task" if rest.strip() == "task" else "chat")
            case "as" if self._task_id:
                self._prompt.note("Say which: /as task or /as chat")
            case "pause" | "resume" | "as":
                self._prompt.note("This conversation has no task yet.")
            case "help":
                self._prompt.line(HELP)
            case _:
                await self._slash.run(name, rest.strip())

    async def _set_mode(self, task_id: str, mode: DecidedMode) -> None:
        taken = (await self._connection.call(TASK_SET_MODE, TaskSetModeParams(task_id=task_id, mode=mode))).task
        self._task_id = taken.id
        if taken.id == task_id:
            self._prompt.note(f"It is a {mode} from the end of this turn on.")

    async def _set_approve(self, word: str) -> None:
        mode = approve_mode(word)
        if mode is None:
            self._prompt.note(f"Say which: /approve {', '.join(APPROVAL_MODES)}")
            return
        self._approve = mode
        if self._conversation is None:
            self._prompt.note(await approvals_text(self._connection, mode))
        else:
            self._prompt.note(await change_approvals(self._connection, self._conversation, mode))

    def _working(self) -> Task | None:
        """The task started here, or the running task of the agent whose turn follows."""
        every = [self._watch.tasks.get(self._task_id or ""), *reversed(self._watch.tasks.values())]
        return next((task for task in every if task is not None and self._is_working(task)), None)

    def _is_working(self, task: Task) -> bool:
        is_here = task.conversation_id == self._conversation
        return is_here and task.ended_at is None and task.status != "interrupted"

    async def _interrupt(self) -> None:
        task = self._working()
        if task is None:
            self._prompt.note("No task is working. Ctrl+D leaves.")
            return
        await self._connection.call(TASK_STOP, TaskIdParams(task_id=task.id))

    async def _leave(self) -> None:
        while self._working() is not None:
            how, choice = await self._prompt.read(LEAVE)
            match choice.lower():
                case "l":
                    break
                case "s":
                    await self._interrupt()
                    break
                case "" if how == "end":
                    break
                case "":
                    return
                case other:
                    self._prompt.note(f"There is no {other!r} to choose. Type l or s, or Enter to stay.")
        self._is_leaving.set()


class ChatOptions(CommandOptions, frozen=True, kw_only=True):
    target: TargetOptions = TargetOptions()
    task: TaskOptions = TaskOptions()
    no_thinking: Annotated[bool, Flag("--no-thinking", "leave out what the model thinks, which is shown dim")] = False


async def chat(options: ChatOptions, paths: Paths, terminal: Terminal) -> int:
    if not terminal.interactive:
        raise UsageError("A conversation needs a terminal to type in. Without one use: errand run 'what to do'")
    async with await connect(paths, "errand chat") as connection:
        terminal.line(terminal.style.dim(wrapped(WELCOME, terminal.width)))
        prompt = LivePrompt(terminal.style, lambda: terminal.width, paths.home / "chat_history", _COMMANDS)
        params = start_params("", options.target, options.task, attended=True)
        first = await resolve_target(connection, params, options.target, options.task.workspace)
        await confirm_workspace(connection, first, terminal)
        await Chat(connection, prompt, first, thinking=not options.no_thinking).run()
    return 0


CHAT = Command(ChatOptions, chat)


def _is_command(line: str) -> bool:
    """True for `/help`; `/usr/bin is full` is a message."""
    return line.startswith("/") and "/" not in line[1:].partition(" ")[0]


def _next_params(first: TaskStartParams, prompt: str, conversation: str | None, model: str | None) -> TaskStartParams:
    agent = first.agent_id if conversation == first.conversation_id else None
    return msgspec.structs.replace(first, prompt=prompt, conversation_id=conversation, agent_id=agent, model=model)

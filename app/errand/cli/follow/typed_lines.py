"""What a person types while tasks work: answers, messages to a task, and slash commands for it."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from errand.cli.rendering.ask_choices import hint_lines
from errand.cli.rendering.screen import TextScreen
from errand.cli.rendering.task_lines import asking_line
from errand.cli.rendering.typed_answers import AskInput, InvalidReply
from errand.cli.terminal.text import short_id
from errand.client.connection import Connection
from errand.client.errors import CallError
from errand.client.texts.task_options import APPROVAL_MODES, approval_mode_text, approve_mode, is_bounded
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.base import EmptyParams
from errand.protocol.conversations import CONVERSATION_CHANGE, Conversation, ConversationChangeParams
from errand.protocol.engine import ENGINE_STATUS
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.methods import (
    TASK_FOLLOW_UP,
    TASK_PAUSE,
    TASK_RESUME,
    TASK_SET_MODE,
    TASK_STEER,
    TASK_STOP,
    TaskIdParams,
    TaskMessageParams,
    TaskSetModeParams,
)
from errand.protocol.tasks.task import Task
from errand.text.translation import tr

if TYPE_CHECKING:
    from errand.cli.terminal.prompt import LivePrompt, SendMode  # prompt_toolkit takes 90 ms

Order: TypeAlias = Literal["stop", "pause", "resume"]

_ORDERS = {"stop": TASK_STOP, "pause": TASK_PAUSE, "resume": TASK_RESUME}

TASK_HELP = tr(
    "/pause        pause the task before its next step\n/resume       resume it, also "
    "after the engine was killed\n/approve MODE ask, edits (file changes in the "
    "workspace), auto (and\n              commands in the sandbox), plan (read only), "
    "never, or all\n/as MODE      switch between task and chat"
)
ANSWER_HELP = tr("=TEXT         answer with this very text, even if it is a number or a /command")
ATTACHED_HELP = tr(
    "/stop         stop the task\n{TASK_HELP}\n/help         this list\n{ANSWER_HELP}\nEnter "
    "steers, Alt+Enter queues a message,\nCtrl+C and Ctrl+D detach; the task keeps running."
).format(TASK_HELP=TASK_HELP, ANSWER_HELP=ANSWER_HELP)
ATTACHED = tr("What you type steers the task. /stop stops it, Ctrl+C detaches, /help lists the commands.")


def completions(help_text: str) -> dict[str, tuple[str, ...]]:
    """Return the commands that the help lists, each with the words that may follow it."""
    names = [line[1:].split()[0] for line in help_text.splitlines() if line.startswith("/")]
    arguments = {"approve": tuple(APPROVAL_MODES), "as": ("task", "chat")}
    return {name: arguments.get(name, ()) for name in names}


def is_command(line: str) -> bool:
    """Return True for `/help`; `/usr/bin is full` is a message."""
    return line.startswith("/") and "/" not in line[1:].partition(" ")[0]


class TypedAnswerer:
    """Takes the next line typed at the prompt as the answer to an ask."""

    is_person = True

    def __init__(self, prompt: "LivePrompt") -> None:
        self._prompt = prompt
        self._reply: asyncio.Future[AskAnswerParams] | None = None
        self._typing: AskInput | None = None

    @property
    def ask(self) -> Ask | None:
        return self._typing.ask if self._typing is not None else None

    async def answer(self, ask: Ask, task: Task | None) -> AskAnswerParams:
        self._typing, self._reply = AskInput(ask), asyncio.get_running_loop().create_future()
        if task is not None:
            self._prompt.note(asking_line(task))
        self._prompt.note("\n".join(hint_lines(ask, self._prompt.width)))
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
        self._prompt.hint(typing.prompt.removesuffix("> "))


class TaskLines:
    """Sends what is typed to a task. `answers` takes the answers to what it asks."""

    def __init__(self, connection: Connection, prompt: "LivePrompt") -> None:
        self._connection = connection
        self._prompt = prompt
        self.answers = TypedAnswerer(prompt)

    async def say(self, task_id: str, line: str, *, queued: bool) -> None:
        """Steer the task, or queue a message for when the work at hand is done."""
        method = TASK_FOLLOW_UP if queued else TASK_STEER
        await self._connection.call(method, TaskMessageParams(task_id=task_id, text=line))
        self._prompt.note(tr("queued until the current work is done") if queued else tr("the agent reads this next"))

    async def order(self, name: Order, task_id: str) -> None:
        await self._connection.call(_ORDERS[name], TaskIdParams(task_id=task_id))

    async def set_mode(self, task_id: str, word: str) -> str:
        """Returns the id of the task that goes on: this one, or a new one."""
        if word not in ("task", "chat"):
            self._prompt.note(tr("Usage: /as task or /as chat"))
            return task_id
        params = TaskSetModeParams(task_id=task_id, mode="task" if word == "task" else "chat")
        task = (await self._connection.call(TASK_SET_MODE, params)).task
        if task.id == task_id:
            self._prompt.note(mode_text(task_id, task))
        return task.id

    async def set_approvals(self, conversation_id: str | None, word: str) -> ApproveMode | None:
        """Return the mode that was chosen, None for a word that is none; without a conversation it is only
        explained.
        """
        mode = approve_mode(word)
        if mode is None:
            self._prompt.note(tr("Usage: /approve {names}").format(names=", ".join(APPROVAL_MODES)))
            return None
        if conversation_id is not None:
            await change_approvals(self._connection, conversation_id, mode)
        self._prompt.note(await approvals_text(self._connection, mode))
        return mode


class AttachedPrompt:
    """Reads what is typed to a task that is followed; `leave` is called for Ctrl+C and Ctrl+D."""

    def __init__(
        self, connection: Connection, prompt: "LivePrompt", screen: TextScreen, task: Task, leave: Callable[[], None]
    ) -> None:
        self._prompt = prompt
        self._screen = screen
        self._lines = TaskLines(connection, prompt)
        self._conversation_id = task.conversation_id
        self._leave = leave
        self.task_id = task.id  # the next one of its round, once it has begun
        self.answers = self._lines.answers

    async def read(self) -> None:
        """Read lines until the person leaves."""
        while True:
            how, line = await self._prompt.read()
            if how in ("interrupt", "end"):
                self._leave()
                return
            try:
                await self._line(how, line)
            except CallError as error:
                self._prompt.note(str(error))

    async def _line(self, how: "SendMode", line: str) -> None:
        if is_command(line):
            name, _, rest = line[1:].partition(" ")
            await self._command(name, rest.strip())
        elif self.answers.ask is not None:
            self.answers.take(line)
        elif line:
            self._screen.mark_typed(self._conversation_id, line)
            await self._lines.say(self.task_id, line, queued=how == "alt_enter")

    async def _command(self, name: str, rest: str) -> None:
        match name:
            case "stop" | "pause" | "resume":
                await self._lines.order(name, self.task_id)
            case "as":
                await self._lines.set_mode(self.task_id, rest)
            case "approve":
                await self._lines.set_approvals(self._conversation_id, rest)
            case "help":
                self._prompt.line(ATTACHED_HELP)
            case _:
                self._prompt.note(
                    tr("There is no command /{name}. /help lists the commands. Nothing was sent.").format(name=name)
                )


async def change_approvals(connection: Connection, conversation_id: str, mode: ApproveMode) -> Conversation:
    params = ConversationChangeParams(conversation_id=conversation_id, approve=mode)
    return (await connection.call(CONVERSATION_CHANGE, params)).conversation


async def approvals_text(connection: Connection, mode: ApproveMode) -> str:
    """Return the effect of a mode on the machine of the engine."""
    sandbox = (await connection.call(ENGINE_STATUS, EmptyParams())).sandbox
    name, about = approval_mode_text(mode, has_sandbox=is_bounded(sandbox))
    return f"{name}: {about}"


def mode_text(task_id: str, result: Task) -> str:
    """Return the outcome for the task `task_id`: `result` is this task, or the new one that continues it."""
    if result.id != task_id:
        name = short_id(result.id)
        return tr("It continues as task {name}. Follow it: errand attach {name}").format(name=name)
    if result.options.mode == "chat":
        return tr("From the end of this turn it is a chat: it ends with its next answer.")
    return tr("From the end of this turn it is a task: it ends when the agent says that it is complete.")

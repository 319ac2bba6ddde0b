"""`errand compare` and `ask-models`: branches, and answers of several models, side by side."""

import asyncio
from typing import Annotated

import msgspec

from errand.cli.arguments import TargetOptions, TaskOptions, UsageError, read_prompt, start_params
from errand.cli.command import Command
from errand.cli.commands.run import confirm_workspace
from errand.cli.commands.tasks import status_text
from errand.cli.exit_codes import EXIT_STOPPED, exit_code
from errand.cli.follow.answers import NoAnswerer, PersonAnswerer
from errand.cli.follow.interrupts import Interrupts, OrderlyStop
from errand.cli.lookup import find_conversation, find_message, find_node
from errand.cli.options import Argument, CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.rendering.asks import ask_lines
from errand.cli.rendering.screen import TextScreen
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import short_id, side_by_side, usage_line
from errand.client.connection import Connection
from errand.client.conversation.task_watcher import Answerer, ShownMessage, TaskWatcher
from errand.client.launch import connect
from errand.client.number_format import duration, money, tokens
from errand.client.texts.tasks import is_unfinished, unfinished_text
from errand.protocol.blocks import TextBlock, ToolCallBlock
from errand.protocol.comparisons import (
    CONVERSATION_COMPARE,
    TASK_COMPARE_MODELS,
    BranchSide,
    ConversationCompareParams,
    TaskCompareModelsParams,
)
from errand.protocol.conversations import Node
from errand.protocol.events import AskUpdate, EventRecord, TaskUpdate
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import marked, tr, trn


class CompareOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...],
        Argument(
            "MESSAGE",
            ("the last message of each branch, by any part of its id (errand tree); may be followed by a conversation"),
        ),
    ]


async def compare(options: CompareOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand compare") as connection:
        left, right = await _ends(connection, options.arguments)
        params = ConversationCompareParams(a_node_id=left, b_node_id=right)
        comparison = await connection.call(CONVERSATION_COMPARE, params)
    sides = [
        (_heading(side, node_id), _text(side), _side_usage(side))
        for side, node_id in ((comparison.a, left), (comparison.b, right))
    ]
    output.result(comparison, *side_by_side(sides, output.width, output.style))
    return 0


COMPARE = Command(CompareOptions, compare, json_help=marked("print both branches as one JSON object"))


async def _ends(connection: Connection, words: tuple[str, ...]) -> tuple[str, str]:
    """Return the ids of both messages. With their conversation fewer others can have the same part."""
    match words:
        case [left, right]:
            return (await find_message(connection, left)).id, (await find_message(connection, right)).id
        case [part, left, right]:
            conversation = await find_conversation(connection, part)
            nodes = [await find_node(connection, conversation, name) for name in (left, right)]
            return nodes[0].id, nodes[1].id
        case _:
            raise UsageError(tr("Give two messages, one of each branch: errand compare MESSAGE MESSAGE"))


def _heading(side: BranchSide, node_id: str) -> str:
    models = dict.fromkeys(node.model for node in side.nodes if node.model)
    return ", ".join(models) or node_id


def _text(side: BranchSide) -> str:
    if not side.nodes:
        return tr("Nothing else here: the other branch continues from this point.")
    more = side.count - len(side.nodes)
    left = [tr("… and {entries}").format(entries=trn("{n} more entry", "{n} more entries", more))] if more else []
    return "\n\n".join([*filter(None, map(_node_text, side.nodes)), *left])


def _node_text(node: Node) -> str:
    lines = [
        block.text.strip() if isinstance(block, TextBlock) else tr("(calls {tool})").format(tool=block.tool)
        for block in node.blocks
        if isinstance(block, TextBlock | ToolCallBlock)
    ]
    text = "\n".join(line for line in lines if line)
    return f"> {text}" if text and node.is_from_person else text


def _side_usage(side: BranchSide) -> str:
    parts = (
        trn("{n} task", "{n} tasks", len(side.tasks)),
        tokens(side.usage),
        money(side.usage),
        duration(side.usage.seconds),
    )
    return " · ".join(part for part in parts if part)


class _Progress(TextScreen):
    """The number of answers so far, and asks; the answers appear when all are complete."""

    def __init__(self, terminal: Terminal, count: int) -> None:
        super().__init__(terminal)
        self._output = terminal
        self._count = count
        self._ended: set[str] = set()

    def show(self, conversation_id: str, message: ShownMessage) -> None:
        match message:
            case EventRecord(event=TaskUpdate(task=task)) if task.outcome.ended_at is not None:
                self._ended.add(task.id)
            case EventRecord(event=AskUpdate(ask=ask)) if ask.status == "waiting":
                self._output.write("\n".join(ask_lines(ask, self._output.style, self._output.width)) + "\n")
            case _:
                pass
        self.tick()

    def tick(self) -> None:
        self._output.status(tr("{ended} of {count} have answered").format(ended=len(self._ended), count=self._count))


class AskModelsOptions(CommandOptions, frozen=True, kw_only=True):
    prompt: Annotated[str, Argument("PROMPT", "the question; - reads standard input")]
    models: Annotated[tuple[str, ...], Option("-m", "a model to ask; give 2 to 8", "MODEL")] = ()
    conversation: Annotated[str | None, Option("--conversation", "continue this conversation", "ID")] = None
    task: TaskOptions = TaskOptions()


async def ask_models(options: AskModelsOptions, paths: Paths, output: CommandOutput) -> int:
    """Returns 0 if at least one model answered, else the exit code of the first task."""
    if len(options.models) < 2:
        raise UsageError(tr("Give at least two models: errand ask-models -m MODEL -m MODEL 'what to ask'"))
    attended = output.interactive
    start = start_params(
        read_prompt(options.prompt), TargetOptions(conversation=options.conversation), options.task, attended=attended
    )
    async with await connect(paths, "errand ask-models") as connection:
        if options.conversation is not None:
            conversation = await find_conversation(connection, options.conversation)
            start = msgspec.structs.replace(start, conversation_id=conversation.id)
        if attended:
            await confirm_workspace(connection, start, output)
        params = TaskCompareModelsParams(models=options.models, start=start)
        tasks = await _ask(connection, params, output.terminal, attended=attended)
    if not tasks:
        return EXIT_STOPPED
    for task in tasks:
        output.json(task)
    for line in _answer_columns(tasks, output.width, output.style):
        output.line(line)
    codes = [exit_code(task) for task in tasks]
    return 0 if 0 in codes else codes[0]


ASK_MODELS = Command(AskModelsOptions, ask_models, json_help=marked("print ended tasks as JSON lines"))


async def _ask(
    connection: Connection, params: TaskCompareModelsParams, terminal: Terminal, *, attended: bool
) -> tuple[Task, ...]:
    """Return the ended tasks; empty after a second Ctrl+C. The first Ctrl+C stops all of them."""
    before = connection.welcome
    stopper = OrderlyStop(connection, terminal)
    with Interrupts(stopper.stop) as interrupts:
        answers: Answerer = PersonAnswerer(terminal, interrupts) if attended else NoAnswerer(terminal)
        watch = TaskWatcher(connection, _Progress(terminal, len(params.models)), answers)
        try:
            tasks = (await connection.call(TASK_COMPARE_MODELS, params)).tasks
            for task in tasks:
                stopper.add(task.id)
            await watch.follow(tasks[0].conversation_id, after=before.head, epoch=before.epoch)
            await watch.until_ended([task.id for task in tasks])
        except asyncio.CancelledError:
            if interrupts.count < 2:
                raise
            await stopper.wait_accepted()
            return ()
        finally:
            watch.close()
            terminal.clear_status()
    return tuple(watch.tasks[task.id] for task in tasks)


def _answer_columns(tasks: tuple[Task, ...], width: int, style: Style) -> list[str]:
    columns = [
        (f"{task.request.model} · {short_id(task.id)}", _answer(task), usage_line(task, style)) for task in tasks
    ]
    return side_by_side(columns, width, style)


def _answer(task: Task) -> str:
    if task.outcome.stop_reason == "completed":
        return f"({unfinished_text(task)})\n\n{task.outcome.summary}" if is_unfinished(task) else task.outcome.summary
    return task.outcome.error or tr("No answer: {reason}.").format(reason=status_text(task))

"""`errand steer`, `answer`: what a person says to a task that is at work, from any terminal."""

from typing import Annotated

import msgspec

from errand.cli.arguments import ID_HELP, UsageError, attachment_path, read_prompt
from errand.cli.command import Command
from errand.cli.exit_codes import EXIT_STOPPED
from errand.cli.lookup import find_task, only_match
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.rendering.ask_choices import hint_lines, short_hint
from errand.cli.rendering.asks import ask_lines, outcome_text
from errand.cli.rendering.typed_answers import AskInput, InvalidReply, read_reply
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import escape_hidden_line, one_line, short_id
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.asks import ASK_ANSWER, ASK_LIST, Ask, AskAnswerParams, AskListParams
from errand.protocol.tasks.methods import TASK_FOLLOW_UP, TASK_GET, TASK_STEER, TaskIdParams, TaskMessageParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import marked, tr

_EXAMPLES = tr(
    "examples:\n  errand answer                  list open questions and approvals of all "
    "tasks\n  errand answer 3f2a friendly    answer a question, with text or a number\n  "
    "errand answer 3f2a a           allow a call once; v shows all of it\n  errand answer "
    "3f2a r use /tmp  deny it and say why\n"
)


class SteerOptions(CommandOptions, frozen=True, kw_only=True):
    task_id: Annotated[str, Argument("ID", ID_HELP)]
    text: Annotated[str, Argument("TEXT", "the message; - reads standard input")]
    later: Annotated[
        bool, Flag("--later", "queue the message until the current work is done, instead of steering it")
    ] = False
    attach: Annotated[tuple[str, ...], Option("--attach", "attach a picture or a file; can be repeated", "FILE")] = ()


async def steer(options: SteerOptions, paths: Paths, output: CommandOutput) -> int:
    text = read_prompt(options.text)
    files = tuple(map(attachment_path, options.attach))
    async with await connect(paths, "errand steer") as connection:
        task = await find_task(connection, options.task_id)
        if task.outcome.ended_at is not None:
            raise UsageError(
                tr(
                    "Task {id} has ended. Continue its conversation: errand run --conversation {conversation_id} '…'"
                ).format(id=short_id(task.id), conversation_id=short_id(task.conversation_id))
            )
        method = TASK_FOLLOW_UP if options.later else TASK_STEER
        params = TaskMessageParams(task_id=task.id, text=text, attachments=files)
        changed = (await connection.call(method, params)).task
    text = tr("Task {id} {told}").format(id=short_id(task.id), told=_reads_text(changed, later=options.later))
    output.result(changed, text)
    return 0


STEER = Command(SteerOptions, steer, json_help=marked("print the task as one JSON object"))


def _reads_text(task: Task, *, later: bool) -> str:
    name = short_id(task.id)
    if task.activity.status in ("paused", "interrupted"):
        return tr("reads this when it resumes: errand resume {name}").format(name=name)
    if task.activity.status == "waiting_user":
        return tr("reads this once its question is answered: errand answer {name}").format(name=name)
    return tr("reads this when its current work is done.") if later else tr("reads this before its next step.")


class AnswerOptions(CommandOptions, frozen=True, kw_only=True):
    ask_id: Annotated[str, Argument("ID", "the question or approval, or its task: a unique part of the id")] = ""
    arguments: Annotated[
        tuple[str, ...], Argument("ANSWER", "the answer, as you would type it in the terminal of the task")
    ] = ()


async def answer(options: AnswerOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand answer") as connection:
        if not options.ask_id:
            await _list(connection, output)
            return 0
        ask = await _find_ask(connection, options.ask_id)
        text = " ".join(options.arguments)
        if text or not output.interactive:
            return await _answer_with(connection, ask, text, output)
        for line in (
            *ask_lines(ask, output.style, output.width),
            *map(output.style.dim, hint_lines(ask, output.width)),
        ):
            output.line(line)
        reply = await _typed(ask, output.terminal)
        if reply is None:
            output.note(tr("errand: nothing was answered; the task is still waiting"))
            return EXIT_STOPPED
        return await _send(connection, ask, reply, output)


ANSWER = Command(
    AnswerOptions, answer, epilog=_EXAMPLES, json_help=marked("print open or answered questions as JSON lines")
)


async def _list(connection: Connection, output: CommandOutput) -> None:
    asks = (await connection.call(ASK_LIST, AskListParams())).asks
    tasks = {
        ask.id: (await connection.call(TASK_GET, TaskIdParams(task_id=ask.task_id))).task
        for ask in (() if output.as_json else asks)
    }

    def lines_of(ask: Ask) -> list[str]:
        task, style, width = tasks[ask.id], output.style, output.width
        head = (
            f"{short_id(ask.id)}  {one_line(escape_hidden_line(task.origin.title or task.request.prompt), width - 12)}"
        )
        hint = f"  errand answer {short_id(ask.id)} …  {short_hint(ask)}"
        gap = [] if ask is asks[0] else [""]
        return [*gap, style.dim(head), *ask_lines(ask, style, width), style.dim(hint)]

    output.each(asks, lines_of, empty=tr("Nothing waits for an answer."))


async def _find_ask(connection: Connection, part: str) -> Ask:
    """Return the open ask with this part in its id, or that of its task or conversation; raises `UsageError`."""
    asks = (await connection.call(ASK_LIST, AskListParams())).asks
    matches = [ask for ask in asks if part in ask.id]
    if not matches:
        task = await find_task(connection, part)
        of_task = [ask for ask in asks if ask.task_id == task.id]
        matches = of_task or [ask for ask in asks if ask.conversation_id == task.conversation_id]
        if not matches:
            raise UsageError(
                tr("Task {id} does not wait for an answer. See what does: errand answer").format(id=short_id(task.id))
            )
    return only_match(part, matches, "questions", lambda ask: ask.text)


async def _answer_with(connection: Connection, ask: Ask, text: str, output: CommandOutput) -> int:
    reply = read_reply(ask, text)
    if isinstance(reply, AskAnswerParams):
        return await _send(connection, ask, reply, output)
    if text.strip() != "v":
        raise UsageError(reply.text)
    output.result(ask, reply.text)
    return 0


async def _typed(ask: Ask, terminal: Terminal) -> AskAnswerParams | None:
    """Read an answer; None if the person leaves it open."""
    typing = AskInput(ask)
    while True:
        try:
            reply = typing.read(await terminal.ask(typing.prompt))
        except (KeyboardInterrupt, EOFError):
            return None
        if not isinstance(reply, InvalidReply):
            return reply
        terminal.line(terminal.style.amber(f"  {reply.text}"))


async def _send(connection: Connection, ask: Ask, reply: AskAnswerParams, output: CommandOutput) -> int:
    if ask.approval is not None:  # bound to what was shown
        reply = msgspec.structs.replace(reply, basis=ask.approval.basis)
    answered = await connection.call(ASK_ANSWER, reply)
    before = "" if answered.won else tr("was already settled: ")
    output.result(answered.ask, f"{short_id(ask.id)} {before}{outcome_text(answered.ask)}")
    return 0

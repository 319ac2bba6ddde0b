"""`errand context`, `output`, `prompt`, `record`: a task's model input, tool calls, prompt and record."""

import codecs
import os
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated

from errand.cli.arguments import ID_HELP, TaskIdOptions, UsageError, path_text
from errand.cli.command import Command
from errand.cli.commands.run import find_personality
from errand.cli.lookup import find_task
from errand.cli.options import Argument, CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import aligned, columns, one_line, plain, short_path
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.number_format import file_size
from errand.client.texts.context import CONTEXT_PARTS, PROMPT_PARTS, findable_text, part_items_text
from errand.protocol.context import (
    CONTEXT_EXPLAIN,
    PROMPT_GET,
    ContextExplainParams,
    ContextExplainResult,
    ContextItem,
    ContextShare,
    PromptGetParams,
    PromptPart,
    PromptShare,
)
from errand.protocol.executions import (
    EXECUTION_LIST,
    EXECUTION_OUTPUT,
    Execution,
    ExecutionListParams,
    ExecutionOutcome,
    ExecutionOutputParams,
    OutputName,
)
from errand.protocol.tasks.groups import TaskMode
from errand.protocol.tasks.methods import TASK_RECORD, TaskIdParams
from errand.system.paths import Paths
from errand.system.regular_file import atomic_writer, check_write_path
from errand.text.notice_text import prompt_remark_text
from errand.text.translation import marked, tr, trn

_MAX_ENTRIES = 10


async def show_context(options: TaskIdOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand context") as connection:
        task = await find_task(connection, options.task_id)
        context = await connection.call(CONTEXT_EXPLAIN, ContextExplainParams(task_id=task.id, largest=_MAX_ENTRIES))
    output.result(context, *format_context(context, output.style, output.width))
    return 0


CONTEXT = Command(TaskIdOptions, show_context, json_help=marked("print everything as one JSON object"))


def format_context(context: ContextExplainResult, style: Style, width: int) -> list[str]:
    """Return the total, one line per part, and the largest entries."""
    if not context.used_tokens:
        return [tr("This task has no counted replies yet.")]
    total = trn("{n} token", "{n} tokens", context.used_tokens)
    if context.window_tokens:
        share = f"{context.used_tokens / context.window_tokens:.0%}".replace("%", " %")
        total = tr("{used} of {window_tokens:,} of the context window of {model}, {share}").format(
            used=total, window_tokens=context.window_tokens, model=context.model, share=share
        )
    rows = [row for share in context.shares for row in _share(share, context.prompt)]
    lines = [style.bold(tr("Turn {turn}: {used}").format(turn=context.turn, used=total)), *_rows(rows, width)]
    if context.largest:
        lines += ["", style.dim(tr("Largest entries"))]
        lines += _rows([_item(item) for item in context.largest], width)
    return lines


def _share(share: ContextShare, prompt: Sequence[PromptShare]) -> list[tuple[str, str]]:
    """Return a part; for the system prompt also its own parts."""
    name, items = CONTEXT_PARTS[share.part], part_items_text(share.part, share.items)
    row = f"{share.tokens:,}", f"{name} ({items})" if items else name
    findable = [("", f"- {text}")] if (text := findable_text(share)) else []
    return [row, *findable, *(map(_prompt_part, prompt) if share.part == "system" else ())]


def _prompt_part(part: PromptShare) -> tuple[str, str]:
    sources = f" · {', '.join(map(short_path, part.sources))}" if part.part == "instructions" else ""
    return f"{part.tokens:,}", f"- {PROMPT_PARTS[part.part]}{sources}"


def _item(item: ContextItem) -> tuple[str, str]:
    return f"{item.tokens:,}", f"{CONTEXT_PARTS[item.part]}: {item.text}"


def _rows(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    room = width - max((columns(number) for number, _ in rows), default=0) - 4
    return [f"  {line}" for line in aligned([(number, one_line(text, room)) for number, text in rows], right=(0,))]


_OUTCOMES: dict[ExecutionOutcome, str] = {
    "failed": marked("failed"),
    "stopped": marked("stopped"),
    "refused": marked("refused"),
}


class OutputOptions(TaskIdOptions, frozen=True, kw_only=True):
    number: Annotated[int | None, Argument("CALL", "number of the call in the list")] = None


async def show_output(options: OutputOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand output") as connection:
        task = await find_task(connection, options.task_id)
        executions = (await connection.call(EXECUTION_LIST, ExecutionListParams(task_id=task.id))).executions
        if options.number is None:
            _list(executions, output)
        elif not 1 <= options.number <= len(executions):
            text = tr("This task has {found} tool calls. List them: errand output {task_id}")
            raise UsageError(text.format(found=len(executions), task_id=options.task_id))
        else:
            await _show(connection, executions[options.number - 1], output)
    return 0


OUTPUT = Command(OutputOptions, show_output)


def _list(executions: tuple[Execution, ...], output: CommandOutput) -> None:
    numbers = {execution.id: number for number, execution in enumerate(executions, 1)}

    def lines_of(execution: Execution) -> list[str]:
        style = output.style
        about = one_line(execution.about or execution.tool, max(20, output.width - 40))
        summary = execution.summary if execution.ended_at is not None else tr("no recorded result")
        outcome = tr(_OUTCOMES[execution.outcome]) if execution.outcome in _OUTCOMES else ""
        largest = max((stored.size for stored in execution.outputs), default=0)
        result = style.dim(style.join(outcome, one_line(summary, 60), file_size(largest)))
        return [f"{numbers[execution.id]:>3}  {about}  {result}"]

    output.each(executions, lines_of, empty=tr("This task has used no tools."))


async def _show(connection: Connection, execution: Execution, output: CommandOutput) -> None:
    """Print the streams that were stored in full, or else the text that the model read."""
    streams: list[OutputName] = [stored.name for stored in execution.outputs if stored.name != "text"]
    for name in streams or ["text"]:
        if output.as_json:
            text = "".join([part async for part in _parts(connection, execution.id, name)])
            output.json({"name": name, "text": text})
            continue
        if len(streams) > 1:
            output.note(f"errand: {name}")
        async for part in _parts(connection, execution.id, name):
            output.terminal.write_raw(plain(part) if output.interactive else part)


async def _parts(connection: Connection, execution_id: str, name: OutputName) -> AsyncIterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a part may end within a character
    offset: int | None = 0
    while offset is not None:
        params = ExecutionOutputParams(execution_id=execution_id, name=name, offset=offset)
        part = await connection.call(EXECUTION_OUTPUT, params)
        yield decoder.decode(b64decode(part.data), final=part.next_offset is None)
        offset = part.next_offset


class PromptOptions(CommandOptions, frozen=True, kw_only=True):
    task_id: Annotated[str, Argument("ID", ID_HELP)] = ""
    personality: Annotated[str | None, Option("--personality", "personality (default: assistant)", "NAME")] = None
    workspace: Annotated[str | None, Option("--workspace", "folder to use (default: the current one)", "DIR")] = None
    mode: Annotated[TaskMode, Option("--mode", "the prompt of a task, or of a chat")] = "auto"


async def show_prompt(options: PromptOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand prompt") as connection:
        parts = (await connection.call(PROMPT_GET, await _params(options, connection))).parts
    empty = tr("No prompt is stored: the task has not called a model yet, or is older than stored prompts.")
    output.result(parts, *[line for part in parts for line in _part_lines(part, output.style)])
    if not parts:
        output.note(empty)
    return 0


PROMPT = Command(PromptOptions, show_prompt, json_help=marked("print the parts as one JSON list"))


def _part_lines(part: PromptPart, style: Style) -> list[str]:
    sources = f" · {', '.join(part.sources)}" if part.sources else ""
    size = trn("{n} character", "{n} characters", len(part.text))
    remarks = [remark if isinstance(remark, str) else prompt_remark_text(remark) for remark in part.remarks]
    return [
        style.bold(f"{part.name} · {size}{plain(sources)}"),
        *(style.amber(f"{style.sign('warn')} {plain(remark)}") for remark in remarks),
        f"{plain(part.text)}\n",
    ]


async def _params(options: PromptOptions, connection: Connection) -> PromptGetParams:
    if options.task_id:
        return PromptGetParams(task_id=(await find_task(connection, options.task_id)).id)
    name = options.personality
    personality = await find_personality(connection, name) if name is not None else None
    return PromptGetParams(
        personality_id=personality.id if personality is not None else None,
        workspace=_folder(options.workspace),
        chat=options.mode == "chat",
    )


def _folder(path: str | None) -> str:
    return path_text(Path(os.path.expanduser(path or ".")).absolute())


class RecordOptions(TaskIdOptions, frozen=True, kw_only=True):
    to: Annotated[str, Option("--to", "the file to write; it must not exist", "FILE")] = ""


async def write_record(options: RecordOptions, paths: Paths, output: CommandOutput) -> int:
    if not options.to and not output.as_json:
        raise UsageError(tr("Give a file with --to FILE, or use --json for standard output."))
    async with await connect(paths, "errand record") as connection:
        task = await find_task(connection, options.task_id)
        lines = (await connection.call(TASK_RECORD, TaskIdParams(task_id=task.id))).lines
    record = "".join(f"{line}\n" for line in lines)
    if not options.to:
        output.terminal.write_raw(record)
        return 0
    file = Path(options.to)
    _write_record(file, record, paths)
    text = tr("Wrote {lines} lines to {file}. Replay it: errand replay {file}").format(file=file, lines=len(lines))
    output.result({"file": str(file), "lines": len(lines)}, text)
    output.note(
        tr("It contains messages and file contents that the agent saw, but no keys. Review it before you share it.")
    )
    return 0


RECORD = Command(RecordOptions, write_record, json_help=marked("print the record as JSON lines"))


def _write_record(file: Path, text: str, paths: Paths) -> None:
    """Write a file that only its owner can read, like the texts of a conversation."""
    try:
        check_write_path(file, paths, overwrite=False)
        with atomic_writer(file, overwrite=False) as opened:
            opened.write(text.encode())
    except OSError as error:
        raise UsageError(
            tr("{file} cannot be written: {strerror}. Choose another place.").format(file=file, strerror=error.strerror)
        ) from error

"""`errand context`, `output`, `prompt`, `record`: a task's model input, tool calls, prompt and record."""

import codecs
import os
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from errand.cli.arguments import ID_HELP, TaskIdOptions, UsageError, path_text
from errand.cli.command import Command
from errand.cli.commands.run import find_personality
from errand.cli.lookup import find_task
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import columns, one_line, plain, short_path
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.number_format import file_size
from errand.client.texts.context import CONTEXT_PARTS, PROMPT_PARTS, part_items_text
from errand.protocol.context import (
    CONTEXT_EXPLAIN,
    PROMPT_GET,
    ContextExplainParams,
    ContextExplainResult,
    ContextItem,
    ContextShare,
    PromptGetParams,
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
from errand.protocol.tasks import TASK_RECORD, TaskIdParams, TaskMode
from errand.system.paths import Paths
from errand.system.regular_file import atomic_writer, check_write_path
from errand.text.notice_text import prompt_remark_text
from errand.text.translation import marked, tr, trn

_MAX_ENTRIES = 10


class ContextOptions(TaskIdOptions, frozen=True, kw_only=True):
    json: Annotated[bool, Flag("--json", "print everything as one JSON object")] = False


async def show_context(options: ContextOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand context") as connection:
        task = await find_task(connection, options.task_id)
        found = await connection.call(CONTEXT_EXPLAIN, ContextExplainParams(task_id=task.id, largest=_MAX_ENTRIES))
    if options.json:
        terminal.line(msgspec.json.encode(found).decode())
        return 0
    for line in format_context(found, terminal.style, terminal.width):
        terminal.line(line)
    return 0


CONTEXT = Command(ContextOptions, show_context)


def format_context(found: ContextExplainResult, style: Style, width: int) -> list[str]:
    """The total, one line per part, and the largest entries."""
    if not found.used_tokens:
        return [tr("This task has no counted replies yet.")]
    used = trn("{n} token", "{n} tokens", found.used_tokens)
    if found.window_tokens:
        share = f"{found.used_tokens / found.window_tokens:.0%}".replace("%", " %")
        used = tr("{used} of {window_tokens:,} of the context window of {model}, {share}").format(
            used=used, window_tokens=found.window_tokens, model=found.model, share=share
        )
    rows = [row for share in found.shares for row in _share(share, found.prompt)]
    lines = [style.bold(tr("Turn {turn}: {used}").format(turn=found.turn, used=used)), *_rows(rows, width)]
    if found.largest:
        lines += ["", style.dim(tr("Largest entries"))]
        lines += _rows([_item(item) for item in found.largest], width)
    return lines


def _share(share: ContextShare, prompt: Sequence[PromptShare]) -> list[tuple[str, str]]:
    """A part; for the system prompt also its own parts."""
    name, items = CONTEXT_PARTS[share.part], part_items_text(share.part, share.items)
    whole = f"{share.tokens:,}", f"{name} ({items})" if items else name
    return [whole, *map(_prompt_part, prompt)] if share.part == "system" else [whole]


def _prompt_part(part: PromptShare) -> tuple[str, str]:
    sources = f" · {', '.join(map(short_path, part.sources))}" if part.part == "instructions" else ""
    return f"{part.tokens:,}", f"- {PROMPT_PARTS[part.part]}{sources}"


def _item(item: ContextItem) -> tuple[str, str]:
    return f"{item.tokens:,}", f"{CONTEXT_PARTS[item.part]}: {item.text}"


def _rows(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    widest = max((columns(number) for number, _ in rows), default=0)
    return [f"  {number.rjust(widest)}  {one_line(text, width - widest - 4)}" for number, text in rows]


_OUTCOMES: dict[ExecutionOutcome, str] = {
    "failed": marked("failed"),
    "stopped": marked("stopped"),
    "refused": marked("refused"),
}


class OutputOptions(TaskIdOptions, frozen=True, kw_only=True):
    number: Annotated[int | None, Argument("CALL", "number of the call in the list")] = None
    json: Annotated[bool, Flag("--json", "print the list as JSON lines")] = False


async def show_output(options: OutputOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand output") as connection:
        task = await find_task(connection, options.task_id)
        found = (await connection.call(EXECUTION_LIST, ExecutionListParams(task_id=task.id))).executions
        if options.number is None:
            _list(found, options, terminal)
        elif not 1 <= options.number <= len(found):
            raise UsageError(
                tr("This task has {found} tool calls. List them: errand output {task_id}").format(
                    found=len(found), task_id=options.task_id
                )
            )
        else:
            await _show(connection, found[options.number - 1], terminal)
    return 0


OUTPUT = Command(OutputOptions, show_output)


def _list(found: tuple[Execution, ...], options: OutputOptions, terminal: Terminal) -> None:
    if not found and not options.json:
        terminal.line(tr("This task has used no tools."))
    for number, execution in enumerate(found, 1):
        if options.json:
            terminal.line(msgspec.json.encode(execution).decode())
            continue
        style = terminal.style
        about = one_line(execution.about or execution.tool, max(20, terminal.width - 40))
        gave = execution.summary if execution.ended_at is not None else tr("no recorded result")
        outcome = tr(_OUTCOMES[execution.outcome]) if execution.outcome in _OUTCOMES else ""
        largest = max((output.size for output in execution.outputs), default=0)
        result = style.dim(style.join(outcome, one_line(gave, 60), file_size(largest)))
        terminal.line(f"{number:>3}  {about}  {result}")


async def _show(connection: Connection, execution: Execution, terminal: Terminal) -> None:
    """Streams that were stored in full, or else the text that the model read."""
    whole: list[OutputName] = [output.name for output in execution.outputs if output.name != "text"]
    for name in whole or ["text"]:
        if len(whole) > 1:
            terminal.note(f"errand: {name}")
        await _write(connection, execution.id, name, terminal)


async def _write(connection: Connection, execution_id: str, name: OutputName, terminal: Terminal) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a piece may end within a character
    offset: int | None = 0
    while offset is not None:
        params = ExecutionOutputParams(execution_id=execution_id, name=name, offset=offset)
        piece = await connection.call(EXECUTION_OUTPUT, params)
        text = decoder.decode(b64decode(piece.data), final=piece.next_offset is None)
        terminal.write_raw(plain(text) if terminal.interactive else text)
        offset = piece.next_offset


class PromptOptions(CommandOptions, frozen=True, kw_only=True):
    task_id: Annotated[str, Argument("ID", ID_HELP)] = ""
    personality: Annotated[str | None, Option("--personality", "personality (default: assistant)", "NAME")] = None
    workspace: Annotated[str | None, Option("--workspace", "folder to use (default: the current one)", "DIR")] = None
    mode: Annotated[TaskMode, Option("--mode", "the prompt of a task, or of a chat")] = "auto"
    json: Annotated[bool, Flag("--json", "print the parts as one JSON list")] = False


async def show_prompt(options: PromptOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand prompt") as connection:
        parts = (await connection.call(PROMPT_GET, await _params(options, connection))).parts
    if options.json:
        terminal.line(msgspec.json.encode(parts).decode())
        return 0
    if not parts:
        terminal.line(tr("No prompt is stored: the task has not called a model yet, or is older than stored prompts."))
    for part in parts:
        sources = f" · {', '.join(part.sources)}" if part.sources else ""
        terminal.line(
            terminal.style.bold(
                f"{part.name} · {trn('{n} character', '{n} characters', len(part.text))}{plain(sources)}"
            )
        )
        for remark in part.remarks:
            text = remark if isinstance(remark, str) else prompt_remark_text(remark)
            terminal.line(terminal.style.amber(f"{terminal.style.sign('warn')} {plain(text)}"))
        terminal.line(f"{plain(part.text)}\n")
    return 0


PROMPT = Command(PromptOptions, show_prompt)


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


def _folder(given: str | None) -> str:
    return path_text(Path(os.path.expanduser(given or ".")).absolute())


class RecordOptions(TaskIdOptions, frozen=True, kw_only=True):
    to: Annotated[str, Option("--to", "the file to write; it must not exist", "FILE")] = ""
    json: Annotated[bool, Flag("--json", "print the record as JSON lines")] = False


async def write_record(options: RecordOptions, paths: Paths, terminal: Terminal) -> int:
    if bool(options.to) == options.json:
        raise UsageError(tr("Give a file with --to FILE, or use --json for standard output."))
    async with await connect(paths, "errand record") as connection:
        task = await find_task(connection, options.task_id)
        lines = (await connection.call(TASK_RECORD, TaskIdParams(task_id=task.id))).lines
    whole = "".join(f"{line}\n" for line in lines)
    if options.json:
        terminal.write_raw(whole)
        return 0
    file = Path(options.to)
    _write_record(file, whole, paths)
    terminal.line(
        tr("Wrote {lines} lines to {file}. Replay it: errand replay {file}").format(file=file, lines=len(lines))
    )
    terminal.note(
        tr("It contains messages and file contents that the agent saw, but no keys. Review it before you share it.")
    )
    return 0


RECORD = Command(RecordOptions, write_record)


def _write_record(file: Path, text: str, paths: Paths) -> None:
    """Readable by its owner only, like the texts of a conversation."""
    try:
        check_write_path(file, paths, overwrite=False)
        with atomic_writer(file, overwrite=False) as opened:
            opened.write(text.encode())
    except OSError as error:
        raise UsageError(
            tr("{file} cannot be written: {strerror}. Choose another place.").format(file=file, strerror=error.strerror)
        ) from error

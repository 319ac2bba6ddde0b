"""`errand context`: what the newest turn of a task sent to its model, by part, and its largest entries."""

from collections.abc import Sequence

import msgspec

from app.cli.options import Options
from app.cli.plain import columns, one_line, short_path
from app.cli.style import Style
from app.cli.tasks import find_task
from app.cli.terminal import Terminal
from app.client.context_words import PARTS, PROMPT_PARTS
from app.client.figures import count
from app.client.launch import connect
from app.paths import Paths
from app.protocol.context import ContextExplainParams, ContextExplainResult, ContextItem, ContextShare, PromptShare
from app.protocol.wire import CONTEXT_EXPLAIN

_LARGEST = 10


async def context(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand context")
    try:
        task = await find_task(connection, options.task_id)
        found = await connection.call(CONTEXT_EXPLAIN, ContextExplainParams(task_id=task.id, largest=_LARGEST))
    finally:
        await connection.close()
    if options.json:
        terminal.line(msgspec.json.encode(found).decode())
        return 0
    for line in context_lines(found, terminal.style, terminal.width):
        terminal.line(line)
    return 0


def context_lines(found: ContextExplainResult, style: Style, width: int) -> list[str]:
    """The whole, a line for each part, and the largest entries below."""
    if not found.used_tokens:
        return ["No reply of this task was counted yet."]
    used = count(found.used_tokens, "token")
    if found.window_tokens:
        share = f"{found.used_tokens / found.window_tokens:.0%}".replace("%", " %")
        used = f"{used} of {found.window_tokens:,} that {found.model} can read, {share}"
    rows = [row for share in found.shares for row in _share(share, found.prompt)]
    lines = [style.bold(f"Turn {found.turn}: {used}"), *_rows(rows, width)]
    if found.largest:
        lines += ["", style.dim("The largest entries")]
        lines += _rows([_item(item) for item in found.largest], width)
    return lines


def _share(share: ContextShare, prompt: Sequence[PromptShare]) -> list[tuple[str, str]]:
    """A part, and below the instructions what they are made of."""
    name, noun = PARTS[share.part]
    whole = f"{share.tokens:,}", f"{name} ({count(share.items, noun)})" if noun else name
    return [whole, *map(_prompt_part, prompt)] if share.part == "system" else [whole]


def _prompt_part(part: PromptShare) -> tuple[str, str]:
    sources = f" · {', '.join(map(short_path, part.sources))}" if part.part == "instructions" else ""
    return f"{part.tokens:,}", f"- {PROMPT_PARTS[part.part]}{sources}"


def _item(item: ContextItem) -> tuple[str, str]:
    return f"{item.tokens:,}", f"{PARTS[item.part][0]}: {item.text}"


def _rows(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    widest = max((columns(number) for number, _ in rows), default=0)
    return [f"  {number.rjust(widest)}  {one_line(text, width - widest - 4)}" for number, text in rows]

"""`errand prompt`: the system prompt of a task, or of one that would start here, part by part with sizes."""

import os
from pathlib import Path

import msgspec

from app.cli.options import Options
from app.cli.plain import plain
from app.cli.run import as_text, find_personality
from app.cli.tasks import find_task
from app.cli.terminal import Terminal
from app.client.connection import Connection
from app.client.figures import count
from app.client.launch import connect
from app.paths import Paths
from app.protocol.prompts import PromptGetParams
from app.protocol.wire import PROMPT_GET


async def prompt(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand prompt")
    try:
        parts = (await connection.call(PROMPT_GET, await _params(options, connection))).parts
    finally:
        await connection.close()
    if options.json:
        terminal.line(msgspec.json.encode(parts).decode())
        return 0
    if not parts:
        terminal.line("Its prompt was not kept: the task has not asked a model yet, or ran before prompts were kept.")
    for part in parts:
        sources = f" · {', '.join(part.sources)}" if part.sources else ""
        terminal.line(terminal.style.bold(f"{part.name} · {count(len(part.text), 'character')}{plain(sources)}"))
        for remark in part.remarks:
            terminal.line(terminal.style.amber(f"{terminal.style.sign('warn')} {plain(remark)}"))
        terminal.line(f"{plain(part.text)}\n")
    return 0


async def _params(options: Options, connection: Connection) -> PromptGetParams:
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
    return as_text(Path(os.path.expanduser(given or ".")).absolute())

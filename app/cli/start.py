"""`errand` alone: what was found, the first choice a newcomer makes, then the conversation or the tour."""

from app.cli.chat import chat
from app.cli.models import ready_lines
from app.cli.options import Options
from app.cli.plain import plain
from app.cli.terminal import Terminal
from app.cli.tour import play
from app.client.connection import Connection
from app.client.launch import connect
from app.paths import Paths
from app.protocol.models import ModelListParams, ModelListResult
from app.protocol.settings import SettingsGetParams, SettingsSetParams
from app.protocol.tasks import TaskListParams
from app.protocol.wire import MODEL_LIST, SETTINGS_GET, SETTINGS_SET, TASK_LIST

_MOST_OFFERED = 9


async def start(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand")
    try:
        found = await connection.call(MODEL_LIST, ModelListParams(refresh=True))
        if found.default is None:
            terminal.line("No API key, no local model server and no default model: this is the guided tour.\n")
            return await play(connection, paths, terminal)
        for line in ready_lines(found, terminal.style):
            terminal.line(line)
        if not terminal.interactive:
            terminal.line(f"default model: {found.default}. Hand over a task: errand run 'what to do'")
            return 0
        terminal.line(f"model: {plain(found.default)}")
        wants_tour = await _is_new(connection) and await _first_choice(connection, found, terminal)
        if wants_tour:
            return await play(connection, paths, terminal)
    finally:
        await connection.close()
    return await chat(options, paths, terminal)


async def _is_new(connection: Connection) -> bool:
    """True until a task was started or a default model was chosen."""
    tasks = (await connection.call(TASK_LIST, TaskListParams(limit=1))).tasks
    settings = (await connection.call(SETTINGS_GET, SettingsGetParams())).settings
    chosen = any(setting.name == "default_model" and setting.value for setting in settings)
    return not tasks and not chosen


async def _first_choice(connection: Connection, found: ModelListResult, terminal: Terminal) -> bool:
    """Let the person choose the default model; True for the tour instead."""
    local = {provider.name for provider in found.providers if provider.local and provider.ready}
    names = [found.default or "", *(model.id for model in found.models if model.provider in local)]
    offered = list(dict.fromkeys(names))[:_MOST_OFFERED]
    for number, name in enumerate(offered, start=1):
        terminal.line(f"  {number}  {plain(name)}{'  (Enter)' if number == 1 else ''}")
    terminal.line("  t  the guided tour: scripted replies, real tools")
    while True:
        try:
            choice = (await terminal.ask("a number, t, or another model id (errand models) > ")).strip()
        except (EOFError, KeyboardInterrupt):
            return False
        if choice.lower() in ("", "t"):
            return choice != ""
        name = offered[int(choice) - 1] if choice.isdecimal() and 1 <= int(choice) <= len(offered) else choice
        if "/" in name.strip("/"):
            await connection.call(SETTINGS_SET, SettingsSetParams(name="default_model", value=name))
            return False
        terminal.line(terminal.style.amber(f"{plain(name)!r} is no model id: write provider/model, as in the list."))

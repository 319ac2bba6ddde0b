"""`errand` without arguments: lists providers, offers the first choice, then starts a chat or the tour."""

from typing import Annotated, Literal, TypeAlias

from errand.cli.command import Command
from errand.cli.commands.chat import ChatOptions, chat
from errand.cli.commands.models import format_ready
from errand.cli.commands.tour import play
from errand.cli.exit_codes import EXIT_STOPPED
from errand.cli.options import Argument, CommandOptions, Flag
from errand.cli.output import CommandOutput
from errand.cli.terminal.text import plain
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.settings import (
    MODEL_LIST,
    SETTINGS_GET,
    SETTINGS_SET,
    ModelListParams,
    ModelListResult,
    SettingsGetParams,
    SettingsSetParams,
)
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.system.paths import Paths
from errand.text.translation import tr

_MAX_SUGGESTIONS = 9

_Choice: TypeAlias = Literal["chat", "tour", "leave"]


class ReplayOptions(CommandOptions, frozen=True, kw_only=True):
    file: Annotated[str, Argument("FILE", "a file written by errand record")]


class WindowOptions(CommandOptions, frozen=True, kw_only=True):
    new: Annotated[bool, Flag("--new", "open another window")] = False


async def start(options: CommandOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand") as connection:
        models = await connection.call(MODEL_LIST, ModelListParams(refresh=True))
        if models.default is None:
            output.line(tr("No API key, local model server or default model was found, so this is the guided tour.\n"))
            return await play(connection, paths, output.terminal)
        for line in format_ready(models, output.style):
            output.line(line)
        if not output.interactive:
            output.line(
                tr("default model: {default}. Start a task: errand run 'what to do'").format(default=models.default)
            )
            return 0
        output.line(tr("model: {default}").format(default=plain(models.default)))
        chosen = await _first_choice(connection, models, output) if await _is_new(connection) else "chat"
        if chosen == "leave":
            return EXIT_STOPPED
        if chosen == "tour":
            return await play(connection, paths, output.terminal)
    return await chat(ChatOptions(), paths, output)


START = Command(CommandOptions, start)
REPLAY = Command(ReplayOptions, start)
WINDOW = Command(WindowOptions, start)


async def _is_new(connection: Connection) -> bool:
    """Return whether no task was started and no default model was chosen yet."""
    tasks = (await connection.call(TASK_LIST, TaskListParams(limit=1))).tasks
    settings = (await connection.call(SETTINGS_GET, SettingsGetParams())).settings
    chosen = any(setting.name == "default_model" and setting.value for setting in settings)
    return not tasks and not chosen


async def _first_choice(connection: Connection, found: ModelListResult, output: CommandOutput) -> _Choice:
    """Let the person choose the default model or the tour; Ctrl+C and Ctrl+D leave."""
    local = {provider.name for provider in found.providers if provider.local and provider.ready}
    names = [found.default or "", *(model.id for model in found.models if model.provider in local)]
    offered = list(dict.fromkeys(names))[:_MAX_SUGGESTIONS]
    for number, name in enumerate(offered, start=1):
        output.line(f"  {number}  {plain(name)}{'  (Enter)' if number == 1 else ''}")
    output.line(tr("  t  the guided tour: scripted replies, real tools"))
    while True:
        try:
            typed = (await output.terminal.ask(tr("a number, t, or another model id (errand models) > "))).strip()
        except (EOFError, KeyboardInterrupt):
            output.line(tr("Nothing was chosen."))
            return "leave"
        if typed.lower() in ("", "t"):
            return "tour" if typed else "chat"
        listed = {str(number): name for number, name in enumerate(offered, start=1)}
        name = listed.get(typed, typed)
        if "/" in name.strip("/"):
            await connection.call(SETTINGS_SET, SettingsSetParams(name="default_model", value=name))
            return "chat"
        problem = (
            tr("{typed} is not in the list").format(typed=typed)
            if typed.isdecimal()
            else tr("{name!r} is not a model id").format(name=plain(name))
        )
        output.line(
            output.style.amber(
                tr("{problem}: type a number from the list, or a provider/model.").format(problem=problem)
            )
        )

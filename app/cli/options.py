"""The command-line declaration: every command, its options and their help. Runs nothing."""

import argparse
import sys
from typing import Literal

from app.arguments import Parser

ABOUT = "Errand hands work to AI agents that use real tools on your machine."
EXIT_CODES = (
    "Exit codes: 0 completed, 1 error, 2 usage, 3 a limit was reached, 4 ended without being done, 130 stopped."
)
_LEFT = f"{EXIT_CODES[:-1]} or left at work with Ctrl+C."
_PROGRAMS = (
    "Known are the exports of ChatGPT and Claude (the zip or its conversations.json), of OpenCode and goose, and the "
    "sessions of Codex (~/.codex/sessions), Claude Code (~/.claude/projects) and pi (~/.pi/agent/sessions)."
)
_OPERATORS = (
    "A search can be narrowed, with words or without: from:user, from:agent or from:NAME, in:TITLE or in:ID, "
    "tool:shell, after:2026-11-01 and before:2026-12 (days, months or years). Values with blanks stand in quotes."
)
_ID_HELP = "its id, or a part at either end of it that only one task has"


class Options(argparse.Namespace):
    """The parsed options. A command sets the fields that it declares below; the others keep these defaults."""

    command: str | None = None
    prompt: str = ""
    json: bool = False
    model: str | None = None
    api_base: str | None = None
    api_key_env: str | None = None
    workspace: str | None = None
    approve: str = "ask"
    max_turns: int | None = None
    budget: float | None = None
    models: list[str] | None = None
    mode: str = "auto"
    conversation: str | None = None
    agent: str | None = None
    events: str | None = None
    words: list[str] | None = None
    name: str | None = None
    personality: str | None = None
    color: str | None = None
    node: str | None = None
    rule: str | None = None
    moderator: str | None = None
    most: int | None = None
    attach: list[str] | None = None
    thinking: str | None = None
    answer_schema: str | None = None
    active: bool = False
    task_id: str = ""
    to: str = ""
    text: str = ""
    limit: int = 20
    refresh: bool = False
    test: str | None = None
    add_server: str | None = None
    remove_server: str | None = None
    days: int | None = None
    by: str = "day"
    stop: bool = False
    ids: list[str] | None = None
    number: int | None = None
    path: str = ""
    format: Literal["json", "markdown", "html"] = "json"
    branch: str | None = None
    archive: bool = False
    delete: bool = False
    overwrite: bool = False
    yes: bool = False
    force: bool = False
    repair: bool = False


def parse(arguments: list[str]) -> Options:
    """Raises SystemExit(2) with a text that says what is wrong, SystemExit(0) after --help and --version."""
    return _parser().parse_args(arguments, namespace=Options())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="errand", description=ABOUT, epilog=EXIT_CODES)
    parser.add_argument("--version", action=_Version, nargs=0, help="say the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, what: str, epilog: str | None = None) -> argparse.ArgumentParser:
        about = f"{what[0].upper()}{what[1:]}."
        return commands.add_parser(name, help=what, description=about, epilog=epilog)

    _declare_run(command("run", "hand over one task and follow it to its end", epilog=EXIT_CODES))
    chat = command("chat", "a conversation in the terminal")
    _add_place_options(chat)
    _add_task_options(chat)
    _declare_agents(command("agents", "who takes part in conversations, and who speaks after whom"))
    tasks = command("tasks", "list tasks, newest first")
    tasks.add_argument("--json", action="store_true", help="one JSON object a line")
    tasks.add_argument("--active", action="store_true", help="leave out the ended ones")
    tasks.add_argument("--limit", type=_whole, default=20, help="how many at most (default 20)")
    stop = command("stop", "stop a task and every process it started")
    stop.add_argument("task_id", metavar="ID", help=_ID_HELP)
    attach = command("attach", "follow a task under way; Ctrl+C leaves it at work", epilog=_LEFT)
    resume = command("resume", "go on with a paused or interrupted task, as run does", epilog=EXIT_CODES)
    for follows in (attach, resume):
        follows.add_argument("task_id", metavar="ID", help=_ID_HELP)
        follows.add_argument("--json", action="store_true", help="events as one JSON object a line, then a result line")
    pause = command("pause", "hold a task before its next step")
    pause.add_argument("task_id", metavar="ID", help=_ID_HELP)
    mode = command("mode", "take a task for a chat, or a chat that has answered for a task")
    mode.add_argument("task_id", metavar="ID", help=_ID_HELP)
    mode.add_argument("mode", choices=("task", "chat"), help="until it is complete, or until its next answer")
    record = command("record", "write all that a task did into a file, to be played again")
    record.add_argument("task_id", metavar="ID", help=_ID_HELP)
    record.add_argument("--to", metavar="FILE", required=True, help="a file that is not there yet")
    _declare_ask_models(command("ask-models", "ask several models the same at once, and compare"))
    compare = command("compare", "two branches of a conversation, from where they part")
    compare.add_argument("ids", metavar="NODE", nargs=2, help="an entry at the end of each branch")
    compare.add_argument("--json", action="store_true", help="both as one JSON object")
    _declare_prompt(command("prompt", "the system prompt of a task, or of one that would start here"))
    _declare_personalities(command("personalities", "who an agent can be"))
    context = command("context", "what the newest turn of a task sent to its model, by part and size")
    context.add_argument("task_id", metavar="ID", help=_ID_HELP)
    context.add_argument("--json", action="store_true", help="all of it as one JSON object")
    output = command("output", "the tool calls of a task, or all that one of them gave")
    output.add_argument("task_id", metavar="ID", help=_ID_HELP)
    output.add_argument("number", metavar="CALL", nargs="?", type=_whole, help="its number in the list of calls")
    output.add_argument("--json", action="store_true", help="the list as one JSON object a line")
    replay = command("replay", "play a record offline, and see what the agent loop does differently today")
    replay.add_argument("file", metavar="FILE", help="made with errand record")
    search = command("search", "full-text search in all conversations", epilog=_OPERATORS)
    search.add_argument("text", metavar="TEXT", help='words, a "phrase", the beginning of a word from 3 letters on')
    search.add_argument("--json", action="store_true", help="one JSON object a line")
    search.add_argument("--limit", type=_whole, default=20, help="how many at most (default 20)")
    models = command("models", "providers and models that were found")
    models.add_argument("--json", action="store_true", help="the whole list as one JSON object")
    models.add_argument("--refresh", action="store_true", help="ask the providers for their own lists, and keep them")
    models.add_argument(
        "--test", metavar="NAME", nargs="?", const="", help="try a provider or model, or all that are ready"
    )
    models.add_argument(
        "--add-server", metavar="URL", help="add a model server of your own, or change the one --name says"
    )
    models.add_argument("--name", metavar="NAME", help="what that server is called (default: its machine)")
    models.add_argument(
        "--api-key-env", metavar="VARIABLE", help="environment variable that holds its key, to be stored"
    )
    models.add_argument("--remove-server", metavar="NAME", help="forget a server of your own, with its key")
    usage = command("usage", "tokens and money that were used")
    usage.add_argument("--days", type=_whole, default=30, metavar="N", help="the last N days (default 30)")
    usage.add_argument("--by", choices=("day", "model", "conversation"), default="day", help="rows of (default: day)")
    usage.add_argument("--json", action="store_true", help="the whole report as one JSON object")
    _declare_export(command("export", "write conversations to a file"))
    take_in = command("import", "take conversations in; those that are here stay as they are", epilog=_PROGRAMS)
    take_in.add_argument(
        "path", metavar="PATH", help="what errand export wrote, or a file, zip or folder of another program"
    )
    _declare_orphans(command("orphans", "conversations without any agent, with their sizes"))
    _declare_prune(command("prune", "delete conversations archived long ago; counts them first"))
    delete = command("delete", "delete an archived conversation for good")
    delete.add_argument("ids", metavar="ID", nargs=1, help="its whole id")
    engine = command("engine", "run the engine here, or end the one that runs")
    engine.add_argument("--port", type=_whole, default=0, help="port on 127.0.0.1 (default: a free one)")
    engine.add_argument("--stop", action="store_true", help="end the running engine in order")
    command("share-models", "let other machines use the models whose keys are on this one")
    window = command("window", "open the window, as errand alone does where there is a display")
    window.add_argument("--new", action="store_true", help="another one, where one is open already")
    command("quick", "a field in the middle of the screen that starts a task in the background")
    doctor = command("doctor", "what is installed, what is missing, what to do")
    doctor.add_argument("--repair", action="store_true", help="mend a damaged database; the broken file is kept")
    doctor.add_argument("--yes", action="store_true", help="with --repair: yes to what it asks; nobody has to be there")
    doctor.add_argument("--force", action="store_true", help="repair also while tasks run; they are interrupted")
    backup = command("backup", "copy conversations, pictures and settings into one file")
    backup.add_argument("--to", metavar="PATH", help="a file or a folder (default: the folder copies of the data)")
    restore = command("restore", "go back to a copy; what is there now is kept aside")
    restore.add_argument("file", metavar="FILE", help="a backup, or a daily copy from the folder copies")
    restore.add_argument("--force", action="store_true", help="also while tasks run; they are interrupted")
    command("tour", "three tasks at once with a scripted model: scripted replies, real tools")
    return parser


def _declare_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("prompt", metavar="PROMPT", help="what to do; - reads it from standard input")
    run.add_argument("--json", action="store_true", help="events as one JSON object a line, then a result line")
    run.add_argument(
        "--events",
        choices=("agent", "react"),
        help="one JSON object a line: agents, heads and chats, or thoughts, tool calls and the final response",
    )
    _add_place_options(run)
    run.add_argument(
        "--answer-schema",
        metavar="FILE",
        help="a JSON Schema: the answer follows it and is all that goes to the output",
    )
    run.add_argument(
        "--attach", metavar="FILE", action="append", help="a picture to show, or a file to name; may be given again"
    )
    _add_task_options(run)


def _declare_ask_models(ask: argparse.ArgumentParser) -> None:
    ask.add_argument("prompt", metavar="PROMPT", help="what to ask; - reads it from standard input")
    ask.add_argument("-m", dest="models", metavar="MODEL", action="append", help="one of the models; from 2 to 8")
    ask.add_argument("--json", action="store_true", help="the tasks at their ends, one JSON object a line")
    ask.add_argument("--conversation", metavar="ID", help="go on in this conversation")
    _add_task_options(ask)


def _declare_prompt(prompt: argparse.ArgumentParser) -> None:
    prompt.add_argument("task_id", metavar="ID", nargs="?", default="", help=f"of a task as it began: {_ID_HELP}")
    prompt.add_argument("--personality", metavar="NAME", help="of this one (default: assistant)")
    prompt.add_argument("--workspace", metavar="DIR", help="in this folder (default: this one)")
    prompt.add_argument("--mode", choices=("auto", "task", "chat"), default="auto", help="of a task, or of a chat")
    prompt.add_argument("--json", action="store_true", help="the parts as one JSON list")


def _declare_personalities(personalities: argparse.ArgumentParser) -> None:
    personalities.add_argument(
        "words", metavar="WHAT", nargs="*", help="list (the default), export NAME --to FILE, or import FILE"
    )
    personalities.add_argument("--to", dest="path", metavar="FILE", help="with export: where to")
    personalities.add_argument("--overwrite", action="store_true", help="with export: replace what is there")
    personalities.add_argument("--json", action="store_true", help="with list: one JSON object a line")


def _declare_agents(agents: argparse.ArgumentParser) -> None:
    agents.add_argument(
        "words",
        metavar="WORD",
        nargs="*",
        help="a conversation to list, or: add [CONVERSATION], remove AGENT, turns CONVERSATION",
    )
    agents.add_argument("--json", action="store_true", help="the list as one JSON object a line")
    agents.add_argument("--name", help="with add: how it is addressed (default: its personality's name)")
    agents.add_argument("--personality", metavar="NAME", help="with add: what it is (default: assistant)")
    agents.add_argument("--model", metavar="M", help="with add: a model of its own")
    agents.add_argument("--color", help="with add: blue, teal, green, amber, orange, red, pink, violet or gray")
    agents.add_argument("--node", metavar="ID", help="with add: where it stands (default: with the first one)")
    agents.add_argument("--rule", choices=("addressed", "round_robin", "moderator"), help="with turns: who is next")
    agents.add_argument("--moderator", metavar="AGENT", help="with turns: who speaks first and after each")
    agents.add_argument("--most", type=_whole, metavar="N", help="with turns: replies in a row without a person")


def _declare_export(export: argparse.ArgumentParser) -> None:
    export.add_argument("ids", metavar="ID", nargs="*", help="conversations (default: all)")
    export.add_argument("--to", dest="path", metavar="PATH", required=True, help="a file; a folder for several pages")
    export.add_argument(
        "--format",
        choices=("json", "markdown", "html"),
        default="json",
        help="json is lossless and can be imported (default); markdown and html are pages to read",
    )
    export.add_argument("--branch", metavar="NODE", help="of one conversation the branch that ends in this node alone")
    export.add_argument("--overwrite", action="store_true", help="replace what is there")


def _declare_orphans(orphans: argparse.ArgumentParser) -> None:
    orphans.add_argument("--json", action="store_true", help="one JSON object a line")
    what = orphans.add_mutually_exclusive_group()
    what.add_argument("--archive", action="store_true", help="put those that are listed away")
    what.add_argument("--delete", action="store_true", help="delete those that are listed for good, with --yes")
    orphans.add_argument("--yes", action="store_true", help="delete them; without it they are only listed")


def _declare_prune(prune: argparse.ArgumentParser) -> None:
    prune.add_argument("--days", type=_whole, required=True, metavar="N", help="not changed for so many days")
    prune.add_argument("--yes", action="store_true", help="delete them; without it they are only counted")


def _add_place_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--conversation", metavar="ID", help="go on in this conversation")
    parser.add_argument("--agent", metavar="NAME", help="the one of its agents that is to answer")
    parser.add_argument("--personality", metavar="NAME", help="who the agent is from now on: errand personalities")
    parser.add_argument("--model", metavar="M", help="model id such as openai/gpt-4.1 (see: errand models)")


def _add_task_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--api-base", metavar="URL", help="base URL for openai_compatible/NAME models")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds the key for this run")
    parser.add_argument("--workspace", metavar="DIR", help="folder to work in (default: this one)")
    parser.add_argument(
        "--approve", choices=("ask", "never", "all"), default="ask", help="what to do where approval is needed"
    )
    parser.add_argument(
        "--mode",
        choices=("auto", "task", "chat"),
        default="auto",
        help="what ends it: the agent's word (task), each reply (chat), or as the first reply shows (auto)",
    )
    parser.add_argument(
        "--thinking",
        choices=("off", "minimal", "low", "medium", "high", "xhigh"),
        help="how much it thinks, for models that can",
    )
    parser.add_argument("--max-turns", type=_whole, metavar="N", help="turns before it asks to go on")
    parser.add_argument("--budget", type=_amount, metavar="USD", help="US dollars before it asks to go on")


def _whole(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def _amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount above 0")
    return number


class _Version(argparse.Action):
    """Looks the version up on use only: the look-up costs 20 ms."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"errand {version('errand-desktop')}\n")
        parser.exit(0)

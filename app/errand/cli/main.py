"""Entry of the command line: parses, runs the command, turns errors into texts and exit codes."""

import asyncio
import os
import sys

from errand.cli.arguments import FollowOptions, UsageError
from errand.cli.command import Entry, Invocation, parse
from errand.cli.exit_codes import EXIT_ERROR, EXIT_STOPPED, EXIT_USAGE, json_failure
from errand.cli.terminal.terminal import OutputClosed, Terminal, close_output, standard_terminal
from errand.cli.terminal.text import plain
from errand.client.errors import CallError, ConnectionLost, LaunchError
from errand.paths import default_paths
from errand.printable import printable

# In the order of `errand --help`. explain, replay, share-models, window and quick are started by `errand.__main__`;
# here they are for their help and for wrong usage.
COMMANDS = (
    Entry("run", "hand over one task and follow it to its end", "commands.run:RUN"),
    Entry("chat", "a conversation in the terminal", "commands.chat:CHAT"),
    Entry("agents", "who takes part in conversations, and who speaks after whom", "commands.agents:AGENTS"),
    Entry("tasks", "list tasks, newest first", "commands.tasks:TASKS"),
    Entry("stop", "stop a task and every process it started", "commands.tasks:STOP"),
    Entry("attach", "follow a task under way; Ctrl+C leaves it at work", "commands.tasks:ATTACH"),
    Entry("resume", "go on with a paused or interrupted task, as run does", "commands.tasks:RESUME"),
    Entry("pause", "hold a task before its next step", "commands.tasks:PAUSE"),
    Entry("mode", "take a task for a chat, or a chat that has answered for a task", "commands.tasks:MODE"),
    Entry("approvals", "choose what the tasks of a conversation may do without asking", "commands.tasks:APPROVALS"),
    Entry("record", "write all that a task did into a file, to be played again", "commands.task_details:RECORD"),
    Entry("ask-models", "ask several models the same at once, and compare", "commands.comparison:ASK_MODELS"),
    Entry("compare", "two branches of a conversation, from where they part", "commands.comparison:COMPARE"),
    Entry("prompt", "the system prompt of a task, or of one that would start here", "commands.task_details:PROMPT"),
    Entry("personalities", "who an agent can be", "commands.personalities:PERSONALITIES"),
    Entry(
        "context", "what the newest turn of a task sent to its model, by part and size", "commands.task_details:CONTEXT"
    ),
    Entry("output", "the tool calls of a task, or all that one of them gave", "commands.task_details:OUTPUT"),
    Entry("changes", "the files that a task changed, and what in them", "commands.changes:CHANGES"),
    Entry("undo", "undo what a task changed in files: all, a file, a step, or a piece", "commands.changes:UNDO"),
    Entry("redo", "redo what was undone", "commands.changes:REDO"),
    Entry("background", "commands in the background: list, read, stop, type", "commands.background:BACKGROUND"),
    Entry(
        "replay", "play a record offline, and see what the agent loop does differently today", "commands.start:REPLAY"
    ),
    Entry("explain", "what the permission policy decides about a command, and why", "commands.explain:EXPLAIN"),
    Entry("search", "full-text search in all conversations", "commands.conversations:SEARCH"),
    Entry("memory", "search it, facts that every task is told, forgetting", "commands.memory.facts:MEMORY"),
    Entry("grants", "what is allowed without asking, and how to take it back", "commands.grants:GRANTS"),
    Entry("skills", "what agents can read up on: list, show, install, remove", "commands.skills:SKILLS"),
    Entry("mcp", "servers that bring more tools: add, trust, look at", "commands.servers:MCP"),
    Entry("tools", "all tools, where they come from and who has them", "commands.servers:TOOLS"),
    Entry("models", "providers and models that were found", "commands.models:MODELS"),
    Entry("usage", "tokens and money that were used", "commands.usage:USAGE"),
    Entry("export", "write conversations to a file", "commands.conversations:EXPORT"),
    Entry("import", "take conversations in; those that are here stay as they are", "commands.conversations:IMPORT"),
    Entry("orphans", "conversations without any agent, with their sizes", "commands.conversations:ORPHANS"),
    Entry("prune", "delete conversations archived long ago; counts them first", "commands.conversations:PRUNE"),
    Entry("delete", "delete an archived conversation for good", "commands.conversations:DELETE"),
    Entry("engine", "run the engine here, or end the one that runs", "commands.doctor:ENGINE"),
    Entry("share-models", "let other machines use the models whose keys are on this one", "commands.start:START"),
    Entry("window", "open the window, as errand alone does where there is a display", "commands.start:WINDOW"),
    Entry("quick", "a field in the middle of the screen that starts a task in the background", "commands.start:START"),
    Entry("doctor", "what is installed, what is missing, what to do", "commands.doctor:DOCTOR"),
    Entry("backup", "copy conversations, pictures and settings into one file", "recovery.backup:BACKUP"),
    Entry("restore", "go back to a copy; what is there now is kept aside", "recovery.restore:RESTORE"),
    Entry("tour", "three tasks at once with a scripted model: scripted replies, real tools", "commands.tour:TOUR"),
)
DEFAULT = Entry("", "", "commands.start:START")

# Error codes of the engine that the user can fix by changing the command.
_USAGE_CODES = frozenset({"invalid_params", "configuration_error", "not_found", "unconfirmed_workspace"})


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    invocation = parse([_as_text(argument) for argument in arguments], COMMANDS, DEFAULT)
    terminal = standard_terminal()
    try:
        return asyncio.run(_run(invocation, terminal))
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except OutputClosed as closed:
        if str(closed):
            sys.stderr.write(f"errand: {printable(str(closed))}\n")
        close_output()
        return EXIT_ERROR
    except UsageError as error:
        return _failed(invocation, terminal, str(error), EXIT_USAGE)
    except CallError as error:
        return _failed(invocation, terminal, str(error), EXIT_USAGE if error.code in _USAGE_CODES else EXIT_ERROR)
    except (ConnectionLost, LaunchError) as error:
        return _failed(invocation, terminal, str(error), EXIT_ERROR)


def _as_text(argument: str) -> str:
    """Replaces bytes that are not UTF-8 with the replacement character: the engine accepts text only."""
    return os.fsencode(argument).decode("utf-8", "replace")


async def _run(invocation: Invocation, terminal: Terminal) -> int:
    return await invocation.run(default_paths(), terminal)


def _failed(invocation: Invocation, terminal: Terminal, text: str, code: int) -> int:
    terminal.note(f"errand: {plain(text)}")
    if isinstance(invocation.options, FollowOptions) and invocation.options.json:
        terminal.line(json_failure(text, code))
    return code

"""The table of commands, in groups; the help, the completion and the manual page are made from it."""

from errand.cli.command import Entry, Group, Table
from errand.text.translation import marked, tr

# In the order of `errand --help`. explain, replay, share-models, window and quick are started by `errand.__main__`;
# here they are for their help and for wrong usage.
_GROUPS = (
    Group(
        "Start a task",
        (
            Entry("run", "run a task and follow it until it ends", "commands.run:RUN"),
            Entry(
                "chat",
                "chat with an agent in the terminal",
                "commands.chat:CHAT",
                without_json=marked("a person types there; errand run --json is for programs"),
            ),
            Entry(
                "ask-models",
                "ask several models the same question and compare the answers",
                "commands.comparison:ASK_MODELS",
            ),
            Entry(
                "tour",
                "play a demo: three tasks with scripted replies and real tools",
                "commands.tour:TOUR",
                without_json=marked("it is a demo for a person"),
            ),
            Entry(
                "window",
                "open the window (what `errand` alone does if there is a display)",
                "commands.start:WINDOW",
                without_json=marked("it opens a window"),
            ),
            Entry(
                "quick",
                "open a small window that starts a task in the background",
                "commands.start:START",
                without_json=marked("it opens a window"),
            ),
        ),
    ),
    Group(
        "Running tasks",
        (
            Entry("tasks", "list tasks, newest first", "commands.tasks:TASKS"),
            Entry(
                "attach",
                "follow a running task and steer it; Ctrl+C detaches and the task keeps running",
                "commands.tasks:ATTACH",
            ),
            Entry("steer", "send a message to a running task", "commands.messages:STEER"),
            Entry("answer", "list open questions and approvals, and answer them", "commands.messages:ANSWER"),
            Entry("stop", "stop a task and every process that it started", "commands.tasks:STOP"),
            Entry("pause", "pause a task before its next step", "commands.tasks:PAUSE"),
            Entry("resume", "resume a paused or interrupted task and follow it", "commands.tasks:RESUME"),
            Entry("mode", "switch between task and chat", "commands.tasks:MODE"),
            Entry(
                "approvals",
                "choose what the tasks of a conversation may do without asking",
                "commands.tasks:APPROVALS",
            ),
            Entry(
                "background",
                "list background commands, read their output, type into them, stop them",
                "commands.background:BACKGROUND",
            ),
        ),
    ),
    Group(
        "Task results",
        (
            Entry(
                "output",
                "list the tool calls of a task, or show the full output of one",
                "commands.task_details:OUTPUT",
            ),
            Entry("changes", "show the files that a task changed", "commands.changes:CHANGES"),
            Entry("undo", "undo file changes of a task: all, a file, a step or a hunk", "commands.changes:UNDO"),
            Entry("redo", "redo changes that were undone", "commands.changes:REDO"),
            Entry(
                "context",
                "show what the last turn of a task sent to its model, by part and size",
                "commands.task_details:CONTEXT",
            ),
            Entry(
                "prompt",
                "show the system prompt of a task, or of a new one in this folder",
                "commands.task_details:PROMPT",
            ),
            Entry("record", "record everything that a task did to a file, for replay", "commands.task_details:RECORD"),
            Entry(
                "replay",
                "replay a recorded task offline and show what the agent would do differently now",
                "commands.start:REPLAY",
            ),
            Entry("usage", "show token usage and cost", "commands.usage:USAGE"),
        ),
    ),
    Group(
        "Conversations",
        (
            Entry("list", "list conversations, newest first", "commands.conversations.listing:LIST"),
            Entry("show", "show a whole conversation", "commands.conversations.show:SHOW"),
            Entry("tree", "show the branches of a conversation", "commands.conversations.branches:TREE"),
            Entry("edit", "edit one of your messages and send it again", "commands.conversations.branches:EDIT"),
            Entry("retry", "generate a reply again on a new branch", "commands.conversations.branches:RETRY"),
            Entry("fork", "continue from an earlier message on a new branch", "commands.conversations.branches:FORK"),
            Entry("move", "switch to another branch", "commands.conversations.branches:MOVE"),
            Entry("search", "search the text of all conversations", "commands.conversations.search:SEARCH"),
            Entry("agents", "manage the agents of a conversation and their order", "commands.agents:AGENTS"),
            Entry("compare", "compare two branches of a conversation", "commands.comparison:COMPARE"),
            Entry("memory", "search memory, manage facts, forget texts", "commands.memory.facts:MEMORY"),
            Entry("rename", "rename a conversation", "commands.conversations.listing:RENAME"),
            Entry("pin", "pin conversations to the top of the list", "commands.conversations.listing:PIN"),
            Entry("archive", "archive conversations, or restore them", "commands.conversations.listing:ARCHIVE"),
            Entry("export", "export conversations to a file", "commands.conversations.data:EXPORT"),
            Entry(
                "import",
                "import conversations, also from other programs on this machine",
                "commands.conversations.imports:IMPORT",
            ),
            Entry(
                "orphans", "list conversations without an agent, and their sizes", "commands.conversations.data:ORPHANS"
            ),
            Entry(
                "prune",
                "delete conversations that were archived long ago; counts them first",
                "commands.conversations.data:PRUNE",
            ),
            Entry("delete", "permanently delete an archived conversation", "commands.conversations.data:DELETE"),
        ),
    ),
    Group(
        "Agents, tools and permissions",
        (
            Entry("models", "list providers and models", "commands.models:MODELS"),
            Entry(
                "keys",
                "show, store and remove the API keys of providers",
                "commands.installation.keys:KEYS",
            ),
            Entry("personalities", "manage personalities of agents", "commands.personalities:PERSONALITIES"),
            Entry("skills", "list, show, install and remove skills", "commands.skills:SKILLS"),
            Entry(
                "tools", "list all tools, where they come from, and which agents have them", "commands.servers:TOOLS"
            ),
            Entry("mcp", "manage MCP servers", "commands.servers:MCP"),
            Entry("grants", "list, add and revoke permissions", "commands.grants:GRANTS"),
            Entry(
                "explain",
                "explain what the permission policy decides about a command, and why",
                "commands.explain:EXPLAIN",
            ),
        ),
    ),
    Group(
        "This installation",
        (
            Entry("settings", "list, read and change settings", "commands.installation.settings:SETTINGS"),
            Entry(
                "help",
                "show help for a command, or for all",
                "commands.installation.manual:HELP",
                without_json=marked("it prints a text to read"),
            ),
            Entry(
                "man",
                "show the manual page",
                "commands.installation.manual:MANUAL",
                without_json=marked("it prints a text to read"),
            ),
            Entry(
                "completion",
                "print a completion script for bash, zsh or fish",
                "commands.installation.completion:COMPLETION",
                without_json=marked("it prints a script for a shell"),
            ),
            Entry("doctor", "check the installation and say what is missing", "commands.installation.doctor:DOCTOR"),
            Entry("engine", "run the engine in the foreground, or shut it down", "commands.installation.doctor:ENGINE"),
            Entry("backup", "back up conversations, pictures and settings to one file", "recovery.backup:BACKUP"),
            Entry(
                "restore", "restore a backup; the current data is kept in a separate folder", "recovery.restore:RESTORE"
            ),
            Entry(
                "share-models",
                "share the models of this machine with others; the keys stay here",
                "commands.start:START",
                without_json=marked("it runs until it is ended"),
            ),
            Entry(
                "licences",
                "list the libraries that Errand uses, and their licences",
                "commands.installation.licences:LICENCES",
            ),
        ),
    ),
)
# For `errand --help` and the manual page: what it is for, and the line.
_EXAMPLES = (
    (tr("run a task in this folder"), "errand run 'find out why the tests fail, and fix it'"),
    (tr("let it change files here without asking"), "errand run --approve edits 'sort the imports'"),
    (tr("list running tasks, and follow one"), "errand tasks --active; errand attach 3f9c"),
    (tr("see what a task changed, and undo it"), "errand changes 3f9c; errand undo 3f9c"),
    (tr("chat with a model of your choice"), "errand chat --model anthropic/claude-sonnet-4-5"),
    (tr("get the result in a script"), "errand run --json 'list the largest files' | tail -1"),
)
TABLE = Table(_GROUPS, Entry("", "", "commands.start:START"), _EXAMPLES)

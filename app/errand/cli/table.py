"""The table of commands, in groups; the help, the completion and the manual page are made from it."""

from errand.cli.command import Entry, Group, Table
from errand.translation import tr

# In the order of `errand --help`. explain, replay, share-models, window and quick are started by `errand.__main__`;
# here they are for their help and for wrong usage.
_GROUPS = (
    Group(
        tr("Start a task"),
        (
            Entry("run", "hand over one task and follow it to its end", "commands.run:RUN"),
            Entry("chat", "a conversation in the terminal", "commands.chat:CHAT"),
            Entry("ask-models", "ask several models the same at once, and compare", "commands.comparison:ASK_MODELS"),
            Entry(
                "tour", "three tasks at once with a scripted model: scripted replies, real tools", "commands.tour:TOUR"
            ),
            Entry("window", "open the window, as errand alone does where there is a display", "commands.start:WINDOW"),
            Entry(
                "quick",
                "a field in the middle of the screen that starts a task in the background",
                "commands.start:START",
            ),
        ),
    ),
    Group(
        "Tasks at work",
        (
            Entry("tasks", "list tasks, newest first", "commands.tasks:TASKS"),
            Entry("attach", "follow a task under way and steer it; Ctrl+C leaves it at work", "commands.tasks:ATTACH"),
            Entry("steer", "say something to a task at work", "commands.messages:STEER"),
            Entry("answer", "what waits for an answer, and the answer to it", "commands.messages:ANSWER"),
            Entry("stop", "stop a task and every process it started", "commands.tasks:STOP"),
            Entry("pause", "hold a task before its next step", "commands.tasks:PAUSE"),
            Entry("resume", "go on with a paused or interrupted task, as run does", "commands.tasks:RESUME"),
            Entry("mode", "take a task for a chat, or a chat that has answered for a task", "commands.tasks:MODE"),
            Entry(
                "approvals",
                "choose what the tasks of a conversation may do without asking",
                "commands.tasks:APPROVALS",
            ),
            Entry("background", "commands in the background: list, read, stop, type", "commands.background:BACKGROUND"),
        ),
    ),
    Group(
        "What a task did",
        (
            Entry("output", "the tool calls of a task, or all that one of them gave", "commands.task_details:OUTPUT"),
            Entry("changes", "the files that a task changed, and what in them", "commands.changes:CHANGES"),
            Entry(
                "undo", "undo what a task changed in files: all, a file, a step, or a piece", "commands.changes:UNDO"
            ),
            Entry("redo", "redo what was undone", "commands.changes:REDO"),
            Entry(
                "context",
                "what the newest turn of a task sent to its model, by part and size",
                "commands.task_details:CONTEXT",
            ),
            Entry(
                "prompt",
                "the system prompt of a task, or of one that would start here",
                "commands.task_details:PROMPT",
            ),
            Entry(
                "record", "write all that a task did into a file, to be played again", "commands.task_details:RECORD"
            ),
            Entry(
                "replay",
                "play a record offline, and see what the agent loop does differently today",
                "commands.start:REPLAY",
            ),
            Entry("usage", "tokens and money that were used", "commands.usage:USAGE"),
        ),
    ),
    Group(
        "Conversations",
        (
            Entry("list", "list conversations, newest first", "commands.conversations.listing:LIST"),
            Entry("show", "a conversation in order, whole", "commands.conversations.show:SHOW"),
            Entry("tree", "the branches of a conversation", "commands.conversations.branches:TREE"),
            Entry("edit", "send a message of yours again with another text", "commands.conversations.branches:EDIT"),
            Entry("retry", "make a reply again, beside the old one", "commands.conversations.branches:RETRY"),
            Entry("fork", "go on from an earlier message", "commands.conversations.branches:FORK"),
            Entry("move", "go to another branch", "commands.conversations.branches:MOVE"),
            Entry("search", "full-text search in all conversations", "commands.conversations.search:SEARCH"),
            Entry("agents", "who takes part in conversations, and who speaks after whom", "commands.agents:AGENTS"),
            Entry("compare", "two branches of a conversation, from where they part", "commands.comparison:COMPARE"),
            Entry("memory", "search it, facts that every task is told, forgetting", "commands.memory.facts:MEMORY"),
            Entry("rename", "give a conversation another title", "commands.conversations.listing:RENAME"),
            Entry("pin", "keep conversations at the top of the list", "commands.conversations.listing:PIN"),
            Entry("archive", "put conversations away, or take them back", "commands.conversations.listing:ARCHIVE"),
            Entry("export", "write conversations to a file", "commands.conversations.data:EXPORT"),
            Entry(
                "import",
                "take conversations in, also those of other programs on this machine",
                "commands.conversations.imports:IMPORT",
            ),
            Entry(
                "orphans", "conversations without any agent, with their sizes", "commands.conversations.data:ORPHANS"
            ),
            Entry(
                "prune",
                "delete conversations archived long ago; counts them first",
                "commands.conversations.data:PRUNE",
            ),
            Entry("delete", "delete an archived conversation for good", "commands.conversations.data:DELETE"),
        ),
    ),
    Group(
        "What agents are and may",
        (
            Entry("models", "providers and models that were found", "commands.models:MODELS"),
            Entry(
                "keys",
                "where the key of each provider comes from; store and remove keys",
                "commands.installation.keys:KEYS",
            ),
            Entry("personalities", "who an agent can be", "commands.personalities:PERSONALITIES"),
            Entry("skills", "what agents can read up on: list, show, install, remove", "commands.skills:SKILLS"),
            Entry("tools", "all tools, where they come from and who has them", "commands.servers:TOOLS"),
            Entry("mcp", "servers that bring more tools: add, trust, look at", "commands.servers:MCP"),
            Entry("grants", "what is allowed without asking, and how to take it back", "commands.grants:GRANTS"),
            Entry("explain", "what the permission policy decides about a command, and why", "commands.explain:EXPLAIN"),
        ),
    ),
    Group(
        "This installation",
        (
            Entry("settings", "list, read and change the settings", "commands.installation.settings:SETTINGS"),
            Entry("help", "the help of a command, or of all", "commands.installation.manual:HELP"),
            Entry("man", "the manual page", "commands.installation.manual:MANUAL"),
            Entry(
                "completion",
                "a script that completes in bash, zsh or fish",
                "commands.installation.completion:COMPLETION",
            ),
            Entry("doctor", "what is installed, what is missing, what to do", "commands.installation.doctor:DOCTOR"),
            Entry("engine", "run the engine here, or end the one that runs", "commands.installation.doctor:ENGINE"),
            Entry("backup", "copy conversations, pictures and settings into one file", "recovery.backup:BACKUP"),
            Entry("restore", "go back to a copy; what is there now is kept aside", "recovery.restore:RESTORE"),
            Entry(
                "share-models",
                "let other machines use the models whose keys are on this one",
                "commands.start:START",
            ),
            Entry(
                "licences",
                "the libraries Errand is made of, and their licences",
                "commands.installation.licences:LICENCES",
            ),
        ),
    ),
)
# For `errand --help` and the manual page: what it is for, and the line.
_EXAMPLES = (
    ("hand over a task in this folder", "errand run 'find out why the tests fail, and mend it'"),
    ("let it change files here without asking", "errand run --approve edits 'sort the imports'"),
    ("what is at work, and its end", "errand tasks --active; errand attach 3f9c"),
    ("what it changed, and back again", "errand changes 3f9c; errand undo 3f9c"),
    ("talk to a model of your choice", "errand chat --model anthropic/claude-sonnet-4-5"),
    ("the outcome for a script", "errand run --json 'list the largest files' | tail -1"),
)
TABLE = Table(_GROUPS, Entry("", "", "commands.start:START"), _EXAMPLES)

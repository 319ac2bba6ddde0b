"""The presentations of registered tools, and which set offers which of them.

Names and arguments are those that most models were trained on. The record, rules and personalities keep the names of
the registered tools.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from errand.engine.tools.code.tool import Code
from errand.engine.tools.control.task_messages import AskUser, TaskComplete
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.memory.search import SearchMemory
from errand.engine.tools.python.tool import Python
from errand.engine.tools.shell.tool import Shell
from errand.engine.tools.task import TaskTool
from errand.engine.tools.web.fetch import WebFetch
from errand.protocol.base import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as offered: `registered` is its name in the tool's own schema, the same if empty.

    An empty description leaves out the tool's own.
    """

    description: str = ""
    registered: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Presentation:
    """A registered tool as offered under another name, with some of its arguments.

    `sets` are arguments that every such call has.
    """

    name: str
    tool: str
    description: str
    arguments: Mapping[str, Argument]
    sets: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))

    def parameters(self, registered: JsonObject) -> JsonObject:
        """Return the JSON Schema of the offered arguments, derived from that of the registered tool."""
        own = registered.get("properties")
        assert isinstance(own, dict), f"{self.tool} has arguments"
        properties: JsonObject = {}
        for name, argument in self.arguments.items():
            schema = own[argument.registered or name]
            assert isinstance(schema, dict), "each argument has a schema"
            offered: JsonObject = {key: value for key, value in schema.items() if key not in ("description", "default")}
            properties[name] = offered | ({"description": argument.description} if argument.description else {})
        required: list[JsonValue] = [name for name, argument in self.arguments.items() if argument.is_required]
        return {"type": "object", "properties": properties, "required": required}

    def registered_arguments(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments of the registered tool for those of an offered call."""
        renames = {name: argument.registered for name, argument in self.arguments.items() if argument.registered}
        return {**{renames.get(name, name): value for name, value in arguments.items()}, **self.sets}

    def offered_arguments(self, arguments: JsonObject) -> JsonObject | None:
        """Return the offered arguments for those of a call of the registered tool; None if they do not fit."""
        if any(arguments.get(name) != value for name, value in self.sets.items()):
            return None
        offered = self.with_offered_names(arguments)
        return offered if offered.keys() <= self.arguments.keys() else None

    def with_offered_names(self, arguments: JsonObject) -> JsonObject:
        """Return arguments of the registered tool, without those that every call has, under their offered names."""
        renames = {argument.registered or name: name for name, argument in self.arguments.items()}
        return {renames.get(name, name): value for name, value in arguments.items() if name not in self.sets}


def _required(description: str = "", registered: str = "") -> Argument:
    return Argument(description, registered, is_required=True)


_READ = Presentation(
    "read",
    Code.name,
    "Read a file.",
    {"path": _required(), "start_line": Argument(), "end_line": Argument()},
    {"action": "read"},
)
_SHORT_READ = replace(_READ, arguments={"path": _required()})
_WRITE = Presentation(
    "write",
    Code.name,
    "Create a file, or replace all of it.",
    {"path": _required(), "content": _required()},
    {"action": "write"},
)
_EDIT = Presentation(
    "edit",
    Code.name,
    "Replace text in a file. old_string is copied exactly from the file and occurs once in it.",
    {
        "path": _required(),
        "old_string": _required(registered="old"),
        "new_string": _required(registered="new"),
        "replace_all": Argument(),
    },
    {"action": "patch"},
)
_SHORT_EDIT = replace(
    _EDIT, arguments={name: argument for name, argument in _EDIT.arguments.items() if argument.is_required}
)
_GREP = Presentation(
    "grep",
    Code.name,
    "Search files for lines that match a regular expression.",
    {"pattern": _required(), "path": Argument(), "glob": Argument("Only such files: *.py")},
    {"action": "search"},
)
_GLOB = Presentation(
    "glob",
    Code.name,
    "List files, of a folder or by a pattern such as **/*.py.",
    {"pattern": Argument(registered="glob"), "path": Argument()},
    {"action": "list"},
)
_BASH = Presentation(
    "bash",
    Shell.name,
    "Run a shell command and return its output. The folder carries over to the next call, variables do not.",
    {
        "command": _required(),
        "timeout_secs": Argument(),
        "background": Argument("For servers and watchers: return at once with an id."),
    },
)
_SHORT_BASH = Presentation("bash", Shell.name, "Run a shell command and return its output.", {"command": _required()})
_BACKGROUND = Presentation(
    "background",
    Shell.name,
    "Background commands: read new output, type into a terminal, stop, list.",
    {
        "action": _required(),
        "id": Argument(),
        "wait_secs": Argument("Wait this long for output."),
        "text": Argument("input: what to type."),
        "keys": Argument("input: enter, tab, escape, up, down, ctrl-c …"),
    },
)
_TODO = Presentation(
    "todo_write",
    Todo.name,
    "Show your plan as a list, for work of three steps or more, and keep it up to date. Each call replaces the list.",
    {"todos": _required(registered="items")},
)
_SHORT_TODO = replace(
    _TODO, description="Show the plan, for work of three steps or more. Call it again when a step is done."
)
_WEB_FETCH = Presentation(
    "web_fetch",
    WebFetch.name,
    "Read a page of the web as Markdown.",
    {"url": _required(), "start": Argument("Character to begin at.")},
)
_PYTHON = Presentation(
    "python",
    Python.name,
    "Run Python in a session that keeps its variables; figures are shown to the person.",
    {"code": _required(), "timeout_secs": Argument()},
)
_SEARCH_MEMORY = Presentation(
    "search_memory",
    SearchMemory.name,
    "Search earlier conversations of this person with you.",
    {
        "query": _required("A question, or telling words."),
        "limit": Argument(),
        "after": Argument("A day: 2026-11-02."),
        "before": Argument(),
    },
)
_TASK = Presentation(
    "task",
    TaskTool.name,
    "Have a sub-agent do a piece of work that needs many steps, and get its report. Several calls in one reply run "
    "side by side.",
    {
        "description": _required("A title of a few words."),
        "prompt": _required("Everything it must know, and what to report."),
        "personality": Argument(),
    },
)
_ASK_USER = Presentation(
    "ask_user",
    AskUser.name,
    "Ask the person something that only they can know, and wait for the answer.",
    {"question": _required(), "choices": Argument()},
)
_SHORT_ASK_USER = Presentation(
    "ask_user", AskUser.name, "Ask the person what only they know.", {"question": Argument()}
)
_TASK_COMPLETE = Presentation(
    "task_complete",
    TaskComplete.name,
    "End the task when it is done, with a short summary for the person.",
    {"summary": _required()},
)

# Small models fill in each argument that they are told of: these have only what is needed.
MINIMAL = (_SHORT_READ, _WRITE, _SHORT_EDIT, _SHORT_BASH, _SHORT_TODO, _SHORT_ASK_USER, _TASK_COMPLETE)
USUAL = (
    *(_READ, _WRITE, _EDIT, _GREP, _GLOB, _BASH, _PYTHON, _WEB_FETCH, _SEARCH_MEMORY, _TODO, _TASK),
    *(_ASK_USER, _TASK_COMPLETE),
)
# Of an agent that only reads.
MINIMAL_READING = (_SHORT_READ, _GREP, _SHORT_BASH, _WEB_FETCH, _SHORT_TODO, _SHORT_ASK_USER, _TASK_COMPLETE)
# Not offered, but found by `find_tools` under these names.
RARE = (_BACKGROUND,)

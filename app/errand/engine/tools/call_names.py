"""Names of tools in calls: which tool a model means, by whatever name it or its server calls it."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from errand.engine.tools.code.tool import Code
from errand.engine.tools.control.task_messages import AskUser, TaskComplete
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.mcp.definitions import SEPARATOR, is_service_tool
from errand.engine.tools.python.tool import Python
from errand.engine.tools.shell.tool import Shell
from errand.engine.tools.task import TaskTool
from errand.engine.tools.web.fetch import WebFetch
from errand.protocol.base import JsonObject, JsonValue

_MAX_NAME_LENGTH = 200
_MAX_LISTED_NAMES = 60
_LEADING_MARKS = re.compile(r"(?:<[^<>]*>|to=|\s)+")
# Not the separator of servers: a tool of a server that is gone means no other tool.
_NAMESPACE_SEPARATORS = re.compile(r"::|[.:/]")
_NUMBER_OF_CALL = re.compile(r"(?:[:#]\d+|\(\))+\Z")
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class ToolMeaning:
    """A call of `tool`; `sets` are the arguments that another agent's name for it stands for."""

    tool: str
    sets: JsonObject = field(default_factory=dict[str, JsonValue])


def _file_action(action: str, *names: str) -> dict[str, ToolMeaning]:
    return dict.fromkeys(names, ToolMeaning(Code.name, {"action": action}))


def _other_names(tool: str, *names: str) -> dict[str, ToolMeaning]:
    return dict.fromkeys(names, ToolMeaning(tool))


# In normal form: the names that models know from other agents. A tool of that name comes first.
_OTHER_NAMES: dict[str, ToolMeaning] = {
    **_other_names(
        Shell.name,
        *("bash", "executebash", "runbash", "executecommand", "runcommand", "runshellcommand", "shellcommand"),
        *("runshell", "execcommand", "containerexec", "localshell", "shelltool", "bashtool", "terminal", "runterminal"),
        *("runterminalcmd", "runterminalcommand", "runinterminal", "executeshell", "executeshellcommand"),
    ),
    **_file_action("read", "read", "readfile", "viewfile", "openfile", "readtextfile"),
    **_file_action("write", "write", "writefile", "writetofile", "createfile", "writetextfile"),
    **_file_action(
        "patch", "editfile", "replaceinfile", "strreplace", "searchreplace", "searchandreplace", "patchfile"
    ),
    **_file_action("edit", "multiedit"),
    **_file_action("list", "ls", "listdir", "listdirectory", "listfiles", "glob"),
    **_file_action("create_dir", "mkdir", "createdir", "createdirectory", "makedirectory"),
    **_file_action("search", "grep", "greptool", "grepsearch", "searchfiles", "searchfilecontent", "ripgrep"),
    **_other_names(WebFetch.name, "fetch", "fetchurl", "fetchwebpage", "readurl"),
    **_other_names(Python.name, "runpython", "executepython", "pythoninterpreter", "codeinterpreter"),
    **_other_names(Todo.name, "todowrite", "writetodos", "updateplan", "updatetodolist"),
    **_other_names(AskUser.name, "askfollowupquestion", "askquestion"),
    **_other_names(TaskComplete.name, "attemptcompletion", "completetask"),
    **_other_names(TaskTool.name, "subagent", "runsubagent", "delegatetask"),
    # One replacement, or a list of them: the arguments tell.
    "edit": ToolMeaning(Code.name),
}


def meanings(name: str, tools: Sequence[str]) -> list[ToolMeaning]:
    """Return what a call by this name can mean, among `tools`. The call may run only if there is exactly one meaning.

    A name that is exact, or exact but for case, blanks, separators and marks, comes before one with another namespace.
    """
    if name in tools:
        return [ToolMeaning(name)]
    by_form = _by_form(tools)
    namespace: list[str] = []
    parts = _parts(name)
    while parts:
        form = _normal_form("".join(parts))
        fitting = [ToolMeaning(tool) for tool in by_form.get(form, ())]
        fitting += _by_other_name(form, tools, fitting)
        fitting = [meaning for meaning in fitting if _may_be_in(namespace, meaning, tools)]
        if fitting:
            return fitting
        namespace.append(_normal_form(parts.pop(0)))
    return []


def names_text(name: str, tools: Sequence[str], offered: Sequence[str]) -> str:
    """Return a sentence for the model on the tools that a name could mean, or on all offered ones if it means none."""
    several = sorted({meaning.tool for meaning in meanings(name, tools)})
    if len(several) > 1:
        return f"It may mean {' or '.join(several)}: call one of them by that name."
    more = len(offered) - _MAX_LISTED_NAMES
    ending = f" and {more} more" if more > 0 else ""
    return f"The tools are: {', '.join(offered[:_MAX_LISTED_NAMES])}{ending}."


def _parts(name: str) -> list[str]:
    """Return the namespaces of a name and the name itself, without marks, quotes and the number of the call."""
    text = unicodedata.normalize("NFKC", name[:_MAX_NAME_LENGTH])
    if match := _LEADING_MARKS.match(text):
        text = text[match.end() :]
    text = text.partition("<")[0].strip(" \t\r\n`'\"*")
    return [part for part in _NAMESPACE_SEPARATORS.split(_NUMBER_OF_CALL.sub("", text)) if part]


def _normal_form(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


def _by_form(tools: Iterable[str]) -> dict[str, list[str]]:
    """Return the tools by normal form; those of servers also by the name that their server gives them."""
    by_form: dict[str, list[str]] = {}
    for tool in tools:
        forms = {_normal_form(tool)}
        if is_service_tool(tool):
            forms |= {_normal_form(tool.partition(SEPARATOR)[2]), f"mcp{_normal_form(tool)}"}
        for form in forms:
            by_form.setdefault(form, []).append(tool)
    return by_form


def _by_other_name(form: str, tools: Sequence[str], fitting: Sequence[ToolMeaning]) -> list[ToolMeaning]:
    """Return the tool that other agents call so, if no tool of this task has that name itself."""
    meaning = _OTHER_NAMES.get(form)
    if meaning is None or meaning.tool not in tools:
        return []
    is_own_name = any(_normal_form(other.tool) == form for other in fitting)
    return [] if is_own_name else [meaning]


def _may_be_in(namespace: Sequence[str], meaning: ToolMeaning, tools: Sequence[str]) -> bool:
    """Return False if the namespace is that of another tool or server than the one meant."""
    owners = {_normal_form(tool.partition(SEPARATOR)[0] if is_service_tool(tool) else tool) for tool in tools}
    owner = meaning.tool.partition(SEPARATOR)[0] if is_service_tool(meaning.tool) else meaning.tool
    return all(part not in owners or part == _normal_form(owner) for part in namespace)

"""The lists of tools, and the binding of a task's tools to its context."""

from collections.abc import Sequence

from errand.engine.core.errors import ConfigurationError
from errand.engine.tools.base import GuardedTool
from errand.engine.tools.browser.tool import Browser
from errand.engine.tools.code.tool import Code
from errand.engine.tools.context import ToolContext
from errand.engine.tools.control.find_tools import FindTools
from errand.engine.tools.control.task_messages import AskUser, SendUpdate, TaskComplete
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.mcp.definitions import SEPARATOR, is_service_tool
from errand.engine.tools.mcp.tool import McpResources
from errand.engine.tools.memory.propose import ProposeMemory
from errand.engine.tools.memory.search import SearchMemory
from errand.engine.tools.python.tool import Python
from errand.engine.tools.python_inference import PythonInference
from errand.engine.tools.reading_form import READING_NAMES, ReadingForm, full_name, reading_name
from errand.engine.tools.shell.tool import Shell
from errand.engine.tools.task import TaskTool
from errand.engine.tools.web.fetch import WebFetch

# Chosen by a personality, and allowed by the policy.
TOOLS = (Shell, Code, WebFetch, Python, PythonInference, SearchMemory, ProposeMemory, Browser, TaskTool)
# Of every task: they only control it.
CONTROL_TOOLS = (TaskComplete, AskUser, SendUpdate, Todo, FindTools)
CONTROL_NAMES = frozenset(tool.name for tool in CONTROL_TOOLS)
# Stands for every tool of every MCP server, in a personality and in rules.
SERVICES = McpResources.name
SERVER_PREFIX = f"{SERVICES}:"
_ACTIVITIES = {tool.name: tool.activity for tool in TOOLS}
NAMES = (*(tool.name for tool in TOOLS), SERVICES)
# What a personality may list, beside `mcp:SERVER` and single tools of servers.
LISTED_NAMES = (*NAMES, *READING_NAMES)


def bind(context: ToolContext, *lists: tuple[str, ...]) -> tuple[GuardedTool, ...]:
    """Return the tools that each list has, for one task; an empty list stands for all.

    Raises ConfigurationError for an unknown name. Tools of MCP servers are bound when their servers are connected.
    """
    unknown = [name for names in lists for name in names if not is_tool_name(name)]
    if unknown:
        raise ConfigurationError(f"There is no tool {unknown[0]}; there are {', '.join(sorted(LISTED_NAMES))}.")
    return tuple(
        tool(context) if all(uses_tool(names, tool.name) for names in lists) else ReadingForm(tool(context))
        for tool in TOOLS
        if all(uses_tool(names, reading_name(tool.name)) for names in lists)
    )


def activity_of(tool: str | None) -> str:
    """Return what an agent does while a call of the tool runs; empty for tools that declare nothing."""
    return _ACTIVITIES.get(tool or "", "")


def uses_tool(listed: Sequence[str], name: str) -> bool:
    """Return True if a personality that lists these tools has the tool; an empty list stands for all.

    `name` may also be `mcp:SERVER`, for all tools of a server, or `code:read`, which who has `code` has too.
    """
    if not listed or name in listed:
        return True
    if name in READING_NAMES:
        return full_name(name) in listed
    if name.startswith(SERVER_PREFIX):
        return SERVICES in listed
    server = name.partition(SEPARATOR)[0]
    return is_service_tool(name) and (SERVICES in listed or f"{SERVER_PREFIX}{server}" in listed)


def only_reads(listed: Sequence[str], tool: str) -> bool:
    """Return True if a personality that lists these tools has the tool in its reading form alone."""
    return uses_tool(listed, reading_name(tool)) and not uses_tool(listed, tool)


def common_tools(*lists: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools that all of these lists have, where an empty list stands for all.

    Raises `ConfigurationError` if there is none, since an empty list would stand for all again.
    """
    common: tuple[str, ...] = ()
    for listed in filter(None, lists):
        both = [name for name in common if uses_tool(listed, name)]
        both += [name for name in listed if uses_tool(common, name)]
        common = tuple(dict.fromkeys(both))
        if not common:
            raise ConfigurationError(f"None of these tools may be used here: {', '.join(listed)[:500]}.")
    return common


def is_tool_name(name: str) -> bool:
    """Return True for what a personality may list: a tool, `code:read`, `mcp` for all servers, `mcp:SERVER`,
    `SERVER__TOOL`.
    """
    return name in LISTED_NAMES or name.startswith(SERVER_PREFIX) or is_service_tool(name)

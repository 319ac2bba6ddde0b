"""The lists of tools, and the binding of a task's tools to its context."""

from app.engine.core.errors import ConfigurationError
from app.engine.tools.base import Tool, ToolContext
from app.engine.tools.code.tool import Code
from app.engine.tools.control_tools import AskUser, SendUpdate, TaskComplete
from app.engine.tools.shell.tool import Shell

# Chosen by a personality, and allowed by the policy.
TOOLS = (Shell, Code)
# Of every task: they only control it.
CONTROL_TOOLS = (TaskComplete, AskUser, SendUpdate)
NAMES = tuple(tool.name for tool in TOOLS)


def bind(context: ToolContext, names: tuple[str, ...] = ()) -> tuple[Tool, ...]:
    """The tools for one task; all if `names` is empty. Raises ConfigurationError for an unknown name."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ConfigurationError(f"There is no tool {unknown[0]}; there are {', '.join(sorted(NAMES))}.")
    return tuple(tool(context) for tool in TOOLS if not names or tool.name in names)

"""Tools in their reading form: what a personality lists as `code:read`, which changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.arguments import text_argument
from errand.engine.tools.base import Access, ExecutionMode, ParallelWhere, Tool
from errand.engine.tools.browser.tool import Browser
from errand.engine.tools.code.tool import Code
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult
from errand.engine.tools.shell.tool import Shell
from errand.protocol.agents import READING
from errand.protocol.base import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class _Reading:
    """The actions of a tool that may only read, and what its model is told beside the description."""

    actions: tuple[str, ...]
    remark: str


_READING: Mapping[str, _Reading] = {
    Code.name: _Reading(("read", "list", "search"), "You can read files, not change them."),
    Shell.name: _Reading(
        ("run", "output", "stop", "list"),
        "Only commands that read are run: ls, cat, wc, git log …; all others are refused.",
    ),
    Browser.name: _Reading(
        ("navigate", "extract_text", "extract_html", "snapshot", "screenshot", "close"),
        "You can open and read pages, not click, fill in or run scripts.",
    ),
}
READING_NAMES = tuple(f"{name}{READING}" for name in _READING)


def reading_name(tool: str) -> str:
    """Return the name of a tool's reading form, which is the tool's own name if it has none."""
    return f"{tool}{READING}" if tool in _READING else tool


def full_name(name: str) -> str:
    """Return the name of the tool whose reading form this is, or the name itself."""
    return name.removesuffix(READING) if name in READING_NAMES else name


class ReadingForm:
    """A tool of which only calls that read are allowed. The policy judges its commands (`Access.must_read`)."""

    def __init__(self, tool: Tool) -> None:
        reading = _READING[tool.name]
        self._tool = tool
        self._actions = reading.actions
        self.name = tool.name
        self.label = tool.label
        self.remark = reading.remark
        self.description = f"{tool.description} {reading.remark}"
        self.parameters = _with_actions(tool.parameters, reading.actions)
        self.execution_mode: ExecutionMode | ParallelWhere = tool.execution_mode

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        prepared = self._tool.prepare_arguments(arguments)
        action = text_argument(prepared, "action")
        if action and action not in self._actions:
            raise ToolError(
                f"Not allowed: this agent only reads, and {action!r} is not among what it can do with {self.name}: "
                f"{', '.join(self._actions)}. Say what should be changed instead.",
                "not allowed: this agent only reads",
            )
        return prepared

    def access(self, arguments: JsonObject) -> Access:
        return replace(self._tool.access(arguments), must_read=True)

    def allow(self, call_id: str, access: Access) -> None:
        self._tool.allow(call_id, access)

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        return await self._tool.execute(call_id, arguments, cancel, on_update)


def _with_actions(parameters: JsonObject, actions: tuple[str, ...]) -> JsonObject:
    """Return the schema of a tool with these values of `action` alone."""
    properties = parameters.get("properties")
    assert isinstance(properties, dict)
    action = properties["action"]
    assert isinstance(action, dict), "each tool with a reading form has actions"
    values: list[JsonValue] = [*actions]
    return {**parameters, "properties": {**properties, "action": {**action, "enum": values}}}

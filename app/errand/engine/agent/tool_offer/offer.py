"""`ToolOffer`: the tools of a task as its model sees them, and the way of each call between the two."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from errand.engine.agent.tool_offer.choice import ToolChoice, ToolSetName
from errand.engine.agent.tool_offer.presentations import MINIMAL, MINIMAL_READING, RARE, USUAL, Presentation
from errand.engine.core.json_input.lenient_json import read_object
from errand.engine.core.messages import TASK_COMPLETE, ToolCall
from errand.engine.models.base import CallForm, ToolDefinition
from errand.engine.models.reply.usage import CHARACTERS_A_TOKEN, characters_of_tool
from errand.engine.tools.base import AgentTool
from errand.engine.tools.code.tool import Code
from errand.engine.tools.control.find_tools import FindTools
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.mcp.definitions import SEPARATOR, is_service_tool
from errand.engine.tools.mcp.tool import is_tool_of_servers
from errand.engine.tools.reading_form import ReadingForm
from errand.protocol.base import JsonObject, JsonValue

# A call of this name is a call of the tool that it names: the record never has it.
CALL_TOOL = "call_tool"
_CALL_TOOL = ToolDefinition(
    CALL_TOOL,
    "Call a tool that find_tools named.",
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
    },
)
# Of the context window: the definitions of tools of other programs that are offered directly.
_SERVICE_SHARE = 0.1
_DEFAULT_WINDOW = 32_768
_PRESENTED: dict[ToolSetName, tuple[Presentation, ...]] = {"minimal": MINIMAL, "usual": USUAL, "all": ()}


@dataclass(frozen=True, slots=True)
class OfferedForm:
    """A call as its model was told to make it: the tool as offered, and the arguments under their offered names."""

    definition: ToolDefinition
    arguments: JsonObject


class ToolOffer:
    """The definitions for a model, and calls in both forms: as offered and as registered.

    Tools beyond the set are found by `find_tools` and called by `call_tool`, so that the list of tools stays the same
    within a conversation.
    """

    def __init__(self, tools: Sequence[AgentTool], choice: ToolChoice) -> None:
        self.call_form: CallForm = choice.call_form
        self.is_small = choice.is_small
        self._tools = {tool.name: tool for tool in tools}
        is_smallest = choice.set_name == "minimal" and choice.call_form == "json"
        only_reads = choice.set_name == "minimal" and isinstance(self._tools.get(Code.name), ReadingForm)
        presented = [
            presentation
            for presentation in (MINIMAL_READING if only_reads else _PRESENTED[choice.set_name])
            if (tool := self._tools.get(presentation.tool)) is not None
            and _fits(presentation, tool)
            and not (presentation.tool == Todo.name and is_smallest)
        ]
        self._presented = {presentation.name: presentation for presentation in presented}
        presented_tools = {presentation.tool for presentation in presented}
        others = [tool for tool in tools if tool.name not in presented_tools and tool.name != FindTools.name]
        direct, hidden = _split(others, choice)
        self._hidden = {tool.name: tool for tool in hidden}
        self._rare = {
            presentation.name: presentation
            for presentation in RARE
            if choice.set_name == "usual" and presentation.tool in self._tools
        }
        # A small model is not told of tools that it can do without.
        worth_finding = any(map(is_tool_of_servers, self._hidden)) or (choice.set_name != "minimal" and self._hidden)
        can_find = FindTools.name in self._tools and bool(worth_finding)
        definitions = [self._definition(presentation) for presentation in presented]
        definitions += map(_own_definition, direct)
        if can_find:
            definitions += [self._find_tools_definition(), _CALL_TOOL]
        self.definitions = tuple(definitions)
        rare = (self._definition(presentation) for presentation in self._rare.values())
        self._hidden_definitions = (*rare, *map(_own_definition, self._hidden.values()))
        self.names = tuple(definition.name for definition in definitions)

    @property
    def hidden_definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions of the tools that `find_tools` finds, also if the model is not told of it."""
        return self._hidden_definitions

    @property
    def findable(self) -> tuple[ToolDefinition, ...]:
        """The definitions of the tools that this model finds when it needs them."""
        return self._hidden_definitions if CALL_TOOL in self.names else ()

    def registered(self, call: ToolCall) -> ToolCall:
        """Return the call of the registered tool for one as offered; unchanged if no offered tool has its name."""
        if call.name == CALL_TOOL:
            return self._called_by_name(call)
        presentation = self._presented.get(call.name) or self._rare.get(call.name)
        if presentation is None:
            return call
        if call.invalid is not None:
            return replace(call, name=presentation.tool)
        return replace(call, name=presentation.tool, arguments=presentation.registered_arguments(call.arguments))

    def offered(self, call: ToolCall) -> ToolCall:
        """Return a call of a registered tool as this model would have written it."""
        for presentation in (*self._presented.values(), *self._rare.values()):
            if presentation.tool != call.name:
                continue
            arguments = presentation.offered_arguments(call.arguments)
            if arguments is not None:
                offered = replace(call, name=presentation.name, arguments=arguments)
                return offered if presentation.name in self._presented else _by_name(offered)
        is_hidden = call.name in self._hidden and CALL_TOOL in self.names
        return _by_name(call) if is_hidden and call.invalid is None else call

    def form_of(self, call: ToolCall) -> OfferedForm | None:
        """Return how this model makes such a call of a registered tool; None if it was told of none.

        The arguments may be others than those that are offered.
        """
        fitting = [
            presentation
            for presentation in (*self._presented.values(), *self._rare.values())
            if presentation.tool == call.name
            and all(call.arguments.get(name) == value for name, value in presentation.sets.items())
        ]
        if fitting:
            presentation = fitting[0]
            return OfferedForm(self._definition(presentation), presentation.with_offered_names(call.arguments))
        own = next((definition for definition in self.definitions if definition.name == call.name), None)
        return None if own is None or call.name not in self._tools else OfferedForm(own, call.arguments)

    def _called_by_name(self, call: ToolCall) -> ToolCall:
        name, arguments = call.arguments.get("name"), call.arguments.get("arguments", {})
        if isinstance(arguments, str):
            arguments = read_object(arguments)
        if not isinstance(name, str) or not isinstance(arguments, dict) or name == CALL_TOOL:
            return call
        return self.registered(replace(call, name=name, arguments=arguments))

    def _definition(self, presentation: Presentation) -> ToolDefinition:
        tool = self._tools[presentation.tool]
        description = presentation.description
        if isinstance(tool, ReadingForm) and not presentation.sets:  # the actions of those that have some say it
            description = f"{description} {tool.remark}"
        return ToolDefinition(presentation.name, description, presentation.parameters(tool.parameters))

    def _find_tools_definition(self) -> ToolDefinition:
        tool = self._tools[FindTools.name]
        own = [*self._rare, *(name for name in self._hidden if not is_service_tool(name))]
        servers = sorted({name.partition(SEPARATOR)[0] for name in self._hidden if is_service_tool(name)})
        names = ", ".join((*own, *(f"tools of {server}" for server in servers)))
        return ToolDefinition(tool.name, f"{tool.description} There are: {names}.", tool.parameters)


def _own_definition(tool: AgentTool) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, tool.parameters)


def _fits(presentation: Presentation, tool: AgentTool) -> bool:
    """Return False if the tool does not take what every such call has, as an agent that only reads cannot write, or
    wants an argument that is not offered, such as an answer that follows a schema.
    """
    required = tool.parameters.get("required")
    offered = {argument.registered or name for name, argument in presentation.arguments.items()}
    own = set(map(str, required)) if isinstance(required, list) else set[str]()
    has_sets = all(_takes(tool, name, value) for name, value in presentation.sets.items())
    return has_sets and own <= {*offered, *presentation.sets}


def _takes(tool: AgentTool, name: str, value: JsonValue) -> bool:
    properties = tool.parameters.get("properties")
    schema = properties.get(name) if isinstance(properties, dict) else None
    values = schema.get("enum") if isinstance(schema, dict) else None
    return not isinstance(values, list) or value in values


def _split(tools: Iterable[AgentTool], choice: ToolChoice) -> tuple[list[AgentTool], list[AgentTool]]:
    """Return the tools to offer directly, and those to find."""
    direct, services, hidden = list[AgentTool](), list[AgentTool](), list[AgentTool]()
    for tool in tools:
        if choice.set_name == "all":
            direct.append(tool)
        elif is_tool_of_servers(tool.name):
            services.append(tool)
        else:
            # A completion that is left is one whose answer follows a schema.
            (direct if tool.name in choice.named or tool.name == TASK_COMPLETE else hidden).append(tool)
    share = _SERVICE_SHARE * (choice.window or _DEFAULT_WINDOW)
    has_room = choice.set_name != "minimal" and sum(map(_tokens, services)) <= share
    (direct if has_room else hidden).extend(services)
    return direct, hidden


def _tokens(tool: AgentTool) -> int:
    return characters_of_tool(_own_definition(tool)) // CHARACTERS_A_TOKEN


def _by_name(call: ToolCall) -> ToolCall:
    return replace(call, name=CALL_TOOL, arguments={"name": call.name, "arguments": call.arguments})

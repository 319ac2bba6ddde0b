"""The interface of tools: `Tool`, its arguments, its result, its context."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import Text, UserContent
from errand.engine.core.settings import SettingValues
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.checkpoints import Checkpoints
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.sessions import ConversationSessions
from errand.protocol.background import BackgroundCommand
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import CallDisplay, FileEdit, Location, ResultMark
from errand.protocol.memory import FactScope, MemorySearchParams, MemorySearchResult
from errand.protocol.tasks import Task
from errand.text.redaction import Redactor

ExecutionMode = Literal["parallel", "sequential"]
# The permission that a call needs, in ascending order; `free` touches nothing outside its task.
PermissionTier = Literal["free", "read", "write", "run"]
CommandNetwork = Literal["none", "open", "missing"]
OnUpdate: TypeAlias = Callable[["ToolResult"], None]

T = TypeVar("T", bound=msgspec.Struct)

_MAX_SUMMARY_LENGTH = 120  # characters
_MAX_WHOLE_NUMBER = 2**53
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


@dataclass(frozen=True, slots=True)
class ParallelWhere:
    """Calls whose raw argument `name` has one of these values run in parallel with others, all other calls do not."""

    name: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool. The model reads `content`; people and the record also get `details` and `summary`.

    `summary` is one short line ("12 passed", "+3 −1"), without the time. Clients show these `details`, if there are
    any: `diff` (unified) with `added` and `removed`, `edits`, `locations`, `duration_ms`, `last_lines`, `stdout_file`
    and `stderr_file`.
    `terminate` requests that no further model call follows; it applies if every result of the batch sets it.
    """

    content: tuple[UserContent, ...]
    details: JsonObject | None = None
    summary: str = ""
    is_error: bool = False
    terminate: bool = False
    marks: tuple[ResultMark, ...] = ()


def text_result(text: str, summary: str = "", details: JsonObject | None = None) -> ToolResult:
    return ToolResult((Text(text),), details, summary)


def hidden(result: ToolResult, redactor: Redactor) -> ToolResult:
    """The result without the app's own keys."""
    content = tuple(Text(redactor.hide(block.text)) if isinstance(block, Text) else block for block in result.content)
    details = {name: _without_keys(value, redactor) for name, value in (result.details or {}).items()}
    return replace(result, content=content, details=details or result.details, summary=redactor.hide(result.summary))


def _without_keys(value: JsonValue, redactor: Redactor) -> JsonValue:
    match value:
        case str():
            return redactor.hide(value)
        case list():
            return [_without_keys(item, redactor) for item in value]
        case dict():
            return {name: _without_keys(item, redactor) for name, item in value.items()}
        case _:
            return value


def hidden_edit(edit: FileEdit, redactor: Redactor) -> FileEdit:
    """Return the edit without the app's own keys."""
    parts = tuple(
        msgspec.structs.replace(part, old_text=redactor.hide(part.old_text), new_text=redactor.hide(part.new_text))
        for part in edit.parts
    )
    return msgspec.structs.replace(edit, parts=parts)


def facts_of_files(*locations: Location, edits: tuple[FileEdit, ...] = ()) -> JsonObject:
    """Return the details of a result that say which files a call worked on, and what it changed in them."""
    facts = {"locations": locations, "edits": edits} if edits else {"locations": locations}
    return msgspec.json.decode(msgspec.json.encode(facts), type=JsonObject)


def short_text(text: str) -> str:
    """The first sentence or line of a text, of at most 120 characters."""
    sentence = _SENTENCE_END.split(text.partition("\n")[0], maxsplit=1)[0]
    return sentence[:_MAX_SUMMARY_LENGTH]


class ToolError(EngineError):
    """A tool failed: `str(error)` is the text for the model, `summary` the short one for people.

    Without a summary it is the first sentence: later ones tell the model what to do instead.
    """

    code = "tool_failed"

    def __init__(self, text: str, summary: str = "", details: JsonObject | None = None) -> None:
        super().__init__(text)
        self.summary = summary or short_text(text)
        self.details = details


@dataclass(frozen=True, slots=True)
class Access:
    """The effects of a call, which the policy checks before it runs.

    Paths are as the tool will use them: absolute, with `..` and links resolved; `given` is the path as the call names
    it. `command` is the exact command line; `text` describes the call in plain words; `preview` shows its effect (the
    diff of a write) and `edits` the same as data. `operation` is the tool's action. `basis` is a fingerprint of the
    files this was made from: if it differs later, approval is required again. `is_partial`: the preview does not show
    the whole change. `content` is a fingerprint of the call's arguments.

    A call of another kind sets one of these: `address` is the URL that it opens or, with a higher tier than `read`, the
    page that it acts on; `code` is source code that it runs in the sandbox or, with an `address`, in that page, in
    `language`; `service` is `server/tool`, a tool of another program; `is_changed` if that program describes it
    otherwise than when a person last saw it, so that no rule allows it. Its `basis` is a fingerprint of the
    tool, `service_tools` are those of all tools that the program has now. Without a sandbox, code has no `operation`,
    so that no rule can allow it.

    The policy sets the next three for a command that it allows unasked: `only_looks`, so that it runs with the PATH of
    the system and then `program_folders`, and `argv` if it is one program that needs no shell. `network` is
    for a command that needs it: `open` if a person allowed the command, else `missing`.
    """

    tier: PermissionTier
    text: str
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    command: str | None = None
    preview: str = ""
    edits: tuple[FileEdit, ...] = ()
    operation: str = ""
    basis: str = ""
    is_partial: bool = False
    content: str = ""
    given: str = ""
    address: str = ""
    code: str = ""
    language: str = ""
    service: str = ""
    is_changed: bool = False
    service_tools: tuple[str, ...] = ()
    only_looks: bool = False
    argv: tuple[str, ...] = ()
    network: CommandNetwork = "none"
    program_folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        runs = self.command is not None or bool(self.code) or bool(self.service)
        assert runs == (self.tier == "run"), "a call that runs something says what"
        assert not self.writes or self.has_effects, "a call that writes is no lower tier"

    @property
    def has_effects(self) -> bool:
        """False for read-only calls, which are safe to repeat."""
        return self.tier in ("write", "run")


class AddressGuard(Protocol):
    """Judges web addresses by the rules of now, where a tool opens them.

    `approved` are addresses that this task may open although no rule does: a person or the mode allowed a call that
    named them. Deny rules hold for them too.
    """

    def refusal(self, tool: str, url: str, approved: Sequence[str] = ()) -> str | None:
        """The reason why the tool may not open the address, None if it may."""
        ...

    def connection_refusal(
        self, tool: str, host: str, port: int, resolved: Sequence[str], approved: Sequence[str] = ()
    ) -> str | None:
        """The reason why the tool may not connect to a host that has these IP addresses, None if it may.

        The engine's own port is closed, and a public name must not lead into the local network.
        """
        ...


class ClosedAddresses:
    """Opens nothing: for a context in which no tool runs."""

    def refusal(self, tool: str, url: str, approved: Sequence[str] = ()) -> str | None:
        return "no address is open"

    def connection_refusal(
        self, tool: str, host: str, port: int, resolved: Sequence[str], approved: Sequence[str] = ()
    ) -> str | None:
        return "no address is open"


def _forget(folder: str) -> None:
    pass


def _show_nobody(commands: tuple[BackgroundCommand, ...]) -> None:
    pass


FindInMemory: TypeAlias = Callable[[MemorySearchParams, CancelSignal], Awaitable[MemorySearchResult]]


async def no_memory(params: MemorySearchParams, cancel: CancelSignal) -> MemorySearchResult:
    raise ToolError("There is no memory here.")


# `new`: it waits for a person now; `waiting`: an equal one does already; `pinned`: a person pinned an equal one.
Proposal = Literal["new", "waiting", "pinned"]
ProposeFact: TypeAlias = Callable[[str, FactScope], Awaitable[Proposal]]


async def no_proposals(text: str, scope: FactScope) -> Proposal:
    raise ToolError("Nothing can be proposed here.")


@dataclass(frozen=True, slots=True)
class SubAgentOrder:
    """The work of one sub-agent. Empty fields are those of the agent that gives it; `tools` are a part of its own."""

    title: str
    prompt: str
    personality: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()


class SubAgents(Protocol):
    """The sub-agents of one task."""

    async def run(self, order: SubAgentOrder, call_id: str, cancel: CancelSignal) -> Task:
        """Run a sub-agent to its end, or continue the one that an earlier engine started for this call.

        When `cancel` is set, it is stopped and waited for. Raises `EngineError` if it cannot start.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelOrder:
    """One question to a model. An empty `model` is that of the task; `max_tokens` 0 is the model's own limit.

    With `answer_schema` the model is given a tool of that name and these parameters, to answer by a call of it.
    """

    prompt: str
    system_prompt: str = ""
    model: str = ""
    max_tokens: int = 0
    answer_tool: str = ""
    answer_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The text of a reply, or the raw JSON of the answering call. `cost_usd` is None if the price is unknown.

    `is_cut`: a limit ended the reply before its end.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    is_cut: bool = False


class ModelCalls(Protocol):
    """Model calls of a task's tools, which count into the task's use."""

    @property
    def tools(self) -> "Sequence[AgentTool]":
        """The tools that the task's agent has."""
        ...

    async def ask(self, order: ModelOrder, on_text: Callable[[str | None], None], cancel: CancelSignal) -> ModelAnswer:
        """Ask once. `on_text` receives each new piece of the answer, None if it starts again.

        Raises `ToolError` if there is no answer, or if a limit of the task is reached.
        """
        ...


Vector: TypeAlias = tuple[float, ...]
Embed: TypeAlias = Callable[[tuple[str, ...], CancelSignal], Awaitable[tuple[Vector, ...]]]


async def no_embedding(texts: tuple[str, ...], cancel: CancelSignal) -> tuple[Vector, ...]:
    raise ToolError("Texts cannot be embedded here.")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The task's context for a tool. `output_dir` is for output too long for a result; `environment` has no keys.

    `processes` ends what the task has started; `sessions` keep what a tool leaves to the next call or task of the
    conversation. Commands run in the `sandbox`, if there is one. `redactor` knows the app's own keys, which no result
    may hold. `checkpoints` keep what changes of files replace; without them changes cannot be undone. Web addresses are
    opened if `addresses` lets them. `working_dir` is the folder in which the conversation's last shell ended, empty for
    the workspace; `keep_working_dir` stores another one. `background_changed` shows clients the background commands.
    `propose_fact` stores a fact until a person accepts it; raises `EngineError` with the reason if it cannot.
    `find_in_memory` finds what was said and done earlier.
    `sub_agents` is None where none can be started, `model_calls` where no model can be asked.
    `embed` gives a vector for each text. `settings` are those of when the task began; a tool reads what it needs.
    """

    task_id: str
    workspace: Path
    output_dir: Path
    environment: Mapping[str, str]
    processes: ProcessSweep
    sessions: ConversationSessions
    sandbox: CommandSandbox | None = None
    redactor: Redactor = field(default_factory=Redactor)
    checkpoints: Checkpoints | None = None
    addresses: AddressGuard = field(default_factory=ClosedAddresses)
    working_dir: str = ""
    keep_working_dir: Callable[[str], None] = _forget
    background_changed: Callable[[tuple[BackgroundCommand, ...]], None] = _show_nobody
    sub_agents: SubAgents | None = None
    propose_fact: ProposeFact = no_proposals
    find_in_memory: FindInMemory = no_memory
    model_calls: ModelCalls | None = None
    embed: Embed = no_embedding
    settings: SettingValues = field(default_factory=SettingValues)


class AgentTool(Protocol):
    """A tool as the loop uses it. Attributes may be instance or class attributes."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> JsonObject: ...
    @property
    def execution_mode(self) -> ExecutionMode | ParallelWhere: ...

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """Repair raw arguments before validation (for example renamed fields); most tools return them unchanged."""
        ...

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        """Run one call with validated arguments; raise `ToolError` on failure.

        `on_update` receives partial results for display. When `cancel` is set the tool ends everything it started,
        waits for that, and raises `ToolError("Operation aborted")`.
        """
        ...


class GuardedTool(AgentTool, Protocol):
    """A tool that reports its effects to the policy."""

    def access(self, arguments: JsonObject) -> Access:
        """The effects of a call with these validated arguments; has no side effects."""
        ...

    def allow(self, call_id: str, access: Access) -> None:
        """Permit the call exactly as described by `access`: `execute` fails if anything differs by then."""
        ...


class Tool(GuardedTool, Protocol):
    """A tool of the registry, instantiated for each task with its context."""

    @property
    def tier(self) -> PermissionTier:
        """The highest permission that a call may need."""
        ...

    @property
    def activity(self) -> str:
        """A phrase for what an agent does while a call runs: "running a command", marked for translation."""
        ...

    def __init__(self, context: ToolContext) -> None: ...

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        """Return how a call with these raw arguments is shown: clients know no tool by name.

        Reads no files; missing or wrong arguments are no error.
        """
        ...


def text_argument(arguments: JsonObject, name: str) -> str:
    """A text of raw arguments or of details; empty if it is missing or no text."""
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def whole_number(value: JsonValue) -> int | None:
    """Return a count, a time in milliseconds or a line; None if it is no such number, or larger than JSON can hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MAX_WHOLE_NUMBER else None


def schema_of(arguments: type[msgspec.Struct]) -> JsonObject:
    """A plain JSON Schema of type object, without references, which several providers reject."""
    schema = cast(JsonObject, msgspec.json.schema(arguments))
    definitions = cast(dict[str, JsonObject], schema.pop("$defs", {}))
    # Each request holds the schema: the names of our structs and empty defaults tell a model nothing.
    unnamed: JsonObject = {
        name: {key: value for key, value in definition.items() if key != "title"}
        for name, definition in definitions.items()
    }
    plain = cast(JsonObject, _inline(schema, unnamed))
    return {key: plain[key] for key in ("type", "properties", "required") if plain.get(key)}


def renamed(arguments: JsonObject, other_names: Mapping[str, str]) -> JsonObject:
    """Return the arguments with the tool's own names for those that models call otherwise."""
    own = dict(arguments)
    for other, name in other_names.items():
        if other in own and name not in own:
            own[name] = own.pop(other)
    return own


def decode(arguments: JsonObject, into: type[T]) -> T:
    """Convert raw arguments to the struct; ignores unknown fields, since models add some."""
    try:
        return msgspec.convert(arguments, into, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"Wrong arguments: {error}", "wrong arguments") from error


def _inline(value: JsonValue, definitions: JsonObject) -> JsonValue:
    if isinstance(value, list):
        return [_inline(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        return _inline(definitions[reference.removeprefix("#/$defs/")], definitions)
    return {key: _inline(item, definitions) for key, item in value.items() if key != "default" or item}

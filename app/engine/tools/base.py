"""The interface of tools: `Tool`, its arguments, its result, its context."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec

from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import EngineError
from app.engine.core.messages import Text, UserContent
from app.protocol.base import JsonObject, JsonValue

ExecutionMode = Literal["parallel", "sequential"]
# The kind of permission a call needs, from nothing at all (`free`: it touches nothing outside its task) upwards.
PermissionTier = Literal["free", "read", "write", "run"]
OnUpdate: TypeAlias = Callable[["ToolResult"], None]

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back. The model reads `content`; people and the record also get `details` and `summary`.

    `summary` is one short line ("12 passed", "+3 −1"). `terminate` asks for no further model call; it holds if every
    result of the batch sets it.
    """

    content: tuple[UserContent, ...]
    details: JsonObject | None = None
    summary: str = ""
    is_error: bool = False
    terminate: bool = False


def text_result(text: str, summary: str = "", details: JsonObject | None = None) -> ToolResult:
    return ToolResult((Text(text),), details, summary)


class ToolError(EngineError):
    """A tool failed: `str(error)` is the text for the model, `summary` the short one for people."""

    code = "tool_failed"

    def __init__(self, text: str, summary: str = "", details: JsonObject | None = None) -> None:
        super().__init__(text)
        self.summary = summary or text.partition("\n")[0][:120]
        self.details = details


@dataclass(frozen=True, slots=True)
class Access:
    """What a call would touch, told to the policy before it runs.

    Paths are as the tool will use them: absolute, `..` and links resolved. `command` is the exact command line; `text`
    says in plain words what will happen; `preview` shows it (the diff of a write). `operation` is which of the tool's
    actions it is. `basis` stands for the state of the disk that all this was made from: where it differs, ask again.
    """

    tier: PermissionTier
    text: str
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    command: str | None = None
    preview: str = ""
    operation: str = ""
    basis: str = ""

    def __post_init__(self) -> None:
        assert (self.command is not None) == (self.tier == "run"), "a call that runs something says what"
        assert not self.writes or self.tier in ("write", "run"), "a call that writes is no lower tier"


# Tells what a call would touch at this moment.
AccessLookup: TypeAlias = Callable[[], Awaitable[Access]]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool knows of its task. `output_dir` takes output too long for a result; `environment` holds no keys."""

    task_id: str
    workspace: Path
    output_dir: Path
    environment: Mapping[str, str]


class AgentTool(Protocol):
    """What the loop drives. Attributes may be plain or class attributes."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> JsonObject: ...
    @property
    def execution_mode(self) -> ExecutionMode: ...

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """Mend raw arguments before validation (renamed fields and the like); most tools return them as they are."""
        ...

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        """Run one call with validated arguments; raise `ToolError` on failure.

        `on_update` takes partial results to show meanwhile. When `cancel` is set the tool ends everything it
        started, waits for that, and raises `ToolError("Operation aborted")`.
        """
        ...


class GuardedTool(AgentTool, Protocol):
    """A tool that tells the policy what it would touch."""

    def access(self, arguments: JsonObject) -> Access:
        """What a call with these validated arguments would touch; it only looks."""
        ...

    def allow(self, call_id: str, access: Access) -> None:
        """The call may run as `access` said, and not otherwise: `execute` fails where something differs by then."""
        ...


class Tool(GuardedTool, Protocol):
    """A tool of the registry: made for each task with its workplace."""

    def __init__(self, workplace: ToolContext) -> None: ...


def schema_of(arguments: type[msgspec.Struct]) -> JsonObject:
    """A plain JSON Schema of type object, without references: several providers refuse them."""
    schema = cast(JsonObject, msgspec.json.schema(arguments))
    definitions = cast(JsonObject, schema.pop("$defs", {}))
    plain = cast(JsonObject, _inline(schema, definitions))
    return {key: plain[key] for key in ("type", "properties", "required") if key in plain}


def decode(arguments: JsonObject, into: type[T]) -> T:
    """Raw arguments as the struct; unknown fields are let pass, for models like to add some."""
    try:
        return msgspec.convert(arguments, into, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"Wrong arguments: {error}") from error


def _inline(value: JsonValue, definitions: JsonObject) -> JsonValue:
    if isinstance(value, list):
        return [_inline(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        return _inline(definitions[reference.removeprefix("#/$defs/")], definitions)
    return {key: _inline(item, definitions) for key, item in value.items()}

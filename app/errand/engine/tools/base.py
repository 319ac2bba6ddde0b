"""The interface of tools: `Tool`, and the effects that its calls declare.

`context.py` has what a tool is given, `arguments.py` how it reads its arguments, `results.py` what it gives back.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.context import ToolContext
from errand.engine.tools.results import OnUpdate, ToolResult
from errand.protocol.base import JsonObject
from errand.protocol.blocks import CallDisplay, FileEdit

ExecutionMode = Literal["parallel", "sequential"]
# The permission that a call needs, in ascending order; `free` touches nothing outside its task.
PermissionTier = Literal["free", "read", "write", "run"]
CommandNetwork = Literal["none", "open", "missing"]


@dataclass(frozen=True, slots=True)
class ParallelWhere:
    """Calls whose raw argument `name` has one of these values run in parallel with others, all other calls do not."""

    name: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Access:
    """The effects of a call, which the policy checks before it runs.

    Paths are as the tool will use them: absolute, with `..` and links resolved; `named_path` is the path as the call
    names it. `command` is the exact command line; `text` describes the call in plain words; `preview` shows its effect
    (the diff of a write) and `edits` the same as data. `operation` is the tool's action. `basis` is a fingerprint of
    the files this was made from: if it differs later, approval is required again. `is_partial`: the preview does not
    show the whole change. `content` is a fingerprint of the call's arguments.

    A call of another kind sets one of these: `address` is the URL that it opens or, with a higher tier than `read`, the
    page that it acts on; `code` is source code that it runs in the sandbox or, with an `address`, in that page, in
    `language`; `service` is `server/tool`, a tool of another program; `is_changed` if that program describes it
    otherwise than when a person last saw it, so that no rule allows it. Its `basis` is a fingerprint of the
    tool, `service_tools` are those of all tools that the program has now. Without a sandbox, code has no `operation`,
    so that no rule can allow it.

    `changes`: a call of the tier `free` changes something: it ends what a conversation keeps, or proposes a fact.

    `must_read`: the agent may only read, so that the policy refuses what could change anything.

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
    named_path: str = ""
    address: str = ""
    code: str = ""
    language: str = ""
    service: str = ""
    is_changed: bool = False
    service_tools: tuple[str, ...] = ()
    changes: bool = False
    must_read: bool = False
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

    @property
    def may_change(self) -> bool:
        """True for a call that may change something, for all that the policy knows."""
        return self.changes or (self.has_effects and not self.only_looks)


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
        """Return the effects of a call with these validated arguments; has no side effects."""
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

"""What a task gives to its tools: `ToolContext`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.ids import new_id
from errand.engine.core.setting_values import SettingValues
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.checkpoints import Checkpoints
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.results import ToolError
from errand.engine.tools.sessions import ConversationSessions, ToolSessions
from errand.protocol.background import BackgroundCommand
from errand.protocol.base import JsonObject
from errand.protocol.memory import FactScope, MemorySearchParams, MemorySearchResult
from errand.protocol.tasks.task import Task
from errand.text.redaction import Redactor


class AddressGuard(Protocol):
    """Judges web addresses by the rules of now, where a tool opens them.

    `approved` are addresses that this task may open although no rule does: a person or the mode allowed a call that
    named them. Deny rules hold for them too.
    """

    def refusal(self, tool: str, url: str, approved: Sequence[str] = ()) -> str | None:
        """Return the reason why the tool may not open the address, None if it may."""
        ...

    def connection_refusal(
        self, tool: str, host: str, port: int, resolved: Sequence[str], approved: Sequence[str] = ()
    ) -> str | None:
        """Return the reason why the tool may not connect to a host that has these IP addresses, None if it may.

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


class DescribedTool(Protocol):
    """A tool as a model is told of it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> JsonObject: ...


class ModelCalls(Protocol):
    """Model calls of a task's tools, which count into the task's use."""

    @property
    def tools(self) -> Sequence[DescribedTool]:
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
class ShellContext:
    """The state that `shell` keeps from one call to the next.

    `working_dir` is the folder in which the conversation's last shell ended, empty for the workspace;
    `keep_working_dir` stores another one. `background_changed` shows clients the background commands.
    """

    working_dir: str = ""
    keep_working_dir: Callable[[str], None] = _forget
    background_changed: Callable[[tuple[BackgroundCommand, ...]], None] = _show_nobody


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """The memory of a task's tools. `find` finds what was said and done earlier.

    `propose_fact` stores a fact until a person accepts it; raises `EngineError` with the reason if it cannot.
    """

    find: FindInMemory = no_memory
    propose_fact: ProposeFact = no_proposals


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The models of a task's tools. `calls` is None where none can be asked; `embed` gives a vector for each text."""

    calls: ModelCalls | None = None
    embed: Embed = no_embedding


def _no_sessions() -> ConversationSessions:
    return ConversationSessions(ToolSessions(), "")


def _no_processes() -> ProcessSweep:
    return ProcessSweep(new_id("task"))


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The task's context for a tool. `output_dir` is for output too long for a result; `environment` has no keys.

    `processes` ends what the task has started; `sessions` keep what a tool leaves to the next call or task of the
    conversation. Commands run in the `sandbox`, if there is one. `redactor` knows the app's own keys, which no result
    may hold. `checkpoints` keep what changes of files replace; without them changes cannot be undone. Web addresses are
    opened if `addresses` lets them. `sub_agents` is None where none can be started.
    `settings` are those of when the task began; a tool reads what it needs.
    The first three fields are enough for a tool that works on files.
    """

    task_id: str
    workspace: Path
    output_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    processes: ProcessSweep = field(default_factory=_no_processes)
    sessions: ConversationSessions = field(default_factory=_no_sessions)
    sandbox: CommandSandbox | None = None
    redactor: Redactor = field(default_factory=Redactor)
    checkpoints: Checkpoints | None = None
    addresses: AddressGuard = field(default_factory=ClosedAddresses)
    settings: SettingValues = field(default_factory=SettingValues)
    shell: ShellContext = field(default_factory=ShellContext)
    memory: MemoryAccess = field(default_factory=MemoryAccess)
    models: ModelAccess = field(default_factory=ModelAccess)
    sub_agents: SubAgents | None = None

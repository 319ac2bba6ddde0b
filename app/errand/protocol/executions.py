"""Tool executions and their output."""

from typing import Literal

from errand.protocol.base import JsonObject, Method, Timestamp, Wire

OutputName = Literal["text", "stdout", "stderr"]
# "open": it runs, or its engine was killed. "refused": it never ran: unknown, malformed, denied or skipped.
ExecutionOutcome = Literal["open", "done", "failed", "stopped", "refused"]


class ExecutionOutput(Wire, frozen=True, kw_only=True):
    """`text` is the text for the model; a stream that was too long for it is stored in full. `size` is in bytes."""

    name: OutputName
    size: int


class Execution(Wire, frozen=True, kw_only=True):
    """A tool call, also one that was refused. `about` describes it, `node_id` is the node after which it ran.

    `ended_at` is null while it runs, and permanently if the engine crashed. Its output is read separately.
    """

    id: str
    task_id: str
    node_id: str
    turn: int
    tool: str
    arguments: JsonObject
    about: str
    started_at: Timestamp
    ended_at: Timestamp | None = None
    is_error: bool = False
    outcome: ExecutionOutcome = "open"
    summary: str = ""
    outputs: tuple[ExecutionOutput, ...] = ()


class ExecutionListParams(Wire, frozen=True, kw_only=True):
    """The executions of a task, in the order in which they started."""

    task_id: str


class ExecutionListResult(Wire, frozen=True, kw_only=True):
    executions: tuple[Execution, ...]


class ExecutionOutputParams(Wire, frozen=True, kw_only=True):
    """A piece of an output, starting at byte `offset`."""

    execution_id: str
    name: OutputName = "text"
    offset: int = 0


class ExecutionOutputResult(Wire, frozen=True, kw_only=True):
    """`data` is base64, since an output may be binary. `next_offset` is null at its end."""

    data: str
    size: int
    next_offset: int | None = None


EXECUTION_LIST = Method(
    "execution/list",
    ExecutionListParams,
    ExecutionListResult,
    False,
    "List the tool calls of a task.",
)

EXECUTION_OUTPUT = Method(
    "execution/output",
    ExecutionOutputParams,
    ExecutionOutputResult,
    False,
    "Get the full output of a tool call.",
)

METHODS = (
    EXECUTION_LIST,
    EXECUTION_OUTPUT,
)

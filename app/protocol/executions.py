"""Tool executions and their output."""

from typing import Literal

from app.protocol.base import JsonObject, Method, Timestamp, Wire

OutputName = Literal["text", "stdout", "stderr"]


class ExecutionOutput(Wire, frozen=True, kw_only=True):
    """`text` is what the model has read; a stream that was too long for it is kept whole. `size` is in bytes."""

    name: OutputName
    size: int


class Execution(Wire, frozen=True, kw_only=True):
    """A call that was run: `about` says what it does, `node_id` is the node after which it ran.

    `ended_at` is null while it runs, and for good where a crash came between. What it gave is read apart.
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
    summary: str = ""
    outputs: tuple[ExecutionOutput, ...] = ()


class ExecutionListParams(Wire, frozen=True, kw_only=True):
    """Those of a task, in the order in which they started."""

    task_id: str


class ExecutionListResult(Wire, frozen=True, kw_only=True):
    executions: tuple[Execution, ...]


class ExecutionOutputParams(Wire, frozen=True, kw_only=True):
    """A piece of an output, from byte `offset` on."""

    execution_id: str
    name: OutputName = "text"
    offset: int = 0


class ExecutionOutputResult(Wire, frozen=True, kw_only=True):
    """`data` is base64: an output may be no text. `next_offset` is null at its end."""

    data: str
    size: int
    next_offset: int | None = None


EXECUTION_LIST = Method(
    "execution/list",
    ExecutionListParams,
    ExecutionListResult,
    False,
    "The tool calls of a task.",
)

EXECUTION_OUTPUT = Method(
    "execution/output",
    ExecutionOutputParams,
    ExecutionOutputResult,
    False,
    "What a tool call gave, however long.",
)

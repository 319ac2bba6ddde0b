"""The state of one run of the loop and its message queues; shared by loop, tool batch and tool calls."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from errand.engine.agent.loop.events import AgentEvent, MessageEnd, MessageStart
from errand.engine.agent.loop.hooks import Hooks
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Message
from errand.engine.models.base import ModelEvent, ModelRequest, PartialReply, ToolDefinition
from errand.engine.tools.base import AgentTool, ExecutionMode
from errand.protocol.agents import ThinkingLevel

QueueMode: TypeAlias = Literal["one_at_a_time", "all"]

StreamFunction: TypeAlias = Callable[[ModelRequest, CancelSignal], AsyncGenerator[ModelEvent, None]]
Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
Steering: TypeAlias = Literal["skip_remaining", "finish_batch"]


class MessageQueue:
    """`mode` is read at each poll: `take` returns the first message or all of them."""

    def __init__(self, mode: QueueMode) -> None:
        self.mode: QueueMode = mode
        self._waiting: list[Message] = []

    @property
    def waiting(self) -> tuple[Message, ...]:
        return tuple(self._waiting)

    def put(self, message: Message) -> None:
        self._waiting.append(message)

    def put_back(self, messages: Sequence[Message]) -> None:
        """Return messages that were taken but not delivered, to the front."""
        self._waiting[:0] = messages

    def take(self) -> tuple[Message, ...]:
        return self._take(len(self._waiting) if self.mode == "all" else 1)

    def take_all(self) -> tuple[Message, ...]:
        return self._take(len(self._waiting))

    def _take(self, count: int) -> tuple[Message, ...]:
        taken = tuple(self._waiting[:count])
        del self._waiting[:count]
        return taken


def definitions_of(tools: tuple[AgentTool, ...]) -> tuple[ToolDefinition, ...]:
    """Return the definitions of tools under their own names."""
    return tuple(ToolDefinition(tool.name, tool.description, tool.parameters) for tool in tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """Settings that stay constant during a run. `define_tools` returns the tools as the model is told of them."""

    stream: StreamFunction
    system_prompt: str = ""
    tools: tuple[AgentTool, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    session_id: str | None = None
    tool_execution: ExecutionMode = "parallel"
    steering: Steering = "skip_remaining"
    hooks: Hooks = field(default_factory=Hooks)
    define_tools: Callable[[tuple[AgentTool, ...]], tuple[ToolDefinition, ...]] = definitions_of


@dataclass(slots=True, kw_only=True)
class LoopRun:
    """The state of a run, or of several that continue each other.

    `messages` is the working list sent to models; `new_messages` are those that the last run added, `error` is its
    error. `in_turn` and `partial` (a started reply) mark what is still open: a failure must end both in order.
    """

    config: LoopConfig
    emit: Emit
    cancel: CancelSignal
    steering: MessageQueue
    follow_ups: MessageQueue
    messages: list[Message]
    model: str
    thinking_level: ThinkingLevel = "off"
    thinking_budget: int | None = None
    new_messages: list[Message] = field(default_factory=list[Message])
    error: str | None = None
    in_turn: bool = False
    partial: PartialReply | None = None
    tools: dict[str, AgentTool] = field(init=False)
    definitions: tuple[ToolDefinition, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.set_tools(self.config.tools)

    def set_tools(self, tools: tuple[AgentTool, ...]) -> None:
        """Offer these tools from the next model call on."""
        self.tools = {tool.name: tool for tool in tools}
        self.definitions = self.config.define_tools(tools)

    def add(self, message: Message) -> None:
        self.messages.append(message)
        self.new_messages.append(message)

    async def publish(self, message: Message) -> None:
        """Add a complete message and notify the listeners."""
        await self.emit(MessageStart(message))
        self.add(message)
        await self.emit(MessageEnd(message))

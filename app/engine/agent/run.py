"""One run of the loop: what it was given and what it has made so far; shared by the loop, the reply and the batch."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from app.engine.agent.events import AgentEvent, MessageEnd, MessageStart
from app.engine.agent.hooks import Hooks
from app.engine.agent.queues import MessageQueue
from app.engine.cancel import CancelSignal
from app.engine.messages import Message, ThinkingLevel
from app.engine.models.base import ModelEvent, ModelRequest, PartialReply, ToolDefinition
from app.engine.tools.base import AgentTool, ExecutionMode

StreamFunction: TypeAlias = Callable[[ModelRequest, CancelSignal], AsyncGenerator[ModelEvent, None]]
Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
Steering: TypeAlias = Literal["skip_remaining", "finish_batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """What stays the same over a run."""

    stream: StreamFunction
    system_prompt: str = ""
    tools: tuple[AgentTool, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    session_id: str | None = None
    tool_execution: ExecutionMode = "parallel"
    steering: Steering = "skip_remaining"
    hooks: Hooks = field(default_factory=Hooks)


@dataclass(slots=True, kw_only=True)
class Run:
    """The state of a run. `messages` is the working list that models see; `made` is what this run added.

    `in_turn` and `partial` (a reply that has started) say what has not ended yet: a failure has to end it in order.
    """

    config: LoopConfig
    emit: Emit
    cancel: CancelSignal
    steering: MessageQueue
    follow_ups: MessageQueue
    messages: list[Message]
    model: str
    thinking_level: ThinkingLevel = "off"
    skip_first_poll: bool = False
    made: list[Message] = field(default_factory=list[Message])
    in_turn: bool = False
    partial: PartialReply | None = None
    tools: dict[str, AgentTool] = field(init=False)
    definitions: tuple[ToolDefinition, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.tools = {tool.name: tool for tool in self.config.tools}
        self.definitions = tuple(
            ToolDefinition(tool.name, tool.description, tool.parameters) for tool in self.config.tools
        )

    def keep(self, message: Message) -> None:
        self.messages.append(message)
        self.made.append(message)

    async def publish(self, message: Message) -> None:
        """Add a message that is already whole, telling the listeners."""
        await self.emit(MessageStart(message))
        self.keep(message)
        await self.emit(MessageEnd(message))

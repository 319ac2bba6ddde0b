"""A stateful agent around the loop: transcript, steering and follow-up queues, listeners. One run at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from errand.engine.agent.loop.events import (
    AgentEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from errand.engine.agent.loop.hooks import Hooks
from errand.engine.agent.loop.loop import run_loop
from errand.engine.agent.loop.run_state import LoopConfig, LoopRun, MessageQueue, QueueMode, Steering, StreamFunction
from errand.engine.core.cancel import CancelSignal, StopCause
from errand.engine.core.errors import AgentBusy, IllegalMove
from errand.engine.core.messages import Message, user_text
from errand.engine.models.base import PartialReply
from errand.engine.tools.base import AgentTool, ExecutionMode
from errand.protocol.agents import ThinkingLevel

AgentListener: TypeAlias = Callable[[AgentEvent], Awaitable[None]]

_ALREADY_RUNNING = (
    "Agent is already processing a prompt. Use steer() or follow_up() to queue messages, or wait for completion."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """Initial configuration of an agent. `stream` makes the model calls; `steering`: whether steering skips calls.

    `thinking_budget` is how many tokens the model may think, in place of the level; models that take no number are told
    the nearest level.
    """

    stream: StreamFunction
    model: str
    system_prompt: str = ""
    tools: tuple[AgentTool, ...] = ()
    messages: tuple[Message, ...] = ()
    thinking_level: ThinkingLevel = "off"
    thinking_budget: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    session_id: str | None = None
    tool_execution: ExecutionMode = "parallel"
    steering: Steering = "skip_remaining"
    steering_mode: QueueMode = "one_at_a_time"
    follow_up_mode: QueueMode = "one_at_a_time"
    hooks: Hooks = field(default_factory=Hooks)


@dataclass(slots=True, kw_only=True)
class AgentState:
    """Read-only outside the agent: its methods write it. `error` is the last run's error, None after a success.

    `is_streaming` stays true until the listeners have handled the run's last event.
    """

    system_prompt: str
    model: str
    thinking_level: ThinkingLevel
    thinking_budget: int | None
    tools: tuple[AgentTool, ...]
    messages: list[Message]
    is_streaming: bool = False
    streaming_message: Message | PartialReply | None = None
    pending_tool_calls: set[str] = field(default_factory=set[str])
    error: str | None = None


class Agent:
    """Runs prompts through the loop. Setters take effect on the next run, except queue modes, which apply at once."""

    def __init__(self, options: AgentOptions) -> None:
        self._options = options
        self._listeners: list[AgentListener] = []
        self._steering = MessageQueue(options.steering_mode)
        self._follow_ups = MessageQueue(options.follow_up_mode)
        self._cancel: CancelSignal | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._emit_lock = asyncio.Lock()
        self.state = AgentState(
            system_prompt=options.system_prompt,
            model=options.model,
            thinking_level=options.thinking_level,
            thinking_budget=options.thinking_budget,
            tools=options.tools,
            messages=list(options.messages),
        )

    async def prompt(self, prompt: str | Message | Sequence[Message], cancel: CancelSignal | None = None) -> None:
        """Run on a text or messages until the agent has nothing left to do. A failing model sets `state.error`.

        `cancel` replaces the run's own signal. Raises AgentBusy during a run, and any error a listener raises.
        """
        if self.state.is_streaming:
            raise AgentBusy(_ALREADY_RUNNING)
        if isinstance(prompt, str):
            prompt = user_text(prompt)
        await self._run(prompt if isinstance(prompt, Sequence) else (prompt,), cancel)

    async def continue_(self, cancel: CancelSignal | None = None, *, skip_first_poll: bool = False) -> None:
        """Run on the existing transcript: after an error, or after tool results were added.

        Raises IllegalMove if there is nothing to continue from. With `skip_first_poll`, queued messages wait until
        after the first turn.
        """
        if self.state.is_streaming:
            raise AgentBusy("Agent is already processing. Wait for completion before continuing.")
        if not self.state.messages:
            raise IllegalMove("No messages to continue from")
        if self.state.messages[-1].role != "assistant":
            await self._run((), cancel, skip_first_poll=skip_first_poll)
        elif steering := self._steering.take():
            await self._run(steering, cancel, skip_first_poll=True)
        elif follow_ups := self._follow_ups.take():
            await self._run(follow_ups, cancel)
        else:
            raise IllegalMove("Cannot continue from message role: assistant")

    def steer(self, message: str | Message) -> None:
        """Queue a message for the next turn."""
        self._steering.put(user_text(message) if isinstance(message, str) else message)

    def follow_up(self, message: str | Message) -> None:
        """Queue a message to be delivered when the agent would otherwise stop."""
        self._follow_ups.put(user_text(message) if isinstance(message, str) else message)

    @property
    def queued_steering(self) -> tuple[Message, ...]:
        return self._steering.waiting

    @property
    def queued_follow_ups(self) -> tuple[Message, ...]:
        return self._follow_ups.waiting

    def clear_queues(self, *, steering: bool = True, follow_ups: bool = True) -> None:
        if steering:
            self._steering.take_all()
        if follow_ups:
            self._follow_ups.take_all()

    def abort(self, cause: StopCause | None = None) -> None:
        """Set the cancel signal of the current run; does nothing when idle. The queues stay unchanged."""
        if self._cancel is not None:
            self._cancel.set(cause)

    async def wait_for_idle(self) -> None:
        """Return when no run is active and its listeners are done. A listener must not await it."""
        await self._idle.wait()

    def reset(self) -> None:
        """Empty the transcript, the queues and the error. Raises AgentBusy during a run."""
        if self.state.is_streaming:
            raise AgentBusy("Agent is already processing. Wait for completion before resetting.")
        self.clear_queues()
        self.state.messages = []
        self.state.error = None

    def subscribe(self, listener: AgentListener) -> Callable[[], None]:
        """Call `listener` with every event, awaited in order of subscription; returns the unsubscriber."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def set_system_prompt(self, text: str) -> None:
        self.state.system_prompt = text

    def set_model(self, model: str) -> None:
        self.state.model = model

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """It replaces a budget too."""
        self.state.thinking_level, self.state.thinking_budget = level, None

    def set_thinking_budget(self, tokens: int) -> None:
        self.state.thinking_budget = tokens

    def set_tools(self, tools: Sequence[AgentTool]) -> None:
        self.state.tools = tuple(tools)

    def set_messages(self, messages: Sequence[Message]) -> None:
        """Replace the transcript, for instance to drop a failed reply before `continue_`."""
        self.state.messages = list(messages)

    def set_steering_mode(self, mode: QueueMode) -> None:
        self._steering.mode = mode

    def set_follow_up_mode(self, mode: QueueMode) -> None:
        self._follow_ups.mode = mode

    async def _run(
        self, prompts: Sequence[Message], cancel: CancelSignal | None, *, skip_first_poll: bool = False
    ) -> None:
        self._cancel = cancel = cancel or CancelSignal()
        self._idle.clear()
        self.state.is_streaming = True
        self.state.error = None
        try:
            await run_loop(self._new_run(cancel), prompts, skip_first_poll=skip_first_poll)
        except asyncio.CancelledError:
            cancel.set(StopCause("cancelled"))  # also stops work in threads and processes
            raise
        finally:
            self.state.is_streaming = False
            self.state.streaming_message = None
            self.state.pending_tool_calls.clear()
            self._cancel = None
            self._idle.set()

    def _new_run(self, cancel: CancelSignal) -> LoopRun:
        options, state = self._options, self.state
        config = LoopConfig(
            stream=options.stream,
            system_prompt=state.system_prompt,
            tools=state.tools,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            session_id=options.session_id,
            tool_execution=options.tool_execution,
            steering=options.steering,
            hooks=options.hooks,
        )
        return LoopRun(
            config=config,
            emit=self._emit,
            cancel=cancel,
            steering=self._steering,
            follow_ups=self._follow_ups,
            messages=list(state.messages),
            model=state.model,
            thinking_level=state.thinking_level,
            thinking_budget=state.thinking_budget,
        )

    async def _emit(self, event: AgentEvent) -> None:
        # Parallel tools emit at any time; the lock gives every listener the events in the same order.
        async with self._emit_lock:
            self._apply(event)
            for listener in tuple(self._listeners):
                await listener(event)

    def _apply(self, event: AgentEvent) -> None:
        state = self.state
        match event:
            case MessageUpdate(message) | MessageStart(message):
                state.streaming_message = message
            case MessageEnd(message):
                state.streaming_message = None
                state.messages.append(message)
            case ToolExecutionStart(call_id):
                state.pending_tool_calls.add(call_id)
            case ToolExecutionEnd(call_id):
                state.pending_tool_calls.discard(call_id)
            case TurnEnd(message):
                state.error = message.error or state.error
            case _:
                pass

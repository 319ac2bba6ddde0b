"""A scenario's options as an agent's: the two profiles and the scripted hooks."""

from collections.abc import Callable, Sequence

from errand.engine.agent.loop.agent import AgentOptions
from errand.engine.agent.loop.hooks import (
    FinishedCall,
    FinishedTurn,
    Hooks,
    NextTurn,
    PendingCall,
    ResultChange,
    ToolRefusal,
    TurnDecision,
)
from errand.engine.agent.loop.run_state import StreamFunction
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import (
    AssistantMessage,
    Message,
    ModelMessage,
    Text,
    ToolResultMessage,
    UserMessage,
    to_model_messages,
    user_text,
)
from errand.engine.tools.base import AgentTool
from tests.conformance.actions import MODES
from tests.conformance.messages import initial
from tests.conformance.provider import ScriptedFailure
from tests.conformance.scenario import Options, Profile, Scenario

Abort = Callable[[], None]


def agent_options(
    scenario: Scenario, profile: Profile, stream: StreamFunction, tools: tuple[AgentTool, ...], abort: Abort
) -> AgentOptions:
    options = scenario.options
    return AgentOptions(
        stream=stream,
        model="scripted/scripted",
        system_prompt=scenario.system_prompt,
        tools=tools,
        messages=tuple(initial(message) for message in scenario.initial_messages),
        tool_execution=options.tool_execution or ("parallel" if profile == "modern" else "sequential"),
        steering=options.steering or ("finish_batch" if profile == "modern" else "skip_remaining"),
        steering_mode=MODES[options.steering_mode],
        follow_up_mode=MODES[options.follow_up_mode],
        hooks=_ScriptedHooks(options, abort).hooks(),
    )


class _ScriptedHooks:
    """Answers the hooks as scripted; only those named by the scenario are installed."""

    def __init__(self, options: Options, abort: Abort) -> None:
        self._options = options
        self._abort = abort
        self._turns_finished = 0
        self._turns_prepared = 0

    def hooks(self) -> Hooks:
        options = self._options
        return Hooks(
            transform_context=self._transform if options.transform_context is not None else None,
            convert_to_llm=self._convert if options.convert_to_llm is not None else None,
            get_api_key=self._key if options.get_api_key else None,
            before_tool_call=self._before if options.before_tool_call is not None else None,
            after_tool_call=self._after if options.after_tool_call is not None else None,
            finish_turn=self._finish if options.finish_turn is not None else None,
            prepare_next_turn=self._prepare if options.prepare_next_turn is not None else None,
        )

    async def _transform(self, messages: tuple[Message, ...], cancel: CancelSignal) -> Sequence[Message]:
        spec = self._options.transform_context
        assert spec is not None
        if spec.raise_ is not None:
            raise ScriptedFailure(spec.raise_)
        if spec.keep_last is not None:
            messages = messages[-spec.keep_last :] if spec.keep_last else ()
        return (*messages, user_text(spec.append)) if spec.append is not None else messages

    async def _convert(self, messages: Sequence[Message]) -> Sequence[ModelMessage]:
        spec = self._options.convert_to_llm
        assert spec is not None
        drop, as_user = _roles(spec.drop), _roles(spec.as_user)
        remaining = [message for message in messages if message.role not in drop]
        return await to_model_messages(
            [_as_user(message) if message.role in as_user else message for message in remaining]
        )

    async def _key(self, model: str) -> str | None:
        return f"key for {model}"

    async def _before(self, pending: PendingCall, cancel: CancelSignal) -> ToolRefusal | None:
        spec = (self._options.before_tool_call or {}).get(pending.call.id)
        if spec is None:
            return None
        if spec.abort:
            self._abort()
        if spec.raise_ is not None:
            raise ScriptedFailure(spec.raise_)
        return ToolRefusal(spec.reason, spec.terminate) if spec.block else None

    async def _after(self, finished: FinishedCall, cancel: CancelSignal) -> ResultChange | None:
        spec = (self._options.after_tool_call or {}).get(finished.pending.call.id)
        if spec is None:
            return None
        if spec.raise_ is not None:
            raise ScriptedFailure(spec.raise_)
        content = (Text(spec.text),) if spec.text is not None else None
        return ResultChange(content, spec.details, None, spec.is_error, spec.terminate)

    async def _finish(self, turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        answers = self._options.finish_turn or []
        self._turns_finished += 1
        return answers[self._turns_finished - 1] if self._turns_finished <= len(answers) else None

    async def _prepare(self, turn: FinishedTurn, cancel: CancelSignal) -> NextTurn | None:
        answers = self._options.prepare_next_turn or []
        self._turns_prepared += 1
        texts = answers[self._turns_prepared - 1] if self._turns_prepared <= len(answers) else None
        return NextTurn(add=tuple(user_text(text) for text in texts)) if texts is not None else None


def _roles(names: Sequence[str]) -> set[str]:
    """The files write the role of a result in two ways."""
    return {"tool_result" if name == "toolResult" else name for name in names}


def _as_user(message: Message) -> Message:
    if isinstance(message, AssistantMessage | ToolResultMessage):
        return user_text("".join(block.text for block in message.content if isinstance(block, Text)))
    return UserMessage(message.content)

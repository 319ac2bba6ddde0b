"""Model calls that tools of a task make: within its limits, and counted into its use."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import msgspec

from errand.engine.agent.run.delegation import Delegation
from errand.engine.agent.run.limits import DailyBudget, LimitUse, reached_limit
from errand.engine.agent.run.stop_policy import StopPolicy
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import AssistantMessage, user_text
from errand.engine.models.base import BlockDelta, ChatModel, ModelOptions, ModelRequest, ReplyEnd, Retry, ToolDefinition
from errand.engine.models.reply.usage import usage_or_estimate, with_usage
from errand.engine.storage.records import turns
from errand.engine.storage.sql.journal import Journal
from errand.engine.tools.base import AgentTool
from errand.engine.tools.context import ModelAnswer, ModelOrder
from errand.engine.tools.results import ToolError
from errand.protocol.tasks.groups import LimitKind
from errand.protocol.usage import Usage
from errand.text.notice_text import limit_text

_MAX_CONCURRENT_CALLS = 4
_MAX_ERROR_LENGTH = 2_000


class TaskModelCalls:
    """Implements `ModelCalls` for one task. `find_tools` is set once the task has its tools."""

    def __init__(
        self,
        state: TaskState,
        policy: StopPolicy,
        daily_budget: DailyBudget,
        journal: Journal,
        model: ChatModel,
        has_price: Callable[[str], bool],
        open_model: Callable[[str], ChatModel] | None,
        delegation: Delegation | None,
    ) -> None:
        self._state = state
        self._reached = policy.reached_limit if delegation is None else delegation.reached_limit
        self._daily_budget = daily_budget
        self._journal = journal
        self._model = model
        self._has_price = has_price
        self._open_model = open_model
        self._places = asyncio.Semaphore(_MAX_CONCURRENT_CALLS)
        self.find_tools: Callable[[], Sequence[AgentTool]] = lambda: ()

    @property
    def tools(self) -> Sequence[AgentTool]:
        return self.find_tools()

    async def ask(self, order: ModelOrder, on_text: Callable[[str | None], None], cancel: CancelSignal) -> ModelAnswer:
        request = self._request(order)
        model = self._open(request.model)
        async with self._places:
            await self._check_limits()
            if cancel.is_set:
                raise ToolError("Operation aborted")
            message, usage = await self._call(model, request, on_text, cancel)
        if cancel.is_set or message.stop_reason == "aborted":
            raise ToolError("Operation aborted")
        answered_by = message.model or request.model
        if message.error is not None:
            raise ToolError(
                f"{answered_by} gave no answer: {message.error[:_MAX_ERROR_LENGTH]}",
                f"no answer of {answered_by}"[:120],
            )
        raw = [call.invalid or msgspec.json.encode(call.arguments).decode() for call in message.tool_calls]
        is_cut = message.stop_reason == "length"
        text = raw[0] if raw else message.text
        return ModelAnswer(text, answered_by, usage.input_tokens, usage.output_tokens, usage.cost_usd, is_cut)

    def _request(self, order: ModelOrder) -> ModelRequest:
        schema = order.answer_schema
        tools = () if schema is None else (ToolDefinition(order.answer_tool, "Give your answer.", schema),)
        options = ModelOptions(max_tokens=order.max_tokens or None)
        model = order.model or self._state.task.request.model
        return ModelRequest(model, order.system_prompt, (user_text(order.prompt),), tools, options)

    def _open(self, name: str) -> ChatModel:
        """Open a model: the task's own with the task's address and key, any other one with the stored ones."""
        task = self._state.task
        if name == task.request.model:
            return self._model
        if self._open_model is None:
            raise ToolError("Only the task's own model can be asked here.")
        try:
            model = self._open_model(name)
        except EngineError as error:
            raise ToolError(f"The model {name[:200]!r} cannot be used: {error}") from error
        if task.budget.budget_usd is not None and not self._has_price(name):
            raise ToolError(
                f"The price of {name} is unknown, so it cannot count against the budget of this task. "
                "Leave out `model` for the task's own one."
            )
        return model

    async def _check_limits(self) -> None:
        """Raises `ToolError` if nothing is left. Turns are left out: this is a part of one."""
        used: LimitUse[LimitKind] | None = self._reached()
        if used is None or used.kind == "turns":
            used = reached_limit(await self._daily_budget.uses())
        if used is not None:
            raise ToolError(f"{limit_text(used.kind, used.limit)} No tool asks a model any more.", "limit reached")

    async def _call(
        self, model: ChatModel, request: ModelRequest, on_text: Callable[[str | None], None], cancel: CancelSignal
    ) -> tuple[AssistantMessage, Usage]:
        """Return the reply, counted however the call ends."""
        began, started_at = time.monotonic(), datetime.now(UTC)
        reply = AssistantMessage(stop_reason="aborted")
        is_ended = False
        try:
            async with aclosing(model.stream(request, cancel)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd):
                        reply, is_ended = event.message, True
                    elif isinstance(event, BlockDelta):
                        reply = AssistantMessage(event.partial.content, "aborted")
                        if event.kind != "thinking":
                            on_text(event.delta)
                    elif isinstance(event, Retry):
                        on_text(None)
        finally:
            if not is_ended:
                reply = with_usage(reply, usage_or_estimate(request, reply))
            usage = self._count(request, reply, started_at, time.monotonic() - began)
        return reply, usage

    def _count(self, request: ModelRequest, reply: AssistantMessage, at: datetime, seconds: float) -> Usage:
        """Adds the call to the task's use, and stores it beside the turns of the task."""
        task, model = self._state.task, reply.model or request.model
        used = reply.usage
        usage = Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_read_tokens=used.cache_read_tokens,
            cache_write_tokens=used.cache_write_tokens,
            cost_usd=used.cost_usd if self._has_price(model) else None,
            seconds=seconds,
            estimated=used.estimated,
        )
        self._state.count(usage)
        self._state.publish_again()
        number = turns.number_beside_turns()
        outcome = "complete" if reply.error is None else "failed"
        self._journal.put(turns.started(task.conversation_id, task.id, number, model, at))
        self._journal.put(turns.finished(task.id, number, outcome, usage, datetime.now(UTC)))
        return usage

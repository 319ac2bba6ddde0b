"""Decides whether another turn follows, when a limit ends the task, and whether an `auto` task is a chat."""

from collections.abc import Callable
from datetime import UTC, datetime

from errand.engine.agent.loop.events import AgentEvent, MessageEnd
from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import FinishedTurn, TurnDecision
from errand.engine.agent.prompt.texts import engine_message
from errand.engine.agent.run.limits import DailyBudget, LimitUse, TaskLimits, limit_uses, near_limits, reached_limit
from errand.engine.agent.run.pending_asks import can_be_asked
from errand.engine.agent.run.replies.missing_answer import missing_answer
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.agent.run.task_state import TaskState, must_work
from errand.engine.core.cancel import CancelSignal, StopCause
from errand.engine.core.ids import new_id
from errand.engine.core.messages import AssistantMessage, Message
from errand.engine.models.base import ModelRequest, ReplyEnd, ToolDefinition
from errand.engine.tools.control.task_messages import AskUser, TaskComplete
from errand.protocol.asks import Ask, ReachedLimit
from errand.protocol.blocks import EngineMessageKind
from errand.protocol.notices import LimitsNear, MissingAnswer, NoAnswer, NoticeData, TaskStuck
from errand.protocol.tasks.groups import Allowance, DecidedMode, LimitKind, TaskLimitKind
from errand.text.notice_text import limit_text

# Consecutive replies that are no answer before the task ends as not done: the model is told once.
_MAX_MISSING_ANSWERS = 2
# Consecutive replies without a call that the app cut: the model is told once.
_MAX_CUT_ANSWERS = 2


class StopPolicy(Feature):
    """Decides at the end of each turn whether the task continues.

    `limit_above` is the limit that a task above this one has reached. `limit_end` is set if a limit ended the task,
    `stuck` if it repeated the same call and nobody could be asked. `missing` says why the last reply is no answer, None
    if it is one. `plan_message`, if set, is what the agent reads
    after this turn. `publish` adds a warning to the conversation.
    """

    def __init__(
        self,
        context: TaskContext,
        completion: TaskComplete,
        limits: TaskLimits,
        daily_budget: DailyBudget,
        publish: Callable[[NoticeData], None],
    ) -> None:
        self._state = context.state
        self._asks = context.asks
        self._completion = completion
        self._configured_limits = limits
        self._daily_budget = daily_budget
        self._publish = publish
        allowed = self._state.task.budget.allowance  # granted by a user before the task was resumed
        self._limits = limits if allowed is None else _effective_limits(allowed, limits)
        self._nudge: EngineMessageKind | None = None
        self._tool_runs_at_nudge: int | None = None
        self._cut_answers = 0
        self._missing_count = 0
        self._tools: tuple[ToolDefinition, ...] = ()
        self._call_text: str | None = None
        self.missing: MissingAnswer | None = None
        self._next_message: EngineMessageKind | None = None
        self.plan_message: EngineMessageKind | None = None
        self.limit_above: Callable[[], LimitUse[LimitKind] | None] = lambda: None
        self.limit_end: LimitUse[LimitKind] | None = None
        self.stuck: TaskStuck | None = None

    @property
    def has_ended_task(self) -> bool:
        return self.limit_end is not None or self.stuck is not None

    def end_as_stuck(self, notice: TaskStuck) -> None:
        self.stuck = notice

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """Check the daily limits: they also apply to a first call, and other tasks use them up meanwhile."""
        while not cancel.is_set and (over := reached_limit(await self._daily_budget.uses())) is not None:
            to = await self._ask_to_raise(over, self._daily_budget.configured_limit(over.kind), cancel)
            if to is not None:
                self._daily_budget.raise_limit(over.kind, to)
            elif not cancel.is_set:
                self.limit_end = over
                cancel.set(StopCause("limit"))
        return request

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd:
        self._tools, self._call_text = sent.tools, end.call_text
        return end

    async def finish_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> TurnDecision | None:
        """`end` if the task is complete and its queue empty, or out of limits; `continue` to nudge the model."""
        if cancel.is_set or turn.message.error is not None:
            return None
        if self.stuck is not None:
            return "end"
        self._note_missing_answer(turn.message)
        self._nudge = self._due_nudge(turn)
        if self._completion.completed is not None and self._nudge is None and not self._state.task.queue:
            return "end"
        self._completion.completed = None
        goes_on = self._nudge is not None or bool(turn.message.tool_calls)
        if self.missing is not None and not goes_on:
            self._publish(NoAnswer(why=self.missing))
        if goes_on and not await self._is_within_limits(cancel):
            return "end"
        if goes_on:
            await self._warn()
        return "continue" if self._nudge is not None else None

    async def prepare_next_turn(self, turn: FinishedTurn, cancel: CancelSignal) -> tuple[Message, ...]:
        kind, self._next_message, self._nudge = self._nudge or self._next_message, None, None
        plan, self.plan_message = self.plan_message, None
        return tuple(engine_message(each) for each in (kind, plan) if each is not None)

    def apply_mode(self, mode: DecidedMode) -> None:
        """Apply a mode chosen by the user from the end of this turn on; tell the agent if it is now a chat."""
        self._state.set_mode(mode, mode)
        self._next_message = "as_chat" if mode == "chat" else None

    def why_no_answer(self, reply: AssistantMessage) -> MissingAnswer | None:
        """Why a reply to the last request is no answer; None if it is one, or calls a tool."""
        return missing_answer(reply, self._tools, self._call_text)

    def _note_missing_answer(self, reply: AssistantMessage) -> None:
        self.missing = self.why_no_answer(reply)
        self._missing_count = self._missing_count + 1 if self.missing is not None else 0

    def _due_nudge(self, turn: FinishedTurn) -> EngineMessageKind | None:
        """Return what the engine answers to this turn.

        In `task` mode a reply without a call, and an end in which no tool ran, is answered once, and once more after
        each tool that has run since (docs/decisions/0083).
        """
        is_cut_answer = bool(turn.message.cut) and not turn.message.tool_calls
        self._cut_answers = self._cut_answers + 1 if is_cut_answer else 0
        if is_cut_answer:
            return "cut" if self._cut_answers < _MAX_CUT_ANSWERS else None
        if self.missing is not None:
            return "no_answer" if self._missing_count < _MAX_MISSING_ANSWERS else None
        task = self._state.task
        tool_runs = task.progress.tool_runs
        if task.queue:  # a message of a person is read next
            self._tool_runs_at_nudge = None
            return None
        lacks_work = must_work(task) and not tool_runs
        is_early = lacks_work if self._completion.completed is not None else not turn.message.tool_calls
        if task.options.mode != "task" or not is_early or self._tool_runs_at_nudge == tool_runs:
            return None
        self._tool_runs_at_nudge = tool_runs
        return "no_work" if lacks_work else "nudge"

    async def _warn(self) -> None:
        """Warn once per limit, and again if the limit was raised and is near again."""
        task = self._state.task
        limits = near_limits((*self._uses(), *await self._daily_budget.uses()))
        shares = tuple(used.share for used in limits if used.kind not in task.budget.near)
        if shares:
            self._publish(LimitsNear(shares=shares, asks=can_be_asked(task)))
        kinds: tuple[LimitKind, ...] = tuple(used.kind for used in limits)
        if kinds != task.budget.near:
            self._state.set_near_limits(kinds)

    def _uses(self) -> tuple[LimitUse[TaskLimitKind], ...]:
        task = self._state.task
        turns = task.progress.step_count + task.progress.delegated_turns
        return tuple(limit_uses(self._limits, turns, self._state.clock.worked_s(), task.total_usage))

    def reached_limit(self) -> LimitUse[TaskLimitKind] | None:
        return reached_limit(self._uses())

    def limits_left(self) -> TaskLimits:
        """Return what is left of each limit, at least one turn."""
        left = {use.kind: max(use.limit - use.used, 0.0) for use in self._uses()}
        tokens = left.get("tokens")
        return TaskLimits(
            max(1, int(left.get("turns", 1))),
            left.get("minutes"),
            left.get("money"),
            int(tokens) if tokens is not None else None,
        )

    async def _is_within_limits(self, cancel: CancelSignal) -> bool:
        if (above := self.limit_above()) is not None:  # the task above asks, or ends
            self.limit_end = above
            return False
        while (over := self.reached_limit()) is not None:
            adds = self._configured_limits.get(over.kind)
            assert adds is not None, "there is no limit but where one was given"
            to = await self._ask_to_raise(over, adds, cancel)
            if to is None:
                self.limit_end = None if cancel.is_set else over
                return False
            self._limits = self._limits.with_limit(over.kind, to)
            self._state.set_allowance(self._limits)
        return True

    async def _ask_to_raise(self, limit_use: LimitUse[LimitKind], amount: float, cancel: CancelSignal) -> float | None:
        """Return the new limit if the user agrees: as much again, or the amount they named.

        None if nobody can be asked.
        """
        is_below = self._state.task.origin.parent_id is not None and limit_use.kind not in ("day_money", "day_tokens")
        if is_below or not can_be_asked(self._state.task):
            return None
        ask = Ask(
            id=new_id("ask"),
            task_id=self._state.task.id,
            conversation_id=self._state.task.conversation_id,
            owner=self._state.task.owner,
            kind="limit",
            text=f"{limit_text(limit_use.kind, limit_use.limit)} Go on?",
            created_at=datetime.now(UTC),
            choices=("Go on with as much again", "Stop here"),
            limit=ReachedLimit(kind=limit_use.kind, used=limit_use.used, limit=limit_use.limit, adds=amount),
        )
        settled = await self._asks.raise_and_wait(ask, self._state, cancel)
        if settled.allowed is not True:
            return None
        return limit_use.used + amount if settled.amount is None else settled.amount


def _effective_limits(allowed: Allowance, configured: TaskLimits) -> TaskLimits:
    """Return the granted limits, except those that the settings have removed or added since."""
    return TaskLimits(
        allowed.turns,
        configured.minutes and (allowed.minutes or configured.minutes),
        configured.budget_usd and (allowed.budget_usd or configured.budget_usd),
        configured.tokens and (allowed.tokens or configured.tokens),
    )


class ModeDetector(Feature):
    """The first reply of a task in `auto` mode decides the mode."""

    def __init__(self, state: TaskState, policy: StopPolicy) -> None:
        self._state = state
        self._policy = policy

    async def on_event(self, event: AgentEvent) -> None:
        task = self._state.task
        if task.options.mode != "auto" or task.options.decided is not None:
            return
        match event:
            case MessageEnd(message=AssistantMessage() as reply):
                decided = None if self._policy.why_no_answer(reply) is not None else detect_mode(reply)
                if decided is not None:
                    self._state.set_mode("auto", decided)
            case _:
                pass


def detect_mode(reply: AssistantMessage) -> DecidedMode | None:
    """Return the mode that a reply decides: one with tool calls makes a task, an answer a chat, a question neither.

    An answer may come with `task_complete`: models with text-based tool calls end this way. An aborted reply decides
    nothing, and neither do announcements: the text is not interpreted.
    """
    if reply.stop_reason in ("error", "aborted"):
        return None
    called = {call.name for call in reply.tool_calls}
    if not called or (called == {TaskComplete.name} and reply.text):
        return "chat"
    return None if called == {AskUser.name} else "task"

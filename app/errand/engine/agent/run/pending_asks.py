"""Asks waiting for a user: raised once, settled once, the first answer wins."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import msgspec

from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import Busy, Conflict, InvalidParams, NotFound
from errand.engine.core.ids import new_id
from errand.engine.event_log import EventLog
from errand.engine.permissions.policy import PLAN_MODE
from errand.engine.storage.records.asks import AskStore
from errand.engine.tools.results import ToolError
from errand.protocol.asks import SKIP, Approval, Ask, AskAnswerParams, AskAnswerResult, SettledBy
from errand.protocol.base import Trust
from errand.protocol.events import AskUpdate
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.task import Task

_MAX_LIMIT = 1e12
_NOBODY = "nobody is there to ask"
_REASONS: dict[ApproveMode, str] = {"plan": PLAN_MODE, "never": _NOBODY}
_UNANSWERED = (
    "Find it out, or decide yourself and say what you assumed; if only the person can know it, say what is missing."
)
_MAX_EXPIRY_S = 315_360_000.0


# The answer that rules of the person give by now, and who wrote them; None if a person must answer.
Recheck: TypeAlias = Callable[[], Awaitable[tuple[AskAnswerParams, str] | None]]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An ask and the future of its answer. `news` is set when that is done, and when grants have changed."""

    ask: Ask
    answered: asyncio.Future[Ask]
    news: asyncio.Event = field(default_factory=asyncio.Event)


# Who settled an ask that a person answered in another place.
_DECIDED = "a decision made elsewhere"


def can_be_asked(task: Task) -> bool:
    """Return True if a user answers asks other than approvals: questions, limits and repeated calls."""
    return task.options.attended and task.options.approve != "never"


class PendingAsks:
    """All pending asks: of running tasks and of interrupted ones. `minutes` limits their time, 0 for no limit."""

    def __init__(self, log: EventLog, store: AskStore, minutes: Callable[[], float] = lambda: 0.0) -> None:
        self._log = log
        self._store = store
        self._minutes = minutes
        self._waiting: dict[str, _Waiting] = {}
        self._earlier: dict[str, list[Ask]] = {}
        self._closing = False

    def restore(self, ask: Ask) -> None:
        """Restore an ask of an interrupted task: it can be answered before the task resumes, and its time goes on."""
        self._add(_Waiting(ask, asyncio.get_running_loop().create_future()))

    def resume(self, task_id: str, asks: Iterable[Ask]) -> None:
        """The task resumes the turn that raised these asks: repeated asks reuse them, answered or not."""
        self._earlier[task_id] = [ask for ask in asks if ask.status != "cancelled"]

    async def raise_and_wait(
        self, ask: Ask, state: TaskState, cancel: CancelSignal, recheck: Recheck | None = None
    ) -> Ask:
        """Raise an ask and wait until it is answered, or cancelled by the signal.

        `recheck` is called when grants have changed: it may settle the ask.
        """
        ask = msgspec.structs.replace(ask, sub_agent=state.task.origin.title)
        earlier = self._take_earlier(ask)
        if earlier is not None and earlier.status == "answered":
            self._waiting.pop(earlier.id, None)
            return earlier
        entry = self._waiting.get(earlier.id) if earlier is not None else None
        if entry is None:
            entry = _Waiting(earlier or ask, asyncio.get_running_loop().create_future())
        if earlier is None or (earlier.expires_at is None and self._minutes()):
            entry = replace(entry, ask=self._with_time_limit(entry.ask))  # an earlier engine may have had no limit
            self._log.publish(AskUpdate(ask=entry.ask))
        self._add(entry)
        return await self._wait_for_answer(entry.ask, state, cancel, recheck)

    def drop_task(self, task_id: str) -> None:
        """Cancel the pending asks of a task: the turn that raised them is over."""
        self._earlier.pop(task_id, None)
        for entry in tuple(self._waiting.values()):
            if entry.ask.task_id == task_id:
                self._cancel(entry.ask)
                self._waiting.pop(entry.ask.id, None)

    def drop_conversation(self, conversation_id: str) -> None:
        """Drop the asks of a deleted conversation."""
        remaining = {key: entry for key, entry in self._waiting.items() if entry.ask.conversation_id != conversation_id}
        self._waiting = remaining

    def close(self) -> None:
        """The engine shuts down: pending asks stay open for the next engine."""
        self._closing = True

    async def _wait_for_answer(self, ask: Ask, state: TaskState, cancel: CancelSignal, recheck: Recheck | None) -> Ask:
        entry = self._waiting[ask.id]
        state.ask_raised(ask.id)
        unsubscribe = cancel.subscribe(lambda: self._cancel(ask))
        try:
            while not entry.answered.done():
                await entry.news.wait()
                entry.news.clear()
                if recheck is not None and not entry.answered.done() and (answer := await recheck()) is not None:
                    self._settle(msgspec.structs.replace(_answered_ask(ask, *answer), settled_by="rule"))
            return entry.answered.result()
        finally:
            unsubscribe()
            self._cancel(ask)  # if the waiting was cancelled
            self._waiting.pop(ask.id, None)
            state.ask_settled(ask.id)

    def _take_earlier(self, ask: Ask) -> Ask | None:
        """Return the ask as an earlier engine raised it, in its newest state."""
        asks = self._earlier.get(ask.task_id, [])
        earlier = next((other for other in asks if _is_same(other, ask)), None)
        if earlier is None:
            return None
        asks.remove(earlier)
        entry = self._waiting.get(earlier.id)
        return entry.answered.result() if entry is not None and entry.answered.done() else earlier

    async def answer(self, params: AskAnswerParams, by: str, settled_by: SettledBy = "person") -> AskAnswerResult:
        """Settle an ask; later answers get the first result. Raises `InvalidParams` if the answer does not fit."""
        entry = self._waiting.get(params.ask_id)
        if entry is None:
            return await self._late_answer(params)
        if entry.ask.expires_at is not None and entry.ask.expires_at <= datetime.now(UTC):
            self._expire(entry.ask.id)  # the timer is late after the machine has slept
        if entry.answered.done():
            return AskAnswerResult(won=False, ask=entry.answered.result())
        _check(entry.ask, params)
        settled = msgspec.structs.replace(_answered_ask(entry.ask, params, by), settled_by=settled_by)
        self._settle(settled)
        self._settle_daily(params, settled)
        await self._log.flush()
        return AskAnswerResult(won=True, ask=settled)

    def grants_changed(self) -> None:
        """Judge the pending asks of running tasks anew: a new rule may allow or deny them."""
        for entry in self._waiting.values():
            entry.news.set()

    def settle_in_mode(self, conversation_id: str, mode: ApproveMode, by: str) -> None:
        """Settle the open approvals of a conversation that would not be raised in its new mode."""
        for entry in tuple(self._waiting.values()):
            approval = entry.ask.approval
            if entry.answered.done() or approval is None or entry.ask.conversation_id != conversation_id:
                continue
            if mode in ("plan", "never") or mode in approval.modes:
                params = AskAnswerParams(ask_id=entry.ask.id, text=_REASONS.get(mode, ""), allow=mode in approval.modes)
                self._settle(msgspec.structs.replace(_answered_ask(entry.ask, params, by), settled_by="mode"))

    def _add(self, entry: _Waiting) -> None:
        self._waiting[entry.ask.id] = entry
        if entry.ask.expires_at is not None:
            left = (entry.ask.expires_at - datetime.now(UTC)).total_seconds()
            asyncio.get_running_loop().call_later(max(0.0, left), self._expire, entry.ask.id)

    def _with_time_limit(self, ask: Ask) -> Ask:
        minutes = self._minutes()
        return msgspec.structs.replace(ask, expires_at=ask.created_at + timedelta(minutes=minutes)) if minutes else ask

    def _expire(self, ask_id: str) -> None:
        """Settle an ask that nobody answered in time as if it was denied; a call is not repeated."""
        entry = self._waiting.get(ask_id)
        if entry is None or self._closing or entry.answered.done() or entry.ask.expires_at is None:
            return
        minutes = (entry.ask.expires_at - entry.ask.created_at).total_seconds() / 60
        reason = f"nobody answered within {minutes:.4g} min"
        is_unknown = entry.ask.kind == "unknown"
        params = AskAnswerParams(
            ask_id=ask_id,
            text=SKIP if is_unknown else reason,
            allow=None if is_unknown or entry.ask.kind == "question" else False,
        )
        settled = _answered_ask(entry.ask, params, None)
        self._settle(msgspec.structs.replace(settled, settled_by="timeout"))

    def _settle_daily(self, params: AskAnswerParams, settled: Ask) -> None:
        """Settle the same daily-limit ask of all tasks: the limit is raised for all at once."""
        for entry in tuple(self._waiting.values()) if settled.allowed and _is_daily(settled) else ():
            if not entry.answered.done() and _is_same_limit(entry.ask, settled):
                self._settle(_answered_ask(entry.ask, params, settled.answered_by or ""))

    def _cancel(self, ask: Ask) -> None:
        cancelled = msgspec.structs.replace(ask, status="cancelled")
        if not self._closing:
            self._settle(cancelled)
        elif (entry := self._waiting.get(ask.id)) is not None and not entry.answered.done():
            entry.answered.set_result(cancelled)  # only for its task, which ends here
            entry.news.set()

    def _settle(self, ask: Ask) -> None:
        entry = self._waiting.get(ask.id)
        if entry is None or entry.answered.done():
            return
        self._log.publish(AskUpdate(ask=ask))
        entry.answered.set_result(ask)
        entry.news.set()

    async def _late_answer(self, params: AskAnswerParams) -> AskAnswerResult:
        await self._log.flush()  # the answer may not be committed yet
        ask = await self._store.get(params.ask_id)
        if ask is None:
            raise NotFound(f"There is no ask {params.ask_id!r}.")
        if ask.status == "waiting":
            raise Busy("The engine is ending, and this waits for the next one. Answer it when that is there.")
        return AskAnswerResult(won=False, ask=ask)


class UserQuestions:
    """Raises the questions of one task's `ask_user`."""

    def __init__(self, state: TaskState, asks: PendingAsks) -> None:
        self._state = state
        self._asks = asks

    async def ask(self, question: str, choices: tuple[str, ...], call_id: str, cancel: CancelSignal) -> str | None:
        """Return the answer; None if the task was stopped first.

        Raises `ToolError` if nobody can be asked, or answered in time.
        """
        if not can_be_asked(self._state.task):
            raise _not_answered(_NOBODY)
        ask = Ask(
            id=new_id("ask"),
            task_id=self._state.task.id,
            conversation_id=self._state.task.conversation_id,
            owner=self._state.task.owner,
            kind="question",
            text=question,
            created_at=datetime.now(UTC),
            choices=choices,
            call_id=call_id,
        )
        settled = await self._asks.raise_and_wait(ask, self._state, cancel)
        if settled.settled_by == "timeout":
            raise _not_answered(settled.answer)
        return settled.answer


def _not_answered(why: str | None) -> ToolError:
    return ToolError(f"Not answered: {why}. {_UNANSWERED}", summary="not answered")


async def ask_for_trust(
    asks: PendingAsks,
    state: TaskState,
    approval: Approval,
    trust_now: Callable[[], Trust],
    decide: Callable[[bool], None],
    cancel: CancelSignal,
) -> None:
    """Ask whether a person trusts what files of a workspace bring, and store the answer with `decide`.

    A decision made elsewhere, as `trust_now` says, settles the ask.
    """
    ask = Ask(
        id=new_id("ask"),
        task_id=state.task.id,
        conversation_id=state.task.conversation_id,
        owner=state.task.owner,
        kind="approval",
        text=approval.text,
        created_at=datetime.now(UTC),
        approval=approval,
    )

    async def recheck() -> tuple[AskAnswerParams, str] | None:
        trust = trust_now()
        return None if trust == "unknown" else (AskAnswerParams(ask_id=ask.id, allow=trust == "trusted"), _DECIDED)

    settled = await asks.raise_and_wait(ask, state, cancel, recheck)
    if settled.status == "answered" and settled.settled_by == "person":
        decide(settled.allowed is True)
        asks.grants_changed()  # other tasks here ask the same


def _answered_ask(ask: Ask, params: AskAnswerParams, by: str | None) -> Ask:
    return msgspec.structs.replace(
        ask,
        status="answered",
        answer=params.text,
        allowed=params.allow,
        remember=params.remember,
        offer=params.offer,
        expires_s=params.expires_s,
        amount=params.amount,
        answered_by=by,
        answered_at=datetime.now(UTC),
    )


def _is_same(ask: Ask, other: Ask) -> bool:
    """Return True if a resumed turn repeats the ask."""
    return _content(ask) == _content(other)


def _content(ask: Ask) -> tuple[object, ...]:
    """Return what a person decided about, without other offers and explanations, which depend on other rules too."""
    approval = ask.approval
    if approval is not None:
        approval = msgspec.structs.replace(approval, offers=(), explained="", modes=(), remembered=None, grantable=None)
    return (ask.kind, ask.call_id, ask.text, ask.choices, approval, ask.unknown)


def _check(ask: Ask, params: AskAnswerParams) -> None:
    if params.basis is not None and (ask.approval is None or ask.approval.basis != params.basis):
        raise Conflict("This answers another call than the one that is asked about: look at it again.")
    if ask.kind == "question":
        if not params.text.strip():
            raise InvalidParams("A question needs a text as its answer.")
    elif ask.kind == "unknown":
        if params.text not in ask.choices:
            raise InvalidParams(f"Say as `text` one of: {', '.join(ask.choices)}.")
    elif params.allow is None:
        raise InvalidParams("Say `allow`: true or false.")
    if params.amount is not None:
        _check_amount(ask, params.amount)
    _check_remember(ask, params)


def _check_remember(ask: Ask, params: AskAnswerParams) -> None:
    """Only what was offered can be remembered, and only by who allows it."""
    if params.remember == "once":
        if params.expires_s is not None:
            raise InvalidParams("`expires_s` is for what is remembered.")
        return
    offers = ask.approval.offers if ask.approval is not None and params.allow else ()
    if not offers:
        raise InvalidParams("This cannot be remembered; answer it with `remember`: once.")
    if not 0 <= params.offer < len(offers):
        raise InvalidParams(f"offer: {params.offer}; there are {len(offers)}, counted from 0.")
    if params.remember not in offers[params.offer].scopes:
        raise InvalidParams(f"This offer can be remembered for: {', '.join(offers[params.offer].scopes)}.")
    if params.expires_s is not None and not 0 < params.expires_s <= _MAX_EXPIRY_S:
        raise InvalidParams("`expires_s` must be more than 0 and at most ten years.")


def _is_daily(ask: Ask) -> bool:
    return ask.limit is not None and ask.limit.kind in ("day_money", "day_tokens")


def _is_same_limit(ask: Ask, other: Ask) -> bool:
    if ask.limit is None or other.limit is None:
        return False
    return (ask.limit.kind, ask.limit.limit) == (other.limit.kind, other.limit.limit)


def _check_amount(ask: Ask, amount: float) -> None:
    if ask.limit is None:
        raise InvalidParams("`amount` is for a limit that was reached.")
    if not ask.limit.used < amount < _MAX_LIMIT:
        raise InvalidParams(f"The new limit must be more than what was used: {ask.limit.used:g} {ask.limit.kind}.")
    if ask.limit.kind in ("turns", "tokens", "day_tokens") and amount != int(amount):
        raise InvalidParams(f"The new limit must be a whole number of {ask.limit.kind}.")

"""Asks that wait for a person: raised once, settled once; the first answer wins."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from app.engine.agent.live import LiveTask
from app.engine.broadcast import EventLog
from app.engine.cancel import CancelSignal
from app.engine.errors import InvalidParams, NotFound
from app.engine.storage.asks import AskStore
from app.protocol.asks import Ask, AskAnswerParams, AskAnswerResult
from app.protocol.events import AskUpdate
from app.protocol.grants import Grant


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An ask, where its answer goes, and the workspace of its task."""

    ask: Ask
    answered: asyncio.Future[Ask]
    workspace: str

    def is_allowed_by(self, grant: Grant) -> bool:
        approval, scope = self.ask.approval, (grant.scope, grant.scope_id)
        is_there = scope in (("conversation", self.ask.conversation_id), ("workspace", self.workspace))
        return is_there and approval is not None and (approval.tool, approval.remembered) == (grant.tool, grant.exact)


class AskDesk:
    """All asks of the tasks under way. Asks of earlier runs are in storage only."""

    def __init__(self, log: EventLog, store: AskStore) -> None:
        self._log = log
        self._store = store
        self._waiting: dict[str, _Waiting] = {}

    async def put(self, ask: Ask, live: LiveTask, cancel: CancelSignal) -> Ask:
        """Raise an ask and wait until it is answered, or cancelled by the signal."""
        answered: asyncio.Future[Ask] = asyncio.get_running_loop().create_future()
        self._waiting[ask.id] = _Waiting(ask, answered, live.task.workspace)
        self._log.publish(AskUpdate(ask=ask))
        live.ask_raised(ask.id)
        unsubscribe = cancel.subscribe(lambda: self._settle(msgspec.structs.replace(ask, status="cancelled")))
        try:
            return await answered
        finally:
            unsubscribe()
            self._settle(msgspec.structs.replace(ask, status="cancelled"))  # where the waiting itself was given up
            self._waiting.pop(ask.id, None)
            live.ask_settled(ask.id)

    async def answer(self, params: AskAnswerParams, by: str) -> AskAnswerResult:
        """Settle an ask; a later answer does not win and gets the first. `InvalidParams` if it does not fit."""
        entry = self._waiting.get(params.ask_id)
        if entry is None:
            return await self._late(params)
        if entry.answered.done():
            return AskAnswerResult(won=False, ask=entry.answered.result())
        _check(entry.ask, params)
        settled = _settled(entry.ask, params, by)
        self._settle(settled)
        await self._log.flush()
        return AskAnswerResult(won=True, ask=settled)

    def settle_granted(self, grant: Grant) -> None:
        """Allow what waits for just what a new grant allows: it would not be asked for now."""
        for entry in tuple(self._waiting.values()):
            if not entry.answered.done() and entry.is_allowed_by(grant):
                self._settle(_settled(entry.ask, AskAnswerParams(ask_id=entry.ask.id, allow=True), grant.created_by))

    def _settle(self, ask: Ask) -> None:
        entry = self._waiting.get(ask.id)
        if entry is None or entry.answered.done():
            return
        self._log.publish(AskUpdate(ask=ask))
        entry.answered.set_result(ask)

    async def _late(self, params: AskAnswerParams) -> AskAnswerResult:
        await self._log.flush()  # what settled it may not be there to read yet
        ask = await self._store.get(params.ask_id)
        if ask is None:
            raise NotFound(f"There is no ask {params.ask_id!r}.")
        if ask.status == "waiting":
            raise NotFound("The task of this ask is not under way. Resume the task, then answer what it asks.")
        return AskAnswerResult(won=False, ask=ask)


def _settled(ask: Ask, params: AskAnswerParams, by: str) -> Ask:
    return msgspec.structs.replace(
        ask,
        status="answered",
        answer=params.text,
        allowed=params.allow,
        remember=params.remember,
        answered_by=by,
        answered_at=datetime.now(UTC),
    )


def _check(ask: Ask, params: AskAnswerParams) -> None:
    if ask.kind == "question":
        if not params.text.strip():
            raise InvalidParams("A question wants a text as its answer.")
    elif params.allow is None:
        raise InvalidParams("Say `allow`: true or false.")
    if params.remember != "once" and (ask.approval is None or ask.approval.remembered is None):
        raise InvalidParams("This cannot be remembered; answer it with `remember`: once.")

"""Asks that wait for a person: raised once, settled once; the first answer wins."""

import asyncio
from datetime import UTC, datetime

import msgspec

from app.engine.agent.live import LiveTask
from app.engine.broadcast import EventLog
from app.engine.cancel import CancelSignal
from app.engine.errors import InvalidParams, NotFound
from app.engine.storage.asks import AskStore
from app.protocol.asks import Ask, AskAnswerParams, AskAnswerResult
from app.protocol.events import AskUpdate


class AskDesk:
    """All asks of the tasks under way. Asks of earlier runs are in storage only."""

    def __init__(self, log: EventLog, store: AskStore) -> None:
        self._log = log
        self._store = store
        self._waiting: dict[str, tuple[Ask, asyncio.Future[Ask]]] = {}

    async def put(self, ask: Ask, live: LiveTask, cancel: CancelSignal) -> Ask:
        """Raise an ask and wait until it is answered, or cancelled by the signal."""
        answered: asyncio.Future[Ask] = asyncio.get_running_loop().create_future()
        self._waiting[ask.id] = (ask, answered)
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
        ask, answered = entry
        if answered.done():
            return AskAnswerResult(won=False, ask=answered.result())
        _check(ask, params)
        settled = msgspec.structs.replace(
            ask,
            status="answered",
            answer=params.text,
            allowed=params.allow,
            remember=params.remember,
            answered_by=by,
            answered_at=datetime.now(UTC),
        )
        self._settle(settled)
        await self._log.flush()
        return AskAnswerResult(won=True, ask=settled)

    def _settle(self, ask: Ask) -> None:
        entry = self._waiting.get(ask.id)
        if entry is None or entry[1].done():
            return
        self._log.publish(AskUpdate(ask=ask))
        entry[1].set_result(ask)

    async def _late(self, params: AskAnswerParams) -> AskAnswerResult:
        await self._log.flush()  # what settled it may not be there to read yet
        ask = await self._store.get(params.ask_id)
        if ask is None:
            raise NotFound(f"There is no ask {params.ask_id!r}.")
        if ask.status == "waiting":
            raise NotFound("The task of this ask is not under way. Resume the task, then answer what it asks.")
        return AskAnswerResult(won=False, ask=ask)


def _check(ask: Ask, params: AskAnswerParams) -> None:
    if ask.kind == "question":
        if not params.text.strip():
            raise InvalidParams("A question wants a text as its answer.")
    elif params.allow is None:
        raise InvalidParams("Say `allow`: true or false.")
    if params.remember != "once" and (ask.approval is None or ask.approval.remembered is None):
        raise InvalidParams("This cannot be remembered; answer it with `remember`: once.")

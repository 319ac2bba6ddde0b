"""Answers the asks of a replay as the record has it."""

import asyncio
from collections import deque

from app.engine.agent.asks import AskDesk
from app.engine.broadcast import Frame
from app.engine.errors import EngineError
from app.engine.record.lines import TaskRecord
from app.engine.record.stage import Stage
from app.protocol.asks import Ask, AskAnswerParams
from app.protocol.events import AskUpdate, Delta, EventRecord


class RecordedPerson:
    """A listener of the event log; `answer_all` is its work, until it is cancelled."""

    def __init__(self, record: TaskRecord, stage: Stage, desk: AskDesk) -> None:
        self._recorded = deque(record.asks)
        self._stage = stage
        self._desk = desk
        self._asked: asyncio.Queue[Ask] = asyncio.Queue()
        self._seen: set[str] = set()

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        event = record.event
        if isinstance(event, AskUpdate) and event.ask.status == "waiting" and event.ask.id not in self._seen:
            self._seen.add(event.ask.id)
            self._asked.put_nowait(event.ask)

    def on_delta(self, delta: Delta, frame: Frame) -> None:
        """What streams is not answered."""

    async def answer_all(self) -> None:
        while True:
            await self._answer(await self._asked.get())

    async def _answer(self, ask: Ask) -> None:
        """An ask that the record does not have, or that nobody answered then, ends the task."""
        then = self._take(ask)
        if then is None or then.status != "answered":
            await self._stage.halt()
            return
        params = AskAnswerParams(
            ask_id=ask.id, text=then.answer or "", allow=then.allowed, remember=then.remember, amount=then.amount
        )
        try:
            await self._desk.answer(params, then.answered_by or "")
        except EngineError:  # it cannot be answered as it was: the difference shows in what was asked
            await self._stage.halt()

    def _take(self, ask: Ask) -> Ask | None:
        """The first of the same kind that is left."""
        found = next((one for one in self._recorded if _kind(one) == _kind(ask)), None)
        if found is not None:
            self._recorded.remove(found)
        return found


def _kind(ask: Ask) -> tuple[str, str | None]:
    return ask.kind, ask.limit.kind if ask.limit is not None else None

"""The facts that agents are told at the start of every task: pinned ones, and those that an agent proposed."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from errand.client.memory_editing import merge_facts
from errand.protocol.events import FactRemoved, FactUpdate
from errand.protocol.memory import (
    MEMORY_FACTS,
    MEMORY_PIN,
    MEMORY_UNPIN,
    Fact,
    MemoryFactsParams,
    MemoryPinParams,
    MemoryUnpinParams,
)
from errand.window.stores.session import EngineSession


class FactStore(QObject):
    """Emits `changed` after each event, and `failed` with a text when a call is refused.

    `is_loaded` is true once the engine has answered `load`; later changes arrive as events.
    """

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._facts: dict[str, Fact] = {}
        self._loading = 0
        self._deferred: list[FactUpdate | FactRemoved] = []  # events that an answer may not know of yet
        self.is_loaded = False

    @property
    def proposed(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self._facts.values() if fact.status == "proposed")

    @property
    def pinned(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self._facts.values() if fact.status == "pinned")

    def load(self) -> None:
        self._session.spawn(self._load(), self.failed.emit)

    def pin(self, params: MemoryPinParams, done: Callable[[Fact], None], failed: Callable[[str], None]) -> None:
        """Pin, change or accept a fact; `done` is called once the engine has stored it."""
        self._session.spawn(self._pin(params, done), failed)

    def merge(
        self,
        facts: tuple[Fact, ...],
        change: MemoryPinParams,
        done: Callable[[Fact, Fact], None],
        failed: Callable[[str], None],
    ) -> None:
        """Make one of several facts; `done` gets the one that stays as it was, and as it is."""
        self._session.spawn(self._merge(facts, change, done), failed)

    def remove(self, fact_id: str, done: Callable[[], None]) -> None:
        """Remove a pinned fact, or decline a proposed one."""
        self._session.spawn(self._remove(fact_id, done), self.failed.emit)

    def apply(self, event: FactUpdate | FactRemoved) -> None:
        if self._loading:
            self._deferred.append(event)
        self._put(event)
        self.changed.emit()

    def _put(self, event: FactUpdate | FactRemoved) -> None:
        match event:
            case FactUpdate(fact=fact):
                self._facts[fact.id] = fact
            case FactRemoved(fact_id=fact_id):
                self._facts.pop(fact_id, None)

    async def _pin(self, params: MemoryPinParams, done: Callable[[Fact], None]) -> None:
        done((await self._session.call(MEMORY_PIN, params)).fact)

    async def _merge(
        self, facts: tuple[Fact, ...], change: MemoryPinParams, done: Callable[[Fact, Fact], None]
    ) -> None:
        done(*await merge_facts(self._session, facts, change))

    async def _remove(self, fact_id: str, done: Callable[[], None]) -> None:
        await self._session.call(MEMORY_UNPIN, MemoryUnpinParams(id=fact_id))
        done()

    async def _load(self) -> None:
        if not self._loading:
            self._deferred.clear()
        self._loading += 1
        try:
            result = await self._session.call(MEMORY_FACTS, MemoryFactsParams())
        finally:
            self._loading -= 1
        self._facts = {fact.id: fact for fact in result.facts}
        for event in self._deferred:
            self._put(event)
        self.is_loaded = True
        self.changed.emit()

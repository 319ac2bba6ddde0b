"""What is the matter with the ground the engine stands on: conditions, and who wants to know of them."""

from collections.abc import Callable

from app.listeners import Listeners
from app.protocol.health import Condition, ConditionKind

Listener = Callable[[], None]


class Health:
    """One condition of a kind at a time."""

    def __init__(self) -> None:
        self._conditions: dict[ConditionKind, Condition] = {}
        self._listeners = Listeners[Listener]()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(self._conditions.values())

    @property
    def holding(self) -> Condition | None:
        """The newest condition under which nothing can be saved."""
        return next((one for one in reversed(self._conditions.values()) if one.holds), None)

    def report(self, condition: Condition) -> None:
        """Say that something is the matter; what is known already keeps its time."""
        if condition.kind not in self._conditions:
            self._conditions[condition.kind] = condition
            self._tell()

    def clear(self, kind: ConditionKind) -> None:
        """Say that it is mended."""
        if self._conditions.pop(kind, None) is not None:
            self._tell()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after each change; returns what ends that, once or more often."""
        return self._listeners.add(listener)

    def _tell(self) -> None:
        self._listeners.tell(lambda listener: listener())

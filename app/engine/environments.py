"""The environments that keys and addresses of models come from: those of clients, newest first, then the engine's own.

In memory only. Which variable means what is the catalog's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

# A variable and its value, empty for one that is not set.
Variable: TypeAlias = tuple[str, str]

_MOST = 32  # terminals with different keys; the oldest is forgotten


class Environments:
    """What is unset in one environment is not looked up in the next as long as that one has something for it.

    So a key of one terminal never goes to an address that another one names.
    """

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own
        self._offered: list[dict[str, str]] = []

    def offer(self, variables: Mapping[str, str]) -> None:
        """Take what a client has set; the newest comes first."""
        new = {name: value.strip() for name, value in variables.items() if value.strip()}
        if new:
            self._offered = [new, *(old for old in self._offered if old != new)][:_MOST]

    def values(self, names: Sequence[str], beside: Variable | None = None) -> Iterator[str]:
        """What the variables are set to, newest environment first; only of those where `beside` holds."""
        for environment in self._all():
            if beside is None or _value(environment, beside[0]) == beside[1]:
                yield from filter(None, (_value(environment, name) for name in names))

    def value_beside(self, name: str, others: Sequence[str]) -> str:
        """The variable in the newest environment that sets it or one of `others`; empty where it is not set there."""
        for environment in self._all():
            if any(_value(environment, one) for one in (name, *others)):
                return _value(environment, name)
        return ""

    def _all(self) -> Iterator[Mapping[str, str]]:
        yield from self._offered
        yield self._own


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()

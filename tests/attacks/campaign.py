"""Duration and random choices of an attack: short in `make test`, long in `make attacks`."""

import os
import random
from dataclasses import dataclass, field

from tests.support.time_limit import LIMIT

_LONG = "ERRAND_ATTACKS_LONG"
_SEED = "ERRAND_ATTACKS_SEED"
_TEST_LIMIT_S = 86_400


@dataclass(frozen=True, slots=True)
class Campaign:
    """The length, the seed and the figures of one session of attacks. The short form always has the same seed."""

    is_long: bool = field(default_factory=lambda: bool(os.environ.get(_LONG)))
    seed: int = field(default_factory=lambda: int(os.environ.get(_SEED, "0")))
    figures: dict[str, float] = field(default_factory=dict[str, float])

    def rounds(self, short: int, long: int) -> int:
        """Return how often to repeat an attack."""
        return long if self.is_long else short

    def random(self, attack: str) -> random.Random:
        """The random choices of one attack: the same for the same seed, whichever other attacks run."""
        return random.Random(f"{self.seed} {attack}")

    def count(self, figure: str, number: float = 1) -> None:
        """Add to a figure of the table at the end, such as "frames sent"."""
        self.figures[figure] = self.figures.get(figure, 0) + number

    def peak(self, figure: str, value: float) -> None:
        """Keep the largest value of a figure, such as "longest stall, ms"."""
        self.figures[figure] = max(self.figures.get(figure, value), value)


def environment(seed: int) -> dict[str, str]:
    """The variables that make a test run a long campaign with this seed, each test of which may take hours."""
    return {_LONG: "1", _SEED: str(seed), LIMIT: str(_TEST_LIMIT_S)}

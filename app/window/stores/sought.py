"""A row that a person wants to see and that is not loaded yet."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Sought:
    """`number` counts the rows of its node. `switches` allows to go to another branch for it."""

    node_id: str
    number: int
    switches: bool
    is_switching: bool = False

    def arrived(self) -> "Sought":
        """The branch that was switched to is shown now."""
        return replace(self, is_switching=False)

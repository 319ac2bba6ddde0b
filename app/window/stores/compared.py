"""Which branch is compared with another one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compared:
    """A branch by its end. Where an agent stands there, what it writes goes on with it."""

    leaf_id: str
    agent_id: str | None = None

"""What keeps the engine from working as it should, and what to do about it. Not stored: it is so or it is not."""

from typing import Literal, TypeAlias

from app.protocol.struct import Moment, Wire
from app.protocol.tasks import Task

# What is the matter with the ground that the engine stands on.
Trouble: TypeAlias = Literal["disk_full", "read_only", "locked", "disk_error", "damaged", "no_descriptors"]
# `stalled`: the engine before this one stood still and was ended.
ConditionKind: TypeAlias = Literal[Trouble, "stalled"]


class Condition(Wire, frozen=True, kw_only=True):
    """`text` says what is the matter, `advice` what to do. While one `holds` nothing can be saved: tasks wait."""

    kind: ConditionKind
    text: str
    advice: str
    since: Moment
    holds: bool = True


class HealthUpdate(Wire, frozen=True, kw_only=True):
    """All conditions there are now, none when all is well; comes to every client whenever one comes or goes.

    `tasks` are those under way as they stand now: paused while nothing can be saved, which the log cannot tell.
    """

    conditions: tuple[Condition, ...]
    tasks: tuple[Task, ...] = ()

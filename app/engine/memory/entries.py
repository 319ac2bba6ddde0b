"""What memory remembers: one entry for each message, tool result and task."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

EntryRole: TypeAlias = Literal["user", "agent", "tool", "task"]

# About what a model of 256 tokens reads; it ignores the rest.
LONGEST_EMBEDDED = 2_000


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """`number` identifies it in the indexes. `speaker` is the name of a person, an agent or a tool."""

    number: int
    id: str
    conversation_id: str
    speaker: str
    role: EntryRole
    at: datetime
    text: str
    folder: str = ""


def embedded_text(entry: MemoryEntry) -> str:
    """What its vector is made of: questions name people and days, and the text alone rarely does."""
    return f"{entry.speaker} ({entry.at:%A, %d %B %Y}): {entry.text[:LONGEST_EMBEDDED]}"

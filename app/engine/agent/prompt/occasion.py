"""What a system prompt is put together for."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.protocol.tasks import TaskMode


@dataclass(frozen=True, slots=True)
class Occasion:
    """`role` is the personality's own prompt. `workspace` is a real path, `home` the person's home directory."""

    role: str
    workspace: Path
    mode: TaskMode
    home: Path
    now: datetime

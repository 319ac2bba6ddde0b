"""The system prompt of one task: read when it begins, then kept with it, the same until it ends.

A provider's prompt cache holds only for what does not change, and a record tells what was said then.
"""

from datetime import UTC, datetime
from pathlib import Path

from app.engine.agent.prompt.occasion import Occasion
from app.engine.agent.prompt.parts import read_parts
from app.engine.storage import prompts
from app.engine.storage.database import Database
from app.engine.workspace_threads import in_workspace
from app.protocol.prompts import PromptPart
from app.protocol.tasks import Task, TaskMode


class Briefing:
    """`role` is the personality's own prompt."""

    def __init__(self, task: Task, role: str, database: Database) -> None:
        self._task = task
        self._role = role
        self._database = database

    async def parts(self) -> tuple[PromptPart, ...]:
        """Those it began with, also after a restart. They are committed with what comes next."""
        known = await self._database.prompts.of_task(self._task.id)
        if known:
            return known
        parts = await parts_now(self._role, Path(self._task.workspace), self._task.mode)
        self._database.journal.put(prompts.add(self._task.id, parts))
        return parts


async def parts_now(role: str, workspace: Path, mode: TaskMode) -> tuple[PromptPart, ...]:
    """As a task would begin with them at this moment. `FolderNotAnswering` where they cannot be read."""
    now = datetime.now(UTC).astimezone()
    return await in_workspace(workspace, lambda: read_parts(Occasion(role, workspace, mode, Path.home(), now)))

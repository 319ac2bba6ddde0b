"""A task in a whole engine that changes files through its real tool, step by step."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from errand.engine.checkpoints.recorder import TaskCheckpoints
from errand.engine.server.services import Services
from errand.engine.tools.base import Tool
from errand.engine.tools.sessions import ConversationSessions
from errand.protocol.base import JsonObject
from errand.protocol.changes import (
    ChangedFile,
    ChangeDiffParams,
    ChangeUndoParams,
    ChangeUndoResult,
    FileDiff,
    TaskChanges,
)
from errand.protocol.tasks.task import Task, replace_fields
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.loop_parts import make_tool_context, run, text_of, tool_of
from tests.support.model_server import ModelServer, Reply


@dataclass(slots=True)
class Work:
    """`task` is an ended task; its tool `code` works as if it were at the step last given to `do`."""

    parts: EngineParts
    task: Task

    @property
    def services(self) -> Services:
        return self.parts.services

    @property
    def folder(self) -> Path:
        return self.parts.workspace

    def tool(self, task: Task | None = None, name: str = "code") -> Tool:
        checkpoints = self.tool_checkpoints(task)
        context = make_tool_context(self.parts.workspace.parent)
        sessions = ConversationSessions(self.services.tools.sessions, self.task.conversation_id)
        workspace = self.folder.resolve()
        return tool_of(replace(context, workspace=workspace, checkpoints=checkpoints, sessions=sessions), name)

    def tool_checkpoints(self, task: Task | None = None) -> TaskCheckpoints:
        return TaskCheckpoints(lambda: task or self.task, self.services.log, self.services.checkpoints.baselines)

    async def do(self, step: int, **arguments: object) -> None:
        task = replace_fields(self.task, step_count=step)
        await run(self.tool(task), msgspec.convert(arguments, JsonObject))
        await self.services.log.flush()  # as after each call of a task

    async def shell(self, step: int, command: str, **arguments: object) -> str:
        """Run a command as the shell of the task; returns its output."""
        task = replace_fields(self.task, step_count=step)
        return await self.use(self.tool(task, "shell"), command=command, **arguments)

    async def use(self, tool: Tool, **arguments: object) -> str:
        try:
            return text_of(await run(tool, msgspec.convert(arguments, JsonObject)))
        finally:
            await self.services.log.flush()

    async def write(self, step: int, name: str, content: str) -> None:
        await self.do(step, action="write", path=name, content=content)

    async def changes(self) -> TaskChanges:
        (task_changes,) = (await self.services.checkpoints.changes(self.task.id, None)).tasks
        return task_changes

    async def files(self) -> dict[str, ChangedFile]:
        return {file.name: file for file in (await self.changes()).files}

    async def diff(
        self, path: str | None = None, step: int | None = None, *, renames: bool = False
    ) -> tuple[FileDiff, ...]:
        params = ChangeDiffParams(task_id=self.task.id, path=self._path(path), step=step, renames=renames)
        return (await self.services.checkpoints.diff(params)).files

    async def undo(
        self, path: str | None = None, step: int | None = None, hunk: str | None = None, *, overwrite: bool = False
    ) -> ChangeUndoResult:
        return await self.services.checkpoints.undo(self._params(path, step, hunk, overwrite=overwrite), "a person")

    async def redo(
        self, path: str | None = None, step: int | None = None, hunk: str | None = None, *, overwrite: bool = False
    ) -> ChangeUndoResult:
        return await self.services.checkpoints.redo(self._params(path, step, hunk, overwrite=overwrite), "a person")

    def read(self, name: str) -> str:
        return (self.folder / name).read_bytes().decode()

    def put(self, name: str, content: str | bytes, mode: int | None = None) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if mode is not None:
            path.chmod(mode)
        return path

    def _params(self, path: str | None, step: int | None, hunk: str | None, *, overwrite: bool) -> ChangeUndoParams:
        return ChangeUndoParams(task_id=self.task.id, path=self._path(path), step=step, hunk=hunk, overwrite=overwrite)

    def _path(self, name: str | None) -> str | None:
        return None if name is None else str(self.folder.resolve() / name)


@asynccontextmanager
async def work_in(home: Path) -> AsyncGenerator[Work]:
    async with engine_parts(home, ModelServer(answer=lambda _: Reply(text="Done."))) as parts:
        task = await parts.start()
        yield Work(parts, await parts.watcher.end(task.id))

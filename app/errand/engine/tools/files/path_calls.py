"""Calls of tools that open a path: what they access, and their work on exactly the path that was allowed.

A tool names the path and does the work; `code/tool.py` uses all of this.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.tools.base import Access
from errand.engine.tools.context import ToolContext
from errand.engine.tools.files.quoted_name import quoted
from errand.engine.tools.files.real_path import named, resolve, with_real_path
from errand.engine.tools.plain_text import is_text
from errand.engine.tools.results import ToolError, ToolResult, hidden

_PATIENCE_S = 60.0
_STOPPED_S = 0.05


@dataclass(frozen=True, slots=True)
class PathCall:
    """A call at work. `basis` is that of the access that was allowed, None if nothing was to be fingerprinted."""

    id: str
    path: Path
    basis: str | None
    is_cancelled: Callable[[], bool]


class PathCalls:
    """The calls of one tool of a task, and the names of the paths that they work on."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._allowed: dict[str, Access] = {}

    def name(self, path: Path) -> str:
        """Return the path for people and models, usable for the next call: quoted if it is odd."""
        return quoted(self.path_from_workspace(path))

    def path_from_workspace(self, path: Path) -> str:
        """Return the path, relative inside the workspace, which is `.` itself."""
        return str(path.relative_to(self._workspace)) if path.is_relative_to(self._workspace) else str(path)

    @cached_property
    def _workspace(self) -> Path:
        """The resolved workspace, on first use in a thread, since the folder may not answer."""
        return Path(os.path.realpath(self._context.workspace))

    def resolve(self, path: str, *, changes: bool = False) -> Path:
        """Return the path of an argument with links resolved. `changes`: its name must be one that can be stored."""
        return resolve(path, self._context, must_be_text=changes)

    def given(self, path: str) -> str:
        """Return the path as the call names it, for rules; empty if it cannot be written down."""
        name = named(path, self._context)
        return name if is_text(name) else ""

    def read_access(self, path: str, text: str, operation: str = "read") -> Access:
        """Return the effects of a call that reads a path. In `text`, `{name}` stands for the name of the path."""
        resolved = self.resolve(path)
        text = text.format(name=self.name(resolved))
        if self._is_task_output(resolved):
            return Access("free", text)
        return Access("read", text, reads=(resolved,), operation=operation, named_path=self.given(path))

    def allow(self, call_id: str, access: Access) -> None:
        """Permit the call exactly as described; `run` fails if its path leads elsewhere by then."""
        self._allowed[call_id] = access

    async def run(
        self,
        call_id: str,
        path: str,
        cancel: CancelSignal,
        work: Callable[[PathCall], ToolResult],
        *,
        changes: bool = False,
    ) -> ToolResult:
        """Do the work in a thread, since the folder may not answer, and return its result without keys.

        Raises `ToolError` if the path is not the one that was allowed, for errors of the system, and on a stop.
        """
        allowed = self._allowed.pop(call_id, None)
        if cancel.is_set:
            raise ToolError("Operation aborted")
        is_over = False

        def run() -> ToolResult:
            return self._run(call_id, path, allowed, lambda: is_over or cancel.is_set, work, changes=changes)

        running = asyncio.ensure_future(in_workspace(self._context.workspace, run, _PATIENCE_S))
        unsubscribe = cancel.subscribe(lambda: _abandon(running))
        try:
            return hidden(await running, self._context.redactor)
        except FolderNotAnswering as error:
            later = " It may still be done when that answers again." if changes else ""
            raise ToolError(f"{error}{later}") from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            later = ". It may still be done: the folder had not answered" if changes else ""
            raise ToolError(f"Operation aborted{later}") from None
        finally:
            is_over = True  # an abandoned call writes nothing later, unless it is writing already
            unsubscribe()
            running.cancel()

    def _run(
        self,
        call_id: str,
        path: str,
        allowed: Access | None,
        is_cancelled: Callable[[], bool],
        work: Callable[[PathCall], ToolResult],
        *,
        changes: bool,
    ) -> ToolResult:
        resolved = self.resolve(path, changes=changes)
        if allowed is not None and not self._is_allowed(resolved, allowed):
            raise with_real_path(resolved)
        basis = allowed.basis if allowed is not None and allowed.writes else None
        try:
            return work(PathCall(call_id, resolved, basis, is_cancelled))
        except OSError as error:
            raise ToolError(f"{self.name(resolved)[:200]}: {error.strerror or error}") from error

    def _is_allowed(self, path: Path, allowed: Access) -> bool:
        return self._is_task_output(path) if allowed.tier == "free" else path in (*allowed.reads, *allowed.writes)

    def _is_task_output(self, path: Path) -> bool:
        """Return True for long output of the task's own commands, which the task may always read."""
        return path.is_relative_to(os.path.realpath(self._context.output_dir))


def _abandon(work: "asyncio.Future[ToolResult]") -> None:
    """Wait no longer for a stopped call than a file on a working disk takes; its thread ends by itself."""
    asyncio.get_running_loop().call_later(_STOPPED_S, work.cancel)

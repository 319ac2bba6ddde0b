"""Undo and redo of what tasks changed in files, and taking back what was undone here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import structs
from PySide6.QtCore import QObject, Signal

from errand.protocol.base import Method
from errand.protocol.changes import CHANGE_REDO, CHANGE_UNDO, ChangeUndoParams, ChangeUndoResult, TaskChanges
from errand.text.translation import tr
from errand.window.stores.session import EngineSession

if TYPE_CHECKING:
    from asyncio import Lock


@dataclass(frozen=True, slots=True)
class _Command:
    """An undo or a redo."""

    method: Method[ChangeUndoParams, ChangeUndoResult]
    params: ChangeUndoParams


@dataclass(frozen=True, slots=True)
class _Step:
    """A command that was done, and the one that reverses it."""

    command: _Command
    inverse: _Command


class UndoStore(QObject):
    """`shown` returns the changes that are undone and redone; None if there are none.

    Emits `done` after each command that changed what it should. `conflicted` has the result of a command that left
    files as they are; `overwrite` repeats it for these. `failed` and `hinted` have a text for people. `take_back` and
    `repeat` go through what was undone and redone here.
    """

    conflicted = Signal(object)
    done = Signal()
    failed = Signal(str)
    hinted = Signal(str)

    def __init__(self, session: EngineSession, shown: Callable[[], TaskChanges | None]) -> None:
        super().__init__()
        self._session = session
        self._shown = shown
        self._refused: _Command | None = None
        self._done: list[_Step] = []
        self._taken_back: list[_Step] = []

    def undo(self, path: str | None = None, step: int | None = None, hunk: str | None = None) -> None:
        self._change(CHANGE_UNDO, path, step, hunk)

    def redo(self, path: str | None = None, step: int | None = None, hunk: str | None = None) -> None:
        self._change(CHANGE_REDO, path, step, hunk)

    def overwrite(self) -> None:
        """Repeat the command that was refused, and replace what somebody else has written since."""
        if self._refused is not None:
            command = replace(self._refused, params=structs.replace(self._refused.params, overwrite=True))
            self._session.spawn(self._do(command), self.failed.emit)

    def take_back(self) -> None:
        """Reverse the last undo or redo that was done here."""
        nothing = tr("Nothing to take back. Del undoes the change at the cursor.")
        self._session.spawn(self._move(self._done, self._taken_back, _inverse_of, nothing), self.failed.emit)

    def repeat(self) -> None:
        """Do again what was taken back last."""
        nothing = tr("Nothing to repeat.")
        self._session.spawn(self._move(self._taken_back, self._done, _command_of, nothing), self.failed.emit)

    def _change(
        self, method: Method[ChangeUndoParams, ChangeUndoResult], path: str | None, step: int | None, hunk: str | None
    ) -> None:
        changes = self._shown()
        if changes is not None:
            command = _Command(method, ChangeUndoParams(task_id=changes.task_id, path=path, step=step, hunk=hunk))
            self._session.spawn(self._do(command), self.failed.emit)

    @cached_property
    def _lock(self) -> "Lock":
        """One undo or redo at a time, in the order of the keys."""
        from asyncio import Lock  # import asyncio after the first paint

        return Lock()

    async def _do(self, command: _Command) -> None:
        async with self._lock:
            result = await self._run(command)
            if not result.changes:
                return
            # What a person agreed to overwrite once is asked about when the keys do it again.
            command = replace(command, params=structs.replace(command.params, overwrite=False))
            inverse = self._inverse(command, result)
            if inverse is None:
                self._done.clear()  # what came before cannot be taken back without this
            else:
                self._done.append(_Step(command, inverse))
            self._taken_back.clear()

    async def _move(
        self, source: list[_Step], target: list[_Step], command: Callable[[_Step], _Command], nothing: str
    ) -> None:
        """Run the command of the last step of `source`, which then belongs to `target`."""
        async with self._lock:
            if not source:
                self.hinted.emit(nothing)
                return
            result = await self._run(command(source[-1]))
            if not result.conflicts:
                target.append(_renewed(source.pop(), result))

    def _inverse(self, command: _Command, result: ChangeUndoResult) -> _Command | None:
        """Return the command that reverses another one that was done; None if that is not known."""
        if command.method is CHANGE_UNDO:
            return _redo_of(command, result)
        if command.params.hunk is None:
            return replace(command, method=CHANGE_UNDO)
        return next((step.command for step in reversed(self._done) if step.inverse == command), None)

    async def _run(self, command: _Command) -> ChangeUndoResult:
        result = await self._session.call(command.method, command.params)
        self._refused = command if result.conflicts else None
        if result.conflicts:
            self.conflicted.emit(result)
        else:
            self.done.emit()
        return result


def _command_of(step: _Step) -> _Command:
    return step.command


def _inverse_of(step: _Step) -> _Command:
    return step.inverse


def _redo_of(command: _Command, result: ChangeUndoResult) -> _Command:
    """Return the redo that reverses an undo. That of a hunk names the change that undid it."""
    hunk = result.changes[0].id if command.params.hunk is not None and result.changes else None
    return _Command(CHANGE_REDO, structs.replace(command.params, hunk=hunk))


def _renewed(step: _Step, result: ChangeUndoResult) -> _Step:
    """Return the step with its new inverse: a hunk that is undone again is undone by another change."""
    is_undone_again = bool(result.changes) and result.changes[0].kind == "hunk"
    return replace(step, inverse=_redo_of(step.command, result)) if is_undone_again else step

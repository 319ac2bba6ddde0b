"""How a tool starts a process: spawn.py takes nothing but a `Launch`, so that no tool evades the sandbox."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.engine.core.workspace_threads import in_workspace
from app.engine.sandbox import landlock
from app.engine.sandbox.bubblewrap import bubblewrapped
from app.engine.sandbox.form import sandbox_of
from app.engine.sandbox.profile import SandboxProfile
from app.engine.sandbox.protected_files import WorkspaceGuard, pin

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. The process inherits `descriptors`, unless the thread that starts it calls `restrict` first.

    Made by `prepare_launch`. Close it when the process has started, or has not.
    """

    arguments: list[str]
    folder: Path
    environment: Mapping[str, str]
    descriptors: list[int] = field(default_factory=list[int])
    restrict: Callable[[], None] | None = None

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())


class CommandSandbox:
    """The sandbox of one task."""

    def __init__(self, profile: SandboxProfile) -> None:
        self.profile = profile
        self._guard = WorkspaceGuard(profile.workspace, profile.output_dir / "not-kept")
        self._moved: list[str] = []

    def launch(self, arguments: list[str], folder: Path, environment: Mapping[str, str]) -> Launch:
        """Reads the file system and may start a process. Raises `ConfigurationError`, or OSError."""
        profile, sandbox = self.profile, sandbox_of(self.profile.mode)
        if sandbox is None:
            return Launch(arguments, folder, environment)
        profile.prepare()
        self._moved = self._guard.before(can_change=sandbox.form == "landlock")
        if sandbox.form == "landlock":
            writable = (*profile.writable(), profile.temporary)
            network = profile.network
            rules = landlock.ruleset(writable, profile.readable(), profile.hidden(), network=network)
            inside = profile.environment(environment, str(profile.temporary))
            return Launch(arguments, folder, inside, [rules], partial(landlock.enter, rules))
        files = pin(Path(os.path.realpath(profile.workspace)))
        descriptors = [one.descriptor for one in files]
        wrapped = bubblewrapped(arguments, folder, profile, files, sandbox)
        return Launch(wrapped, folder, profile.environment(environment, "/tmp"), descriptors)

    async def after(self, *, has_background: bool) -> list[str]:
        """Call it when the process has ended: the names of the files in the workspace that it was not to make.

        They were moved away, into `not-kept` in the task's output folder. `has_background`: processes are left.
        """
        if sandbox_of(self.profile.mode) is None:
            return []
        check = partial(self._guard.after, has_background=has_background)
        moved = self._moved + await in_workspace(self.profile.workspace, check)
        self._moved = []
        return moved


async def prepare_launch(
    arguments: list[str], folder: Path, environment: Mapping[str, str], sandbox: CommandSandbox | None
) -> Launch:
    """What to start so that `arguments` run in `folder`, in the sandbox if there is one.

    Raises `ConfigurationError` if there must be one and is none, `FolderNotAnswering`, or OSError.
    """
    if sandbox is None:
        return Launch(arguments, folder, environment)
    made, is_abandoned = list[Launch](), threading.Event()

    def work() -> Launch:
        made.append(sandbox.launch(arguments, folder, environment))
        if is_abandoned.is_set():
            made[0].close()
        return made[0]

    try:
        return await in_workspace(folder, work)
    except BaseException:
        is_abandoned.set()
        for launch in made:
            launch.close()
        raise

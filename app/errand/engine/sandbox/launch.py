"""How a tool starts a process: spawn.py takes nothing but a `Launch`, so that no tool evades the sandbox."""

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from weakref import WeakSet

from errand.engine.core.workspace_threads import in_workspace
from errand.engine.sandbox import landlock, seccomp
from errand.engine.sandbox.bubblewrap import Joining, View, bubblewrapped, view_of
from errand.engine.sandbox.detection import Sandbox, sandbox_of
from errand.engine.sandbox.http_proxy import Judge
from errand.engine.sandbox.loopback import Loopback
from errand.engine.sandbox.network_proxy import NetworkProxy, ProxyAccess, network_program
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.sandbox.protected_files import ProtectedFiles, find_protected, pin
from errand.engine.sandbox.standing import (
    Bounds,
    InnerCommand,
    StandingSandbox,
    StandingSandboxes,
    bounds_of,
    init_program,
)
from errand.engine.sandbox.workspace_guard import WorkspaceGuard
from errand.system.regular_file import real_path

# Commands of a standing sandbox cannot signal its first process, and it sees the message queues that they leave.
_STANDS = ("--as-pid-1", "--mqueue", "/dev/mqueue")


def refuse_all(host: str, port: int, addresses: Sequence[str]) -> str | None:
    return "no address is open"


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start, made by `prepare_launch`. Close it whether the process has started or failed to.

    The process inherits `descriptors`. The thread that starts it first calls `enter`, which needs `held` and changes
    its thread for good. With `inside`, the command runs in a standing sandbox.
    """

    arguments: list[str]
    folder: Path
    environment: Mapping[str, str]
    descriptors: list[int] = field(default_factory=list[int])
    held: list[int] = field(default_factory=list[int])
    enter: Callable[[], None] | None = None
    proxy: ProxyAccess | None = None
    inside: "InsideLaunch | None" = None

    def close(self) -> None:
        for descriptors in (self.descriptors, self.held):
            while descriptors:
                os.close(descriptors.pop())

    def abandon(self) -> None:
        """Close it and do not start it."""
        self.close()
        if self.proxy is not None:
            self.proxy.connection.close()
        if self.inside is not None and self.inside.connection is not None:
            self.inside.connection.close()


@dataclass(frozen=True, slots=True)
class InsideLaunch:
    """A command for a standing sandbox: the one that `prepare_launch` holds, or one that the `Launch` itself starts.

    `connection` leads to the latter, whose process is the program of the launch.
    """

    command: InnerCommand
    bounds: Bounds
    sandboxes: StandingSandboxes
    connection: socket.socket | None = None
    sandbox: StandingSandbox | None = None


# Sandboxes whose commands run now, or left processes in the background, which can exchange files.
_busy: WeakSet["CommandSandbox"] = WeakSet()


class CommandSandbox:
    """The sandbox of one task, or of a session; `judge` says where its commands that have the network may connect.

    Its commands share the `loopback` of their conversation, once there is one. With `stands`, those that have neither
    run one after another in a standing sandbox: call `close` at the end.
    """

    def __init__(
        self,
        profile: SandboxProfile,
        judge: Judge = refuse_all,
        loopback: Loopback | None = None,
        *,
        stands: bool = False,
    ) -> None:
        self.profile = profile
        self.standing = StandingSandboxes() if stands else None
        self.loopback = loopback or Loopback()
        self.proxy = NetworkProxy(judge)
        self._guard = WorkspaceGuard(profile.workspace, profile.output_dir / "not-kept")
        self._moved: list[str] = []
        self.has_background = False

    def another(self) -> "CommandSandbox":
        """Return a sandbox with the same bounds, for processes that stay when the task has ended."""
        return CommandSandbox(self.profile, self.proxy.judge, self.loopback)

    def launch(
        self,
        arguments: list[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        network: bool,
        standing: StandingSandbox | None = None,
        may_stand: bool = False,
    ) -> Launch:
        """Return the process to start. Reads the file system, may start one. Raises `ConfigurationError` or OSError.

        `standing` waits for a command; if it does not fit, or there is none, another one may start with `may_stand`.
        """
        profile, sandbox = self.profile, sandbox_of(self.profile.mode)
        network = network or profile.network
        if sandbox is None:
            return Launch(arguments, folder, environment)
        profile.prepare()
        self._moved = self._guard.before(can_change=sandbox.form == "landlock")
        if sandbox.form == "landlock":
            writable = (*profile.writable(), profile.temporary)
            rules = landlock.ruleset(writable, profile.readable(), profile.hidden(), network=network)
            inside = profile.environment(environment, str(profile.temporary))
            return Launch(arguments, folder, inside, held=[rules], enter=partial(landlock.enter, rules))
        opened = profile.writable()
        pinned = [path for folder in opened for path in pin(folder, self._protected_in(folder))]
        view, inside = view_of(profile, opened, pinned, environment), profile.environment(environment, "/tmp")
        joining = self.loopback.joining()
        if self.standing is None or joining is not None or not (may_stand or standing):
            return self._alone(sandbox, arguments, folder, view, inside, joining, network=network)
        command, bounds = InnerCommand(arguments, folder, inside), bounds_of(view, (sandbox.program, *_STANDS))
        if standing is not None and standing.bounds == bounds:
            return Launch(
                arguments, folder, inside, inside=InsideLaunch(command, bounds, self.standing, None, standing)
            )
        if not may_stand:
            return self._alone(sandbox, arguments, folder, view, inside, None, network=False)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptors = [theirs.detach()]
        program = [*init_program(), str(descriptors[0])]
        wrapped = self._wrapped(sandbox, program, Path("/"), view, None, descriptors, _STANDS)
        return Launch(
            wrapped, folder, inside, descriptors, inside=InsideLaunch(command, bounds, self.standing, connection=ours)
        )

    def _alone(
        self,
        sandbox: Sandbox,
        arguments: list[str],
        folder: Path,
        view: View,
        environment: Mapping[str, str],
        joining: Joining | None,
        *,
        network: bool,
    ) -> Launch:
        """Return a command in a sandbox of its own."""
        descriptors, proxy = list[int](), None
        if network:
            ours, theirs = socket.socketpair()
            proxy = ProxyAccess(ours)
            descriptors.append(theirs.detach())
            arguments = [*network_program(), str(descriptors[-1]), *arguments]
            environment = {**environment, **proxy.variables}
        wrapped = self._wrapped(sandbox, arguments, folder, view, joining, descriptors)
        joining = joining or Joining()
        descriptors += joining.inherited
        return Launch(wrapped, folder, environment, descriptors, list(joining.held), joining.enter, proxy)

    @staticmethod
    def _wrapped(
        sandbox: Sandbox,
        arguments: list[str],
        folder: Path,
        view: View,
        joining: Joining | None,
        descriptors: list[int],
        own: Sequence[str] = (),
    ) -> list[str]:
        """Return the command line, and add what the process needs to the descriptors."""
        held = {mount.path: mount.pinned.opened() for mount in view.mounts if mount.pinned is not None}
        opened = {path: descriptor for path, descriptor in held.items() if descriptor is not None}
        descriptors += opened.values()
        call_filter = seccomp.filter_descriptor() if seccomp.is_supported() else None
        descriptors += [] if call_filter is None else [call_filter]
        return bubblewrapped(
            sandbox.program,
            arguments,
            folder,
            view,
            opened,
            joining,
            call_filter,
            own,
            by_descriptor=sandbox.binds_descriptors,
        )

    def _protected_in(self, folder: Path) -> ProtectedFiles:
        if folder == self._guard.root:
            return self._guard.protected
        return find_protected(folder, is_deep=folder != Path(real_path(self.profile.cache)))

    @property
    def is_needed_to_look(self) -> bool:
        """True if a command that provably only looks must run inside too.

        Such a command reads what was checked, unless something puts a link in the place of a file meanwhile. Without
        anything that could, it runs bare in `auto`, at a tenth of the cost.
        """
        return self.profile.mode == "required" or bool(_busy)

    async def close(self) -> None:
        """End what stands for further commands."""
        if self.standing is not None:
            await self.standing.close()

    async def after(self, *, has_background: bool, of_latest: bool = False) -> list[str]:
        """Clean up when the process has ended; return the names of files in the workspace that it may not make.

        They were moved into `not-kept` in the task's output folder. `has_background`: processes are left, and
        `of_latest`: by this command.
        """
        self.has_background = has_background
        if not has_background:
            _busy.discard(self)
            self.loopback.leave(self)
            await self.proxy.close()
        elif not of_latest:
            self.proxy.close_latest()
        if sandbox_of(self.profile.mode) is None:
            return []
        check = partial(self._guard.after, has_background=has_background)
        moved = self._moved + await in_workspace(self.profile.workspace, check)
        self._moved = []
        return moved


async def prepare_launch(
    arguments: list[str],
    folder: Path,
    environment: Mapping[str, str],
    sandbox: CommandSandbox | None,
    *,
    network: bool = False,
    alone: bool = False,
) -> Launch:
    """Return the process that runs `arguments` in `folder`, in the sandbox if there is one.

    `network`: this command has the network. `alone`: it does not run in a standing sandbox. Raises
    `ConfigurationError` if a required sandbox is missing, `FolderNotAnswering`, or OSError.
    """
    if sandbox is None:
        return Launch(arguments, folder, environment)
    _busy.add(sandbox)
    launches, is_abandoned = list[Launch](), threading.Event()
    is_alone = alone or network or sandbox.profile.network or sandbox.loopback.is_open
    sandboxes = None if is_alone else sandbox.standing
    standing = None if sandboxes is None else sandboxes.hold()
    may_stand = sandboxes is not None and sandboxes.may_open(replacing=standing)

    def work() -> Launch:
        launches.append(
            sandbox.launch(arguments, folder, environment, network=network, standing=standing, may_stand=may_stand)
        )
        if is_abandoned.is_set():
            launches[0].abandon()
        return launches[0]

    try:
        launch = await in_workspace(folder, work)
    except BaseException:
        is_abandoned.set()
        for unused in launches:
            unused.abandon()
        if standing is not None and sandboxes is not None:
            sandboxes.give_back(standing)
        if not sandbox.has_background:
            _busy.discard(sandbox)
        raise
    if standing is not None and (launch.inside is None or launch.inside.sandbox is None):
        standing.close()  # it shows what another one would not
    if launch.proxy is not None:
        sandbox.proxy.expect(launch.proxy)
    return launch

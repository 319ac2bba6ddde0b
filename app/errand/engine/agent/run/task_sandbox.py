"""What the commands and tools of one task may reach: their sandbox, their connections and the addresses they open.

Each connection and address is judged by the rules and the mode of now, which may have changed since the task began.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from errand.engine.agent.run.recorder import ToolExecutionLog
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.setting_lists import hosts_of, writable_folders_of
from errand.engine.core.settings import Settings
from errand.engine.permissions.addresses import Address, Malformed, parse_address
from errand.engine.permissions.call_policy import judge_call
from errand.engine.permissions.grants import Grants
from errand.engine.permissions.network import judge_connection, leads_astray, own_port
from errand.engine.sandbox.detection import is_sandboxed
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.loopback import Loopback
from errand.engine.sandbox.profile import DeniedFolders, SandboxProfile
from errand.engine.tools.base import Access
from errand.engine.tools.registry import SERVICES
from errand.engine.tools.sessions import ToolSessions
from errand.engine.tools.shell.tool import Shell
from errand.protocol.asks import GrantedCall
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths

_USUAL_PORTS = (80, 443)


@dataclass(frozen=True, slots=True)
class SandboxFactory:
    """Makes the sandboxes of tasks and of MCP servers, by the settings and the rules. None without a sandbox."""

    settings: Settings
    paths: Paths
    grants: Grants
    sessions: ToolSessions

    def for_task(
        self, task: Task, environment: Mapping[str, str], executions: ToolExecutionLog
    ) -> CommandSandbox | None:
        values = self.settings.values
        if not is_sandboxed(values.command_sandbox):
            return None
        profile = SandboxProfile(
            Path(task.request.workspace),
            _homes(environment),
            self.paths.home,
            self.paths.outputs / task.id,
            self.paths.cache,
            network=task.request.network == "on",
            granted=writable_folders_of(values.writable_folders),
            mode=values.command_sandbox,
            denied=partial(self._denied_folders, task),
        )

        def judge(host: str, port: int, addresses: Sequence[str]) -> str | None:
            denied = self.grants.denied(Shell.name, task.conversation_id, task.request.workspace)
            reason = self._judge_connection(host, port, addresses, denied)
            if reason is not None:
                executions.connection_refused(host, port, reason)
            return reason

        loopback = self.sessions.get(task.conversation_id, Loopback, Loopback)
        return CommandSandbox(profile, judge, loopback, stands=True)

    def for_server(self, folder: Path, owner: str, environment: Mapping[str, str]) -> CommandSandbox | None:
        """Return the sandbox of an MCP server that works in `folder`: like that of commands with the network."""
        values = self.settings.values
        if not is_sandboxed(values.command_sandbox):
            return None
        profile = SandboxProfile(
            folder,
            _homes(environment),
            self.paths.home,
            self.paths.outputs / owner,
            self.paths.cache,
            network=True,
            granted=writable_folders_of(values.writable_folders),
            mode=values.command_sandbox,
        )

        def judge(host: str, port: int, addresses: Sequence[str]) -> str | None:
            return self._judge_connection(host, port, addresses, self.grants.denied(SERVICES, "", str(folder)))

        return CommandSandbox(profile, judge)

    def _judge_connection(
        self, host: str, port: int, addresses: Sequence[str], denied: Iterable[GrantedCall]
    ) -> str | None:
        listed = hosts_of(self.settings.values.network_hosts)
        return judge_connection(host, port, addresses, listed, own_port(self.paths), denied)

    def _denied_folders(self, task: Task) -> DeniedFolders:
        denied = self.grants.denied(Shell.name, task.conversation_id, task.request.workspace)
        folders = [(call.folder, call.operation) for call in denied if call.folder is not None]
        return DeniedFolders(
            tuple(folder for folder, operation in folders if operation != "write"),
            tuple(folder for folder, operation in folders if operation == "write"),
        )


def _homes(environment: Mapping[str, str]) -> tuple[Path, Path]:
    return Path.home(), Path(environment.get("HOME", "/"))


@dataclass(frozen=True, slots=True)
class TaskAddresses:
    """The `AddressGuard` of a task."""

    state: TaskState
    grants: Grants
    settings: Settings
    paths: Paths

    def refusal(self, tool: str, url: str, approved: Sequence[str] = ()) -> str | None:
        task = self.state.task
        denied = self.grants.denied(tool, task.conversation_id, task.request.workspace)
        if GrantedCall() in denied:
            return "you denied this tool"
        granted = self.grants.granted(tool, task.conversation_id, task.request.workspace)
        finding, _ = judge_call(Access("read", "", address=url), granted, denied, self.paths.home)
        # What a page loads after the end of its task is open by rules alone: the mode may have changed since.
        is_open_by_mode = task.options.approve == "all" and task.outcome.ended_at is None
        is_open = finding.verdict == "allow" or (
            finding.verdict == "ask" and (is_open_by_mode or _is_approved(url, approved))
        )
        return None if is_open else finding.reason

    def connection_refusal(
        self, tool: str, host: str, port: int, resolved: Sequence[str], approved: Sequence[str] = ()
    ) -> str | None:
        literal = f"[{host}]" if ":" in host else host
        refused = self.refusal(tool, f"http://{literal}:{port}/", approved)
        if refused is not None:
            return refused
        listed = hosts_of(self.settings.values.network_hosts)
        return leads_astray(host, port, resolved, listed, own_port(self.paths))


def _is_approved(url: str, approved: Sequence[str]) -> bool:
    """Return True for another page of an approved host, at the same port or at the usual one of the other scheme."""
    try:
        address = parse_address(url)
        return any(_is_same_place(address, parse_address(other)) for other in approved)
    except Malformed:
        return False


def _is_same_place(one: Address, other: Address) -> bool:
    has_usual_ports = one.port in _USUAL_PORTS and other.port in _USUAL_PORTS
    return one.host == other.host and (one.port == other.port or has_usual_ports)

"""Judges web addresses for the tools of one task, by the rules and the mode of now."""

from collections.abc import Sequence
from dataclasses import dataclass

from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.setting_lists import hosts_of
from errand.engine.core.settings import Settings
from errand.engine.permissions.addresses import Address, Malformed, parse_address
from errand.engine.permissions.call_policy import judge_call
from errand.engine.permissions.grants import Grants
from errand.engine.permissions.network import leads_astray, own_port
from errand.engine.tools.base import Access
from errand.paths import Paths
from errand.protocol.asks import GrantedCall

_USUAL_PORTS = (80, 443)


@dataclass(frozen=True, slots=True)
class TaskAddresses:
    """The `AddressGuard` of a task."""

    state: TaskState
    grants: Grants
    settings: Settings
    paths: Paths

    def refusal(self, tool: str, url: str, approved: Sequence[str] = ()) -> str | None:
        task = self.state.task
        denied = self.grants.denied(tool, task.conversation_id, task.workspace)
        if GrantedCall() in denied:
            return "you denied this tool"
        granted = self.grants.granted(tool, task.conversation_id, task.workspace)
        finding, _ = judge_call(Access("read", "", address=url), granted, denied, self.paths.home)
        # What a page loads after the end of its task is open by rules alone: the mode may have changed since.
        is_open_by_mode = task.approve == "all" and task.ended_at is None
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
    """True for another page of an approved host, at the same port or at the usual one of the other scheme."""
    try:
        wanted = parse_address(url)
        return any(_is_same_place(wanted, parse_address(one)) for one in approved)
    except Malformed:
        return False


def _is_same_place(one: Address, other: Address) -> bool:
    has_usual_ports = one.port in _USUAL_PORTS and other.port in _USUAL_PORTS
    return one.host == other.host and (one.port == other.port or has_usual_ports)

"""Judges calls that open a web address, run code, or call a tool of another program."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from errand.engine.permissions.addresses import DEFAULT_ALLOWED, AddressRules, judge_address
from errand.engine.permissions.call_rules import allows_call, bound_call, denies_call
from errand.engine.permissions.network import own_port
from errand.engine.permissions.verdict import Finding, ask, deny
from errand.engine.tools.base import Access
from errand.protocol.asks import TYPED, GrantedCall
from errand.system.paths import Paths


def is_of_call(access: Access) -> bool:
    """Return True for a call that is neither a command nor a use of files."""
    return bool(access.address or access.code or access.service)


def judge_call(
    access: Access, granted: Iterable[GrantedCall], denied: Iterable[GrantedCall], private: Path
) -> tuple[Finding, tuple[GrantedCall, ...]]:
    """Return the finding, and the grants without which it would ask."""
    if any(denies_call(call, access) for call in denied):
        return deny("your deny rule", f"you denied {_named(access)}"), ()
    if access.address:
        return _judge_address(access.address, tuple(granted), tuple(denied), private)
    if access.is_changed:
        return ask("tool", "what its server says about this tool has changed, so that rules do not hold", "high"), ()
    granted = tuple(granted)
    used = tuple(call for call in granted if allows_call(call, access))
    if used:
        return Finding("allow", "grant", "you allowed this before"), used
    if access.code:
        bounds = "in the sandbox" if access.operation else "without a sandbox: it can do all that you can"
        what = "what is typed may run as a command" if access.language == TYPED else f"it runs {access.language} code"
        return ask("tool", f"{what} {bounds}", "medium" if access.operation else "high"), ()
    server, _, tool = access.service.partition("/")
    if any(allows_call(msgspec.structs.replace(call, fingerprints=()), access) for call in granted):
        reason = f"the server {server} has added {tool}, or describes it otherwise, since you allowed it"
        return ask("tool", reason, "high"), ()
    return ask("tool", f"the server {server} is another program: what its tool {tool} does cannot be checked"), ()


def grantable_call(access: Access) -> GrantedCall | None:
    """This very call, as a grant; an address has none, since its host is granted."""
    if not access.operation or access.address:
        return None
    call = GrantedCall(operation=access.operation, service=access.service or None, content=access.content)
    return bound_call(call, access)


def _judge_address(
    address: str, granted: tuple[GrantedCall, ...], denied: tuple[GrantedCall, ...], private: Path
) -> tuple[Finding, tuple[GrantedCall, ...]]:
    refused = tuple(call.host for call in denied if call.host is not None)
    judge = partial(_judged, address, refused, own_port(Paths(private)))
    finding = judge(DEFAULT_ALLOWED)
    if finding.verdict != "ask":
        return finding, ()
    hosts = [call for call in granted if call.host is not None]
    used = tuple(call for call in hosts if judge((call.host or "",)).verdict == "allow")
    if used:
        return Finding("allow", "grant", "you allowed this host before"), used
    # A host that only looks like an allowed one is denied.
    return judge((*DEFAULT_ALLOWED, *(call.host or "" for call in hosts))), ()


def _judged(address: str, refused: tuple[str, ...], port: int | None, allowed: tuple[str, ...]) -> Finding:
    return judge_address(address, AddressRules(allowed, refused, own_port=port))


def _named(access: Access) -> str:
    return f"the tool {access.service}" if access.service else "running code"

"""The valid grants, in memory, and what they cover. The caller stores them."""

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from errand.engine.permissions.call_rules import (
    ANY_TOOL,
    call_problem,
    holds_for_every_tool,
    is_about_calls,
    rebound_call,
)
from errand.engine.permissions.command_rules import can_be_prefix, is_one_command, prefix_problem
from errand.engine.tools.base import Access
from errand.protocol.asks import Grant, GrantDecision, GrantDraft, GrantedCall
from errand.text.visible_text import command_text

# The operations of file tools that `edit` covers: on one file, and in a folder.
_FILE_EDITS = ("write", "patch")
_FOLDER_EDITS = (*_FILE_EDITS, "create_dir")
_DENIED_OPERATIONS = ("", "read", "write")
_FOLDER_TEXTS = {"edit": "any change of files", "write": "any change of files", "read": "any use of files"}
_MAX_TEXT_LENGTH = 8_192
_NO_TOOL = "A rule that allows names its tool."


class Grants:
    """Valid grants. A revocation, and the end of a grant, take effect at the next check."""

    def __init__(self, grants: Iterable[Grant] = (), now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._by_id: dict[str, Grant] = {}
        self._listeners: list[Callable[[], None]] = []
        for grant in grants:
            self.add(grant)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when a grant was added or revoked. Returns the function that unsubscribes."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def add(self, grant: Grant) -> None:
        """Add or replace a grant; removes one with `revoked_at` set."""
        before = self._by_id.get(grant.id)
        if grant.revoked_at is None:
            self._by_id[grant.id] = grant
        else:
            self._by_id.pop(grant.id, None)
        if before is None or grant.revoked_at is not None:
            for listener in tuple(self._listeners):
                listener()

    def forget_conversation(self, conversation_id: str) -> None:
        """Drop the grants of a deleted conversation."""
        of_it = ("conversation", conversation_id)
        self._by_id = {key: grant for key, grant in self._by_id.items() if (grant.scope, grant.scope_id) != of_it}

    def all(self) -> tuple[Grant, ...]:
        return tuple(self._by_id.values())

    def matching(
        self, tool: str, conversation_id: str, workspace: str, decision: GrantDecision = "allow"
    ) -> tuple[Grant, ...]:
        """Return the grants that hold now for a tool in this conversation or workspace."""
        now = self._now()
        return tuple(
            grant
            for grant in self._by_id.values()
            if grant.decision == decision
            and _is_for(grant, tool)
            and _is_there(grant, conversation_id, workspace)
            and not is_expired(grant, now)
        )

    def accepting(self, service: str, basis: str) -> tuple[Grant, ...]:
        """Return the grants for a tool of another program with its change accepted, for the caller to store."""
        calls = [(grant, grant.call) for grant in self._by_id.values() if grant.call is not None]
        rebound = [(grant, call, rebound_call(call, service, basis)) for grant, call in calls]
        return tuple(msgspec.structs.replace(grant, call=now) for grant, call, now in rebound if now != call)

    def granted(self, tool: str, conversation_id: str, workspace: str) -> frozenset[GrantedCall]:
        """Return the calls that rules allow, for `policy.decide`."""
        grants = self.matching(tool, conversation_id, workspace)
        return frozenset(grant.call for grant in grants if grant.call is not None)

    def denied(self, tool: str, conversation_id: str, workspace: str) -> frozenset[GrantedCall]:
        """Return the calls that rules deny, for `policy.decide`."""
        grants = self.matching(tool, conversation_id, workspace, "deny")
        return frozenset(grant.call for grant in grants if grant.call is not None)


def _is_for(grant: Grant, tool: str) -> bool:
    """Return True if the grant is for the tool. One for every tool allows only what means the same for each."""
    holds = grant.decision == "deny" or (grant.call is not None and holds_for_every_tool(grant.call))
    return grant.tool == tool or (not grant.tool and holds)


def _is_there(grant: Grant, conversation_id: str, workspace: str) -> bool:
    """Return True if the grant holds in the conversation and workspace. A denial holds in workspaces below, too."""
    match grant.scope:
        case "conversation":
            return grant.scope_id == conversation_id
        case "workspace" if grant.decision == "deny":
            return is_below(workspace, grant.scope_id)
        case "workspace":
            return grant.scope_id == workspace
        case "user":
            return True


def is_expired(grant: Grant, now: datetime) -> bool:
    return grant.expires_at is not None and grant.expires_at <= now


def describe(call: GrantedCall) -> str:
    """Return what a grant covers, as text for people. The folder comes first, so that a command extends to the end."""
    where = f"in {call.working_dir}" if call.working_dir is not None else "anywhere"
    if call.command is not None:
        return f"{where}: {call.command}"
    if call.prefix:
        return f"{where}, whatever begins with: {command_text(call.prefix)}"
    what = call.operation or "use"
    if call.folder is not None:
        return f"{_FOLDER_TEXTS.get(what, what)} in {call.folder} and below"
    if call.path is not None:
        return f"{what} {call.path}" + (", with the content that was shown" if call.content is not None else "")
    if call.host is not None:
        return f"addresses of {call.host}"
    if call.service is not None:
        server, _, tool = call.service.partition("/")
        named = f"the tool {call.service}"
        if tool == ANY_TOOL:
            named = f"any tool of the server {server}" + (", as they were then" if call.fingerprints else "")
        return named + (", with the arguments that were shown" if call.content is not None else "")
    if call.operation == "code":
        return "the code that was shown" if call.content is not None else "any code, in the sandbox"
    return "every call"


def covers(call: GrantedCall, access: Access) -> bool:
    """Return True if a grant covers this call of a file tool."""
    paths = tuple(map(str, (*access.writes, *access.reads)))
    if not access.operation or len(paths) != 1:
        return False
    if call.folder is not None:
        return call.operation == "edit" and access.operation in _FOLDER_EDITS and is_below(paths[0], call.folder)
    if call.path != paths[0]:
        return False
    if call.content is not None:
        return (call.operation, call.content) == (access.operation, access.content)
    if call.operation == "edit":
        return access.operation in _FILE_EDITS
    # Without content, a grant is no grant for a change of a file.
    return call.operation == access.operation and not access.basis


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def draft_problem(draft: GrantDraft) -> str | None:
    """Why a rule of a person cannot be, as a sentence; None if it can. Paths must be resolved already."""
    call = draft.call
    targets = [name for name in ("command", "prefix", "path", "folder", "host", "service") if getattr(call, name)]
    if len(targets) > 1:
        return f"A rule is about one of these, not about all: {', '.join(targets)}."
    named = (call.command, call.path, call.folder, call.working_dir, call.host, call.service, call.operation)
    texts = (*call.prefix, *(text or "" for text in named), draft.tool)
    if any(len(text) > _MAX_TEXT_LENGTH or not text.isprintable() for text in texts):
        return "A rule holds printable text of one line, at most 8 KB."
    for path in (call.path, call.folder, call.working_dir):
        if path is not None and not os.path.isabs(path):
            return f"{path} is not an absolute path."
    if (draft.scope_id == "") != (draft.scope == "user"):
        return "A rule names the conversation or the folder that it is for, unless it is for the user."
    if is_about_calls(call):
        if draft.decision == "allow" and not draft.tool and not holds_for_every_tool(call):
            return _NO_TOOL
        return call_problem(call, allows=draft.decision == "allow")
    if draft.decision == "allow":
        return _allow_problem(draft, call)
    return _deny_problem(draft, call)


def _allow_problem(draft: GrantDraft, call: GrantedCall) -> str | None:
    if not draft.tool:
        return _NO_TOOL
    if call.prefix:
        return None if can_be_prefix(call.prefix) else prefix_problem(call.prefix)
    if call.command is not None:
        return None if call.working_dir is not None else "A rule that allows one command names its folder."
    if call.folder is not None:
        return None if call.operation == "edit" else "A folder can be opened for the operation edit only."
    if call.path is not None:
        return None if call.operation else "A rule about a path names the operation."
    return "A rule that allows says what: a command, its first words, a path, a folder, a host, a service or code."


def _deny_problem(draft: GrantDraft, call: GrantedCall) -> str | None:
    if call.prefix:
        return prefix_problem(call.prefix) if not is_one_command(call.prefix) else None
    if call.path is not None:
        return "A path is denied as a folder: it covers the path and everything below."
    if call.folder is not None and call.operation not in _DENIED_OPERATIONS:
        return "Below a folder can be denied: read (which denies writing too) or write."
    if call.command is not None or call.folder is not None:
        return None
    if not draft.tool:
        return "A rule that denies says what: a command, the words it begins with, a folder, or a tool."
    return None if call == GrantedCall() else "A rule that denies a whole tool says nothing else about its calls."

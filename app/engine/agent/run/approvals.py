"""Permissions as a feature: applies the policy, asks the user if required, turns answers into grants."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from app.engine.agent.loop.features import Feature
from app.engine.agent.loop.hooks import NOT_STARTED, PendingCall, ToolRefusal
from app.engine.agent.run.task_context import TaskContext, TaskTools
from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import FolderNotAnswering
from app.engine.core.ids import new_id
from app.engine.core.messages import ToolCall
from app.engine.core.workspace_threads import in_workspace
from app.engine.permissions.grants import Grants
from app.engine.permissions.policy import Decision, decide, describe, unchecked
from app.engine.tools.base import Access
from app.protocol.asks import Approval, Ask, Grant, GrantedCall
from app.protocol.events import GrantUpdate

DENIED = "The person denied this call. Do not try the same again; find another way or say what you could not do."
_CHANGED = "it is not what you were asked before, something has changed since: "

# The policy looks at links and repositories on the disk, which may not answer.
_CHECK_S = 5.0
_USE_NOTED_EVERY = timedelta(minutes=1)


class Approvals(Feature):
    """Approves or refuses the calls of one task. `private` is the app's own data, which no tool may touch."""

    def __init__(self, context: TaskContext, tools: TaskTools, grants: Grants, private: Path) -> None:
        self._context = context
        self._state = context.state
        self._tools = tools
        self._grants = grants
        self._private = private

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall | ToolRefusal:
        access = await self._check(pending, cancel)
        if isinstance(access, ToolRefusal):
            if not cancel.is_set:
                self._state.tool_refused()
            return access
        self._tools.allow(pending, access)
        return replace(pending, access=access)

    async def _check(self, pending: PendingCall, cancel: CancelSignal) -> Access | ToolRefusal:
        """The approved effects of a call, or a refusal.

        If the effects change while the user decides, the user is asked again.
        """
        call = pending.call
        access, again = await self._tools.access_of(pending), ""
        while True:
            mode = self._state.task.approve
            decision = await self._decide(call.name, access)
            if mode != self._state.task.approve:
                continue
            match decision.verdict:
                case "allow":
                    if decision.rule == "grant":
                        self._note_use(call.name, decision.grantable)
                    looks, folders = decision.only_looks, decision.program_folders
                    return replace(access, only_looks=looks, argv=decision.argv, program_folders=folders)
                case "deny":
                    return ToolRefusal(f"Not allowed: {decision.reason}")
                case "ask" if not self._state.task.attended:
                    return ToolRefusal(f"Not allowed: {decision.reason}, and nobody is there to ask")
                case "ask":
                    settled = await self._ask(call, access, decision, again, cancel)
            if (refusal := _refusal(settled)) is not None:
                return refusal
            now = await self._tools.access_of(pending)
            if now == access and self._state.task.approve not in ("plan", "never"):
                self._remember(settled, call.name, decision.grantable)
                return access
            access, again = now, _CHANGED  # in a mode that asks nothing, this is decided once more

    async def _decide(self, tool: str, access: Access) -> Decision:
        task = self._state.task
        granted = self._grants.granted(tool, task.conversation_id, task.workspace)
        check = partial(decide, access, Path(task.workspace), task.approve, granted, self._private)
        if access.tier == "free":
            return check()
        try:
            return await in_workspace(Path(task.workspace), check, _CHECK_S)
        except FolderNotAnswering:
            return unchecked(task.approve, f"it could not be checked within {_CHECK_S:g} s")

    async def _ask(self, call: ToolCall, access: Access, decision: Decision, again: str, cancel: CancelSignal) -> Ask:
        ask = Ask(
            id=new_id("ask"),
            task_id=self._state.task.id,
            conversation_id=self._state.task.conversation_id,
            owner=self._state.task.owner,
            kind="approval",
            text=access.text,
            created_at=datetime.now(UTC),
            approval=_approval(call, access, decision, again),
        )
        return await self._context.asks.raise_and_wait(ask, self._state, cancel)

    def _remember(self, ask: Ask, tool: str, call: GrantedCall | None) -> None:
        if ask.remember == "once" or call is None:
            return
        grant = Grant(
            id=new_id("grant"),
            tool=tool,
            exact=describe(call),
            call=call,
            scope=ask.remember,
            scope_id=ask.conversation_id if ask.remember == "conversation" else self._state.task.workspace,
            created_at=datetime.now(UTC),
            created_by=ask.answered_by or "",
            ask_id=ask.id,
            owner=ask.owner,
        )
        self._grants.add(grant)
        self._context.log.publish(GrantUpdate(grant=grant))
        self._context.asks.settle_granted(grant)

    def _note_use(self, tool: str, call: GrantedCall | None) -> None:
        """Record when a grant was last used, at most once a minute."""
        task, now = self._state.task, datetime.now(UTC)
        for grant in self._grants.matching(tool, task.conversation_id, task.workspace):
            if grant.call == call and (grant.last_used_at is None or now - grant.last_used_at >= _USE_NOTED_EVERY):
                used = msgspec.structs.replace(grant, last_used_at=now)
                self._grants.add(used)
                self._context.log.publish(GrantUpdate(grant=used))


def _refusal(settled: Ask) -> ToolRefusal | None:
    if settled.status == "cancelled":
        return NOT_STARTED
    if not settled.allowed and settled.settled_by != "person":
        return ToolRefusal(f"Not allowed: {settled.answer}", summary="denied")
    if not settled.allowed:
        return ToolRefusal(
            f"{DENIED} The person's reason: {settled.answer}" if settled.answer else DENIED, summary="denied"
        )
    return None


def _approval(call: ToolCall, access: Access, decision: Decision, again: str) -> Approval:
    return Approval(
        tool=call.name,
        call_id=call.id,
        text=access.text,
        rule=again + decision.reason,
        risk=decision.risk,
        command=access.command,
        working_dir=str(access.reads[0]) if access.command is not None and access.reads else None,
        reads=tuple(str(path) for path in access.reads),
        writes=tuple(str(path) for path in access.writes),
        preview=access.preview,
        remembered=describe(decision.grantable) if decision.grantable is not None else None,
        grantable=decision.grantable,
        basis=_fingerprint(call, access),
        modes=decision.modes,
    )


def _fingerprint(call: ToolCall, access: Access) -> str:
    """Covers everything that determines the call's effect, also where the card shows only its beginning."""
    whole = msgspec.json.encode((call.name, call.arguments, access.basis), order="deterministic")
    return hashlib.blake2b(whole, digest_size=16).hexdigest()

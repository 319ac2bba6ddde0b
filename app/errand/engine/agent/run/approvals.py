"""Permissions as a feature: applies the policy, asks the user if required, turns answers into grants."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import NOT_STARTED, PendingCall, ToolRefusal
from errand.engine.agent.run.task_context import CHECK_S, TaskContext, TaskTools
from errand.engine.checkpoints.baselines import Baselines
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.ids import new_id
from errand.engine.core.messages import AssistantMessage, ToolCall
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.permissions.auto_mode import Confinement, confinement_of
from errand.engine.permissions.call_rules import bound_call, holds_for_every_tool
from errand.engine.permissions.explain import explanation
from errand.engine.permissions.grants import Grants, describe
from errand.engine.permissions.network import needs_network
from errand.engine.permissions.offers import Judge, offers_for
from errand.engine.permissions.policy import Decision, decide, unchecked
from errand.engine.tools.base import Access, CommandNetwork
from errand.protocol.asks import Approval, Ask, AskAnswerParams, Grant, GrantedCall, GrantOffer
from errand.protocol.events import GrantUpdate
from errand.protocol.tasks.groups import ApproveMode, NetworkMode

DENIED = "The person denied this call. Do not try the same again; find another way or say what you could not do."
_NOT_ASKED = (
    "Not run, and not asked about: the person denied an earlier call of this turn. If it is still right, call it again."
)
_BY_RULE = "a rule of the person"
_CHANGED = "it is not what you were asked before, something has changed since: "

# The policy looks at links and repositories on the disk, which may not answer.
_NOT_CHECKED = f"it could not be checked within {CHECK_S:g} s"
_USE_NOTED_EVERY = timedelta(minutes=1)

# By what the policy decides: the mode, and what is allowed and denied.
_Terms: TypeAlias = tuple[ApproveMode, frozenset[GrantedCall], frozenset[GrantedCall]]


class Approvals(Feature):
    """Approves or refuses the calls of one task. `private` is the app's own data, which no tool may touch.

    `sandbox` is what a person is told about what bounds its commands. `baselines` know whether all that commands change
    can be undone.
    """

    def __init__(
        self,
        context: TaskContext,
        tools: TaskTools,
        grants: Grants,
        baselines: Baselines,
        private: Path,
        sandbox: str,
        *,
        has_sandbox: bool,
    ) -> None:
        self._context = context
        self._state = context.state
        # What was asked for stays as it is while the task runs.
        request = context.state.task.request
        self._workspace = request.workspace
        self._network_mode: NetworkMode = request.network
        self._tools = tools
        self._grants = grants
        self._baselines = baselines
        self._private = private
        # The reply of which the person denied a call: its other calls are not asked about.
        self._denied_in: AssistantMessage | None = None
        self._sandbox = sandbox
        self._has_sandbox = has_sandbox

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall | ToolRefusal:
        access = await self._check(pending, cancel)
        if isinstance(access, ToolRefusal):
            if not cancel.is_set:
                self._state.tool_refused(pending.call.id)
            return access
        self._tools.allow(pending, access)
        return replace(pending, access=access)

    async def _check(self, pending: PendingCall, cancel: CancelSignal) -> Access | ToolRefusal:
        """Return the approved effects of a call, or a refusal.

        If the effects change while the user decides, the user is asked again.
        """
        call, again = pending.call, ""
        access, decision = await self._judged(pending)
        while True:
            match decision.verdict:
                case "allow":
                    self._note_use(call.name, decision.used, access)
                    looks, folders = decision.only_looks, decision.program_folders
                    network = self._network(access, by_person=bool(decision.used))
                    return replace(
                        access, only_looks=looks, argv=decision.argv, program_folders=folders, network=network
                    )
                case "deny":
                    return _denied(decision)
                case "ask" if not self._state.task.options.attended:
                    return ToolRefusal(f"Not allowed: {decision.reason}, and nobody is there to ask")
                case "ask" if self._denied_in is pending.message:
                    return ToolRefusal(_NOT_ASKED, summary="not asked: an earlier call was denied")
                case "ask":
                    offers = await self._offers(call.name, access, decision)
                    settled = await self._ask(call, access, decision, again, offers, cancel)
            if (refusal := _refusal(settled)) is not None:
                if (settled.status, settled.settled_by) == ("answered", "person"):
                    self._denied_in = pending.message
                return refusal
            now = await self._tools.access_of(pending)
            if now != access or self._state.task.options.approve in ("plan", "never"):
                access, again = now, _CHANGED  # in a mode that asks nothing, this is decided once more
                decision = await self._decide(call.name, access)
                continue
            # A deny rule that was written meanwhile holds; what is remembered is what was offered.
            decision = await self._decide(call.name, access)
            if decision.verdict == "deny":
                return _denied(decision)
            if decision.verdict == "ask" and settled.settled_by != "person":
                continue  # the rule or the mode that allowed it was taken back
            self._note_use(call.name, decision.used, access)
            if access.is_changed and settled.settled_by == "person":
                self._accept_change(access)
            self._remember(settled, call.name, offers)
            by_person = settled.settled_by == "person" or bool(decision.used)
            is_changed = access.is_changed and settled.settled_by != "person"
            return replace(access, network=self._network(access, by_person=by_person), is_changed=is_changed)

    def _network(self, access: Access, *, by_person: bool) -> CommandNetwork:
        """`by_person`: a person allowed this command, now or by a grant. Only a sandbox holds the network."""
        if not self._has_sandbox or access.command is None or self._network_mode == "on":
            return "none"
        # What runs unasked may well work without the network; if it fails, the network need not be why.
        if not needs_network(access.command, fetches=not by_person):
            return "none"
        return "open" if by_person and self._network_mode == "asked" else "missing"

    def _bounds(self, access: Access) -> str:
        if access.command is None:
            return ""
        if not self._has_sandbox:
            return self._sandbox
        has_network = self._network_mode == "on" or self._network(access, by_person=True) == "open"
        return f"{self._sandbox}, {'with' if has_network else 'without'} the network"

    async def _judged(self, pending: PendingCall) -> tuple[Access, Decision]:
        """Return the effects of a call and the decision about them."""
        tool = pending.call.name
        await self._look_at_files()
        mode, granted, denied = terms = self._terms(tool)
        judge = self._judge(mode, denied)
        access, decision = await self._tools.judged(pending, lambda access: judge(access, granted))
        if terms != self._terms(tool):
            return access, await self._decide(tool, access)
        return access, decision or unchecked(mode, _NOT_CHECKED)

    async def _decide(self, tool: str, access: Access) -> Decision:
        while True:
            await self._look_at_files()
            mode, granted, denied = terms = self._terms(tool)
            check = partial(self._judge(mode, denied), access, granted)
            try:
                decision = await in_workspace(Path(self._workspace), check, CHECK_S)
            except FolderNotAnswering:
                decision = unchecked(mode, _NOT_CHECKED)
            if terms == self._terms(tool):
                return decision

    def _terms(self, tool: str) -> _Terms:
        task = self._state.task
        about = tool, task.conversation_id, task.request.workspace
        return task.options.approve, self._grants.granted(*about), self._grants.denied(*about)

    def _judge(self, mode: ApproveMode, denied: frozenset[GrantedCall]) -> Judge:
        workspace = Path(self._workspace)

        def judge(access: Access, granted: frozenset[GrantedCall]) -> Decision:
            confinement = self._confinement()
            return decide(access, workspace, mode, granted, self._private, denied=denied, confinement=confinement)

        return judge

    def _confinement(self) -> Confinement:
        """Return what holds the commands of this task now. Reads the file system: it is called in a thread."""
        if not self._has_sandbox:
            return Confinement()
        return confinement_of(self._network_mode, self._baselines.coverage_of(Path(self._workspace)).reason)

    async def _look_at_files(self) -> None:
        """Read the files of the workspace, unless that was done, if the mode depends on what can be undone."""
        if self._state.task.options.approve == "auto" and self._has_sandbox:
            await self._baselines.prepare(Path(self._workspace))

    async def _offers(self, tool: str, access: Access, decision: Decision) -> tuple[GrantOffer, ...]:
        workspace, (mode, _, denied) = self._workspace, self._terms(tool)
        make = partial(offers_for, access, decision, workspace, self._judge(mode, denied))
        try:
            return await in_workspace(Path(workspace), make, CHECK_S)
        except FolderNotAnswering:
            return ()

    async def _ask(
        self,
        call: ToolCall,
        access: Access,
        decision: Decision,
        again: str,
        offers: tuple[GrantOffer, ...],
        cancel: CancelSignal,
    ) -> Ask:
        ask = Ask(
            id=new_id("ask"),
            task_id=self._state.task.id,
            conversation_id=self._state.task.conversation_id,
            owner=self._state.task.owner,
            kind="approval",
            text=access.text,
            created_at=datetime.now(UTC),
            approval=_approval(call, access, decision, again, offers, self._bounds(access)),
        )

        async def recheck() -> tuple[AskAnswerParams, str] | None:
            now = await self._decide(call.name, access)
            if now.verdict == "ask":
                return None
            text = now.reason if now.verdict == "deny" else ""
            return AskAnswerParams(ask_id=ask.id, allow=now.verdict == "allow", text=text), self._author_of(now)

        return await self._context.asks.raise_and_wait(ask, self._state, cancel, recheck)

    def _author_of(self, decision: Decision) -> str:
        """Who gave the grant that decided."""
        used = [grant.created_by for grant in self._grants.all() if grant.call in decision.used]
        return used[-1] if used else _BY_RULE

    def _remember(self, ask: Ask, tool: str, offers: tuple[GrantOffer, ...]) -> None:
        """Apply what the person chose among the offers on the card, unless it is not one of today's `offers`."""
        shown_offers = ask.approval.offers if ask.approval is not None else ()
        if ask.remember == "once" or ask.offer >= len(shown_offers) or shown_offers[ask.offer] not in offers:
            return
        scope_ids = {"conversation": ask.conversation_id, "workspace": self._workspace, "user": ""}
        now = ask.answered_at or datetime.now(UTC)
        for offered in shown_offers[ask.offer].calls:
            # For the user it holds in every workspace.
            call = msgspec.structs.replace(offered, working_dir=None) if ask.remember == "user" else offered
            grant = Grant(
                id=new_id("grant"),
                tool="" if holds_for_every_tool(call) else tool,
                exact=describe(call),
                call=call,
                scope=ask.remember,
                scope_id=scope_ids[ask.remember],
                created_at=datetime.now(UTC),
                created_by=ask.answered_by or "",
                ask_id=ask.id,
                expires_at=now + timedelta(seconds=ask.expires_s) if ask.expires_s is not None else None,
                owner=ask.owner,
            )
            self._publish(grant)

    def _note_use(self, tool: str, used: tuple[GrantedCall, ...], access: Access) -> None:
        """Record when a grant was last used, at most once a minute, and bind it to the tools of its first use."""
        task, now = self._state.task, datetime.now(UTC)
        for grant in self._grants.matching(tool, task.conversation_id, task.request.workspace) if used else ():
            if grant.call is None or grant.call not in used:
                continue
            call = bound_call(grant.call, access)
            if call != grant.call or grant.last_used_at is None or now - grant.last_used_at >= _USE_NOTED_EVERY:
                self._publish(msgspec.structs.replace(grant, call=call, exact=describe(call), last_used_at=now))

    def _accept_change(self, access: Access) -> None:
        """A person saw what the tool says now: the grants for it hold again."""
        for grant in self._grants.accepting(access.service, access.basis):
            self._publish(grant)

    def _publish(self, grant: Grant) -> None:
        self._grants.add(grant)
        self._context.log.publish(GrantUpdate(grant=grant))


def _denied(decision: Decision) -> ToolRefusal:
    return ToolRefusal(f"Not allowed: {decision.reason}")


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


def _approval(
    call: ToolCall, access: Access, decision: Decision, again: str, offers: tuple[GrantOffer, ...], sandbox: str
) -> Approval:
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
        offers=offers,
        explained=explanation(decision),
        sandbox=sandbox,
        address=access.address,
        code=access.code,
        language=access.language,
        service=access.service,
        edits=access.edits,
        basis=_fingerprint(call, access),
        modes=decision.modes,
    )


def _fingerprint(call: ToolCall, access: Access) -> str:
    """Covers everything that determines the call's effect, also where the card shows only its beginning."""
    encoded = msgspec.json.encode((call.name, call.arguments, access.basis), order="deterministic")
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()

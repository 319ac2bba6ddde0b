"""Permission as a hook of the loop: the policy decides, a person is asked where it says so, answers are remembered."""

import asyncio
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from app.engine.agent.asks import AskDesk
from app.engine.agent.live import LiveTask
from app.engine.broadcast import EventLog
from app.engine.cancel import CancelSignal
from app.engine.ids import new_id
from app.engine.permissions.grants import Grants
from app.engine.permissions.policy import Decision, decide, unchecked
from app.engine.tools.base import Access
from app.protocol.asks import Approval, Ask
from app.protocol.events import GrantUpdate
from app.protocol.grants import Grant

DENIED = "The person denied this call. Do not try the same again; find another way or say what you could not do."

# A command up to this length is judged in some 5 ms at most, whatever it holds.
_LONGEST_ON_LOOP = 400
_CHECK_S = 5.0


class Approvals:
    """Settles calls of one task. `private` is the app's own data, which no tool may touch."""

    def __init__(self, live: LiveTask, desk: AskDesk, grants: Grants, log: EventLog, private: Path) -> None:
        self._live = live
        self._desk = desk
        self._grants = grants
        self._log = log
        self._private = private

    async def refusal(self, tool: str, call_id: str, access: Access, cancel: CancelSignal) -> str | None:
        """Why a call must not run, in a text for the model; None if it may."""
        task = self._live.task
        remembered = self._grants.remembered(tool, task.conversation_id, task.workspace)
        check = partial(decide, access, Path(task.workspace), task.approve, remembered, self._private)
        if len(access.command or "") <= _LONGEST_ON_LOOP:
            decision = check()
        else:
            try:
                async with asyncio.timeout(_CHECK_S):
                    decision = await asyncio.to_thread(check)
            except TimeoutError:
                decision = unchecked(task.approve, f"it could not be checked within {_CHECK_S:g} s")
        match decision.verdict:
            case "allow":
                return None
            case "deny":
                return f"Not allowed: {decision.rule}"
            case "ask":
                return await self._ask(tool, call_id, access, decision, cancel)

    async def _ask(
        self, tool: str, call_id: str, access: Access, decision: Decision, cancel: CancelSignal
    ) -> str | None:
        ask = Ask(
            id=new_id("ask"),
            task_id=self._live.task.id,
            conversation_id=self._live.task.conversation_id,
            owner=self._live.task.owner,
            kind="approval",
            text=access.text,
            created_at=datetime.now(UTC),
            approval=_approval(tool, call_id, access, decision),
        )
        settled = await self._desk.put(ask, self._live, cancel)
        if settled.status == "cancelled":
            return "Operation aborted"
        if not settled.allowed:
            return f"{DENIED} The person's reason: {settled.answer}" if settled.answer else DENIED
        if settled.remember != "once" and decision.remembered is not None:
            self._remember(settled, tool, decision.remembered)
        return None

    def _remember(self, ask: Ask, tool: str, exact: str) -> None:
        if ask.remember == "once":
            return
        grant = Grant(
            id=new_id("grant"),
            tool=tool,
            exact=exact,
            scope=ask.remember,
            scope_id=ask.conversation_id if ask.remember == "conversation" else self._live.task.workspace,
            created_at=datetime.now(UTC),
            created_by=ask.answered_by or "",
            ask_id=ask.id,
            owner=ask.owner,
        )
        self._grants.add(grant)
        self._log.publish(GrantUpdate(grant=grant))
        self._desk.settle_granted(grant)


def _approval(tool: str, call_id: str, access: Access, decision: Decision) -> Approval:
    return Approval(
        tool=tool,
        call_id=call_id,
        text=access.text,
        rule=decision.rule,
        risk=decision.risk,
        command=access.command,
        working_dir=str(access.reads[0]) if access.command is not None and access.reads else None,
        reads=tuple(str(path) for path in access.reads),
        writes=tuple(str(path) for path in access.writes),
        preview=access.preview,
        remembered=decision.remembered,
    )

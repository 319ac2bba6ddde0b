"""Rules that a person writes: checked and resolved, and judged against recorded calls."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic

import msgspec

from errand.engine.agent.run.task_context import content_of
from errand.engine.core.errors import FolderNotAnswering, InvalidParams, NotFound
from errand.engine.core.ids import new_id
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.permissions.call_rules import holds_for_every_tool
from errand.engine.permissions.grants import Grants, describe, draft_problem
from errand.engine.permissions.policy import Decision, decide
from errand.engine.storage.database import Database
from errand.engine.storage.records.executions import ExecutionStart
from errand.engine.tools.base import Access
from errand.engine.tools.context import ShellContext, ToolContext
from errand.engine.tools.registry import CONTROL_TOOLS, NAMES, bind
from errand.engine.tools.results import ToolError
from errand.protocol.asks import CoveredCall, Grant, GrantCoveredResult, GrantDraft, GrantedCall
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths

_MAX_RULES, _MAX_CALLS = 500, 1_000
_CHECK_S = 5.0
# Whoever asks waits for it; the calls that are left are not judged.
_JUDGING_TIMEOUT_S = 10.0
# Without them a task can neither end nor ask.
_NEEDED = ("task_complete", "ask_user")


async def made_grants(drafts: Sequence[GrantDraft], by: str, grants: Grants, database: Database) -> tuple[Grant, ...]:
    """Return the grants of these rules; a rule that is there already keeps its grant. Add the others before the next
    wait.

    Raises `InvalidParams` with the number of the first rule that cannot be.
    """
    if not 0 < len(drafts) <= _MAX_RULES:
        raise InvalidParams(f"rules: {len(drafts)}; from 1 to {_MAX_RULES} at once.")
    resolved: list[Grant] = []
    for number, draft in enumerate(drafts, start=1):
        try:
            resolved.append(await _grant(draft, by, database))
        except (InvalidParams, NotFound) as error:
            raise InvalidParams(f"Rule {number} is not accepted, so none was added: {error}") from error
    added: list[Grant] = []
    for grant in resolved:  # after all waits: another client may have added the same rule meanwhile
        added.append(next((other for other in (*grants.all(), *added) if _content(other) == _content(grant)), grant))
    return tuple(added)


async def covered_calls(grant: Grant, most: int, database: Database, paths: Paths) -> GrantCoveredResult:
    """Return which of the newest recorded calls the grant decides, whatever other grants say."""
    if not 0 < most <= _MAX_CALLS:
        raise InvalidParams(f"most: {most}; from 1 to {_MAX_CALLS}.")
    covered: list[CoveredCall] = []
    judged, until = 0, monotonic() + _JUDGING_TIMEOUT_S
    for started in await database.executions.newest_judged(most):
        task = await database.tasks.get(started.task_id)
        if task is None or monotonic() > until:
            continue
        judge = partial(_judged, started, task, grant, paths)
        try:
            without, verdict = await in_workspace(Path(task.request.workspace), judge, _CHECK_S)
        except (FolderNotAnswering, ToolError, InvalidParams):
            continue  # its folder is gone, or the tool does not take these arguments any more
        judged += 1
        if without.verdict != verdict.verdict:
            covered.append(
                CoveredCall(
                    task_id=task.id,
                    conversation_id=task.conversation_id,
                    call_id=started.call_id,
                    tool=started.tool,
                    text=started.text,
                    at=started.at,
                    without=without.verdict,
                    verdict=verdict.verdict,
                )
            )
    return GrantCoveredResult(judged=judged, calls=tuple(covered))


async def draft_grant(draft: GrantDraft, database: Database) -> Grant:
    """Return the grant that a rule would be. Raises `InvalidParams`."""
    return await _grant(draft, "", database)


async def _grant(draft: GrantDraft, by: str, database: Database) -> Grant:
    if draft.expires_at is not None and draft.expires_at <= datetime.now(UTC):
        raise InvalidParams(f"It has expired: {draft.expires_at.isoformat()}.")
    if draft.decision == "deny" and draft.tool in _NEEDED and draft.call == GrantedCall():
        raise InvalidParams(f"{draft.tool} cannot be denied: no task could end without it.")
    valid_tools = ("", *NAMES, *(tool.name for tool in CONTROL_TOOLS)) if draft.decision == "deny" else NAMES
    if holds_for_every_tool(draft.call):
        valid_tools = ("", *valid_tools)
    if draft.tool not in valid_tools:
        raise InvalidParams(f"There is no tool {draft.tool!r}; there are {', '.join(NAMES)}.")
    folder = Path(draft.call.folder or draft.call.path or draft.scope_id or "/")
    draft = await in_workspace(folder, partial(_resolved, draft), _CHECK_S)
    if problem := draft_problem(draft):
        raise InvalidParams(problem)
    if draft.scope == "conversation":
        conversation = await database.conversations.get(draft.scope_id)
        if conversation is None:
            raise NotFound(f"There is no conversation {draft.scope_id!r}.")
        draft = _in_workspace(draft, conversation.workspace)
    elif draft.scope == "workspace":
        draft = _in_workspace(draft, draft.scope_id)
    return Grant(
        id=new_id("grant"),
        tool=draft.tool,
        exact=describe(draft.call),
        call=draft.call,
        scope=draft.scope,
        scope_id=draft.scope_id,
        created_at=datetime.now(UTC),
        created_by=by,
        decision=draft.decision,
        expires_at=draft.expires_at,
    )


def _resolved(draft: GrantDraft) -> GrantDraft:
    """Return the rule with real paths, as the policy compares them."""
    call = draft.call
    if draft.scope == "workspace" and not os.path.isdir(draft.scope_id):
        raise InvalidParams(f"{draft.scope_id!r} is not a folder.")
    real = msgspec.structs.replace(
        call, folder=_real(call.folder), path=_real(call.path), working_dir=_real(call.working_dir)
    )
    scope_id = _real(draft.scope_id) if draft.scope == "workspace" else draft.scope_id
    return msgspec.structs.replace(draft, call=real, scope_id=scope_id or "")


def _real(path: str | None) -> str | None:
    if path is None or not os.path.isabs(path):
        return path
    return os.path.realpath(path)


def _in_workspace(draft: GrantDraft, workspace: str) -> GrantDraft:
    """Return the rule bound to its folder, if it allows a prefix for a conversation or a workspace."""
    if draft.decision == "deny" or not draft.call.prefix:
        return draft
    return msgspec.structs.replace(draft, call=msgspec.structs.replace(draft.call, working_dir=workspace))


def _content(grant: Grant) -> tuple[object, ...]:
    return grant.tool, grant.call, grant.decision, grant.scope, grant.scope_id, grant.expires_at


def _judged(started: ExecutionStart, task: Task, grant: Grant, paths: Paths) -> tuple[Decision, Decision]:
    access = _access(started, task, paths)
    ground = Grants(), Grants((grant,))
    without, verdict = (
        decide(
            access,
            Path(task.request.workspace),
            "ask",
            context.granted(started.tool, task.conversation_id, task.request.workspace),
            paths.home,
            denied=context.denied(started.tool, task.conversation_id, task.request.workspace),
        )
        for context in ground
    )
    return without, verdict


def _access(started: ExecutionStart, task: Task, paths: Paths) -> Access:
    """Return the effects of a recorded call: as they were recorded, those of commands and on files as the disk is
    now.
    """
    if started.address or started.service or started.language:
        return _recorded(started)
    if started.tool not in NAMES:
        return Access("free", started.text)
    shell = ShellContext(started.working_dir)
    context = ToolContext(task.id, Path(task.request.workspace), paths.outputs / task.id, shell=shell)
    (tool,) = bind(context, (started.tool,))
    arguments = tool.prepare_arguments(started.arguments)
    return replace(tool.access(arguments), content=content_of(arguments))


def _recorded(started: ExecutionStart) -> Access:
    runs = bool(started.service or started.language)
    return Access(
        "run" if runs else "read",
        started.text,
        operation=started.operation,
        content=content_of(started.arguments),
        address=started.address,
        code=started.text if started.language else "",
        language=started.language,
        service=started.service,
    )

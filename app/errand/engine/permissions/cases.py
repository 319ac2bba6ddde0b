"""Permission cases: a command, a path or an address with its context, as the conformance file and `errand explain`
have them, and the policy's answer."""

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from errand.engine.permissions.addresses import AddressRules, judge_address
from errand.engine.permissions.command_policy import CommandContext, CommandDecision, judge_command
from errand.engine.permissions.command_rules import CommandRule
from errand.engine.permissions.files.folder_layout import FolderLayout, closed_by_default
from errand.engine.permissions.files.paths import PathOperation, judge_path
from errand.engine.permissions.verdict import Finding, Verdict
from errand.system.regular_file import real_path

_OF_SESSION = ("session", "conversation")
# Names for a person as the source of a decision.
_PERSONS = frozenset(("user", "person", "human", "owner", "local"))


class CommandInput(msgspec.Struct, frozen=True):
    command: str


class PathInput(msgspec.Struct, frozen=True):
    path: str
    op: PathOperation = "read"


class AddressInput(msgspec.Struct, frozen=True):
    url: str
    redirects: tuple[str, ...] = ()
    via: str = ""
    resolves_to: tuple[str, ...] = ()


class Remembered(msgspec.Struct, frozen=True):
    """An earlier decision; `workspace` and `cwd` null stand for those of the case.

    `session` is the conversation in which it was decided, for the scopes `session` and `conversation`. A decision that
    was `revoked`, or used up (`once`), holds no more. `source` says who made it: only a person can allow.
    """

    match: str = "exact"
    decision: Literal["allow", "deny", "ask"] = "allow"
    tool: str = "shell"
    argv: tuple[str, ...] = ()
    command: str | None = None
    scope: str = "workspace"
    workspace: str | None = None
    cwd: str | None = None
    session: str | None = None
    source: str = "user"
    revoked: bool = False
    revoked_at: datetime | None = None
    expires_at: datetime | None = None


class OwnServer(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int | None = None


class CaseContext(msgspec.Struct, frozen=True):
    os: str = "linux"
    shell: str = "bash"
    workspace: str = ""
    cwd: str = ""
    home: str = ""
    session: str | None = None
    trusted: bool = False
    interactive: bool = True
    remembered: tuple[Remembered, ...] = ()
    case_sensitive_fs: bool = True
    blocked_dirs: tuple[str, ...] | None = None
    app_config_dir: str = ""
    workspace_write_granted: bool = False
    allowlist: tuple[str, ...] = ("localhost", "127.0.0.1")
    denylist: tuple[str, ...] = ()
    self_api: OwnServer = OwnServer()


class ShellCase(msgspec.Struct, frozen=True, tag_field="kind", tag="shell"):
    id: str
    input: CommandInput
    context: CaseContext = CaseContext()


class PathCase(msgspec.Struct, frozen=True, tag_field="kind", tag="path"):
    id: str
    input: PathInput
    context: CaseContext = CaseContext()


class AddressCase(msgspec.Struct, frozen=True, tag_field="kind", tag="url"):
    id: str
    input: AddressInput
    context: CaseContext = CaseContext()


Case: TypeAlias = ShellCase | PathCase | AddressCase


class Answer(msgspec.Struct, frozen=True):
    """One line of `errand explain --json`."""

    id: str
    decision: Verdict
    reason: str
    rule: str


def answer(case: Case) -> Answer:
    """Return the policy's answer; with nobody to ask, ask becomes deny."""
    finding = _finding(case)
    if finding.verdict == "ask" and not case.context.interactive:
        return Answer(case.id, "deny", f"{finding.reason}, and nobody is there to ask", finding.rule)
    return Answer(case.id, finding.verdict, finding.reason, finding.rule)


def _finding(case: Case) -> Finding:
    context = case.context
    match case:
        case ShellCase():
            return decide_command(case.input.command, context).finding
        case PathCase():
            folder = context.cwd or context.workspace or os.getcwd()
            return judge_path(
                case.input.op, case.input.path, folder, layout_of(context), context.workspace_write_granted
            )
        case AddressCase():
            own = context.self_api
            rules = AddressRules(context.allowlist, context.denylist, own.host, own.port)
            request = case.input
            return judge_address(request.url, rules, request.redirects, request.via, request.resolves_to)


def decide_command(line: str, context: CaseContext) -> CommandDecision:
    trusts_git = partial(_trusts_git, context)
    folder = context.cwd or context.workspace or os.getcwd()
    where = CommandContext(layout_of(context), folder, context.shell, context.trusted, trusts_git)
    return judge_command(line, where, rules_of(context))


def _trusts_git(context: CaseContext, folder: str) -> bool:
    """Trust covers the repository of the workspace, not others below it."""
    while context.trusted and folder != context.workspace and folder not in ("", "/"):
        if os.path.lexists(os.path.join(folder, ".git")) or os.path.isdir(os.path.join(folder, "objects")):
            return False
        folder = os.path.dirname(folder)
    return context.trusted


def layout_of(context: CaseContext) -> FolderLayout:
    home = context.home or str(Path.home())
    closed = context.blocked_dirs if context.blocked_dirs is not None else closed_by_default(home)
    return FolderLayout(
        context.workspace or os.getcwd(),
        home,
        closed,
        (context.app_config_dir,) if context.app_config_dir else (),
        ignores_case=not context.case_sensitive_fs or context.os == "macos",
        is_windows=context.os == "windows",
    )


def rules_of(context: CaseContext) -> tuple[CommandRule, ...]:
    """Return the remembered decisions that hold in this workspace now."""
    return tuple(
        CommandRule(remembered.decision, remembered.argv if remembered.match == "prefix" else (), _exact(remembered))
        for remembered in context.remembered
        if remembered.tool == "shell"
        and remembered.decision != "ask"
        and remembered.match in ("prefix", "exact")
        and _holds(remembered, context)
    )


def _exact(one: Remembered) -> str | None:
    return one.command if one.match == "exact" else None


def _holds(one: Remembered, context: CaseContext) -> bool:
    if one.expires_at is not None and one.expires_at.astimezone(UTC) < datetime.now(UTC):
        return False
    if one.revoked or one.revoked_at is not None or one.scope == "once":
        return False
    if one.decision == "allow" and one.source not in _PERSONS:
        return False
    if one.scope in _OF_SESSION and one.session != context.session:
        return False
    if one.scope == "user":
        return True
    if one.cwd is not None and real_path(one.cwd) != real_path(context.cwd or context.workspace):
        return False
    return one.workspace is None or real_path(one.workspace) == real_path(context.workspace)

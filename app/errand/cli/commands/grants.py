"""`errand grants`: list, write and revoke what is allowed without asking and what is denied; its files."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from errand.cli.arguments import UsageError, path_text, time_span, workspace_path, wrong_arguments
from errand.cli.command import Command
from errand.cli.lookup import find_conversation, only_match
from errand.cli.options import Action, Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import short_id
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.safe_text import escape_hidden
from errand.client.texts.rules import covered_line, covered_summary, grant_text, rule_words
from errand.protocol.asks import (
    GRANT_ADD,
    GRANT_COVERED,
    GRANT_LIST,
    GRANT_REVOKE,
    Grant,
    GrantAddParams,
    GrantCoveredParams,
    GrantDraft,
    GrantedCall,
    GrantListParams,
    GrantListResult,
    GrantRevokeParams,
)
from errand.system.paths import Paths
from errand.system.regular_file import FileTooLarge, read_regular
from errand.text.translation import tr

_ACTIONS = (
    Action("list", "list the rules (the default)"),
    Action("allow 'pytest …'", "allow commands that begin like this without asking (in this workspace)"),
    Action("allow --host example.org", "allow web pages; also --service server/tool, --code, --path"),
    Action("deny 'git push'", "never allow commands that begin like this"),
    Action("covered allow 'make'", "show what a rule, or a grant given by its ID, would have decided", first="grant"),
    Action("revoke ID", "revoke a rule; `all` revokes every rule", first="grant"),
    Action("export FILE", "export the rules to a file", first="file"),
    Action("import FILE", "add the rules in a file", first="file"),
)
_MAX_CALLS_FILE_BYTES = 1_000_000


class GrantsOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...],
        Argument("WHAT", "list (the default), allow RULE, deny RULE, covered, revoke ID, export FILE, import FILE"),
    ] = ()
    scope: Annotated[
        Literal["workspace", "user"], Option("--scope", "where a new rule applies (default: workspace)")
    ] = "workspace"
    conversation: Annotated[str | None, Option("--conversation", "limit a new rule to this conversation", "ID")] = None
    workspace: Annotated[
        str | None, Option("--workspace", "folder of a new rule (default: the current one)", "DIR")
    ] = None
    expires: Annotated[str | None, Option("--expires", "when it expires: 30m, 8h, 7d or a date", "TIME")] = None
    exact: Annotated[bool, Flag("--exact", "match this exact command, not commands that begin with it")] = False
    path: Annotated[
        str | None, Option("--path", "a rule for files below this path: allow edits, or deny all access", "DIR")
    ] = None
    writes: Annotated[bool, Flag("--writes", "with deny --path: deny only changes")] = False
    host: Annotated[
        str | None, Option("--host", "a rule for web pages: example.org, or *.example.org for subdomains", "HOST")
    ] = None
    service: Annotated[str | None, Option("--service", "a rule for an MCP tool: server/tool, or server/*", "TOOL")] = (
        None
    )
    code: Annotated[bool, Flag("--code", "a rule for code that the agent runs in its sandbox")] = False
    tool: Annotated[str | None, Option("--tool", "with deny: the whole tool", "NAME")] = None
    revoked: Annotated[bool, Flag("--revoked", "with list: include revoked rules")] = False


async def grants(options: GrantsOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand grants") as connection:
        match options.arguments or ("list",):
            case ["list"]:
                await _list(connection, options, output)
            case ["revoke", "all"]:
                _show([await _revoke(connection, grant) for grant in (await _grants(connection)).grants], output)
            case ["revoke", part]:
                grant = _matching((await _grants(connection)).grants, part)
                _show([await _revoke(connection, grant)], output)
            case ["covered", "allow" | "deny" as decision, *rule]:
                draft = await _draft(connection, decision, rule, options)
                await _covered(connection, GrantCoveredParams(rule=draft), output)
            case ["covered", part]:
                grant = _matching((await _grants(connection)).grants, part)
                await _covered(connection, GrantCoveredParams(grant_id=grant.id), output)
            case ["allow" | "deny" as decision, *rule]:
                _show(await _add(connection, (await _draft(connection, decision, rule, options),)), output)
            case ["export", file]:
                await _export(connection, file, output)
            case ["import", file]:
                _show(await _add(connection, await asyncio.to_thread(_read_rules, file)), output)
            case _:
                raise wrong_arguments("grants", _ACTIONS, options.arguments)
    return 0


GRANTS = Command(GrantsOptions, grants, actions=_ACTIONS)


async def _grants(connection: Connection, *, revoked: bool = False) -> GrantListResult:
    return await connection.call(GRANT_LIST, GrantListParams(revoked=revoked))


async def _list(connection: Connection, options: GrantsOptions, output: CommandOutput) -> None:
    listing = await _grants(connection, revoked=options.revoked)
    _show(listing.grants, output, empty=tr("No saved permissions. Only read-only calls run without asking."))
    if listing.unreadable:
        output.note(
            tr("errand: {unreadable} stored permissions cannot be read and have no effect.").format(
                unreadable=listing.unreadable
            )
        )


async def _revoke(connection: Connection, grant: Grant) -> Grant:
    """Revoke a grant; it takes effect at the next check, also in tasks under way."""
    return (await connection.call(GRANT_REVOKE, GrantRevokeParams(grant_id=grant.id))).grant


async def _add(connection: Connection, rules: tuple[GrantDraft, ...]) -> tuple[Grant, ...]:
    return (await connection.call(GRANT_ADD, GrantAddParams(rules=rules))).grants


async def _covered(connection: Connection, params: GrantCoveredParams, output: CommandOutput) -> None:
    covered = await connection.call(GRANT_COVERED, params)
    output.each(covered.calls, lambda call: [covered_line(call)])
    output.note(covered_summary(covered))


async def _export(connection: Connection, file: str, output: CommandOutput) -> None:
    """Export the rules, without those of one conversation: a conversation is not there elsewhere."""
    now = datetime.now(UTC)
    grants = [grant for grant in (await _grants(connection)).grants if grant.call is not None]
    drafts = [
        _draft_of(grant, grant.call)
        for grant in grants
        if grant.call is not None
        and grant.scope != "conversation"
        and (grant.expires_at is None or grant.expires_at > now)
    ]
    await asyncio.to_thread(_write_new, file, b"".join(msgspec.json.encode(draft) + b"\n" for draft in drafts))
    text = tr("Exported {kept} rules to {file}; {found} are expired or for one conversation only.")
    output.json({"file": file, "rules": len(drafts)})
    output.note(text.format(kept=len(drafts), file=file, found=len(grants) - len(drafts)))


def _draft_of(grant: Grant, call: GrantedCall) -> GrantDraft:
    return GrantDraft(
        decision=grant.decision,
        call=call,
        scope=grant.scope,
        scope_id=grant.scope_id,
        tool=grant.tool,
        expires_at=grant.expires_at,
    )


def _write_new(file: str, content: bytes) -> None:
    try:
        with Path(path_text(Path(file))).open("xb") as target:
            target.write(content)
    except OSError as error:
        raise UsageError(
            tr("{file} cannot be written: {strerror}.").format(file=file, strerror=error.strerror)
        ) from error


def _read_rules(file: str) -> tuple[GrantDraft, ...]:
    """Read the rules, one a line. A file with a line that is not a rule is refused as a whole."""
    try:
        lines = read_regular(Path(file), _MAX_CALLS_FILE_BYTES).splitlines()
    except FileTooLarge as error:
        raise UsageError(tr("{file} is larger than 1 MB. Nothing was imported.").format(file=file)) from error
    except OSError as error:
        raise UsageError(
            tr("{file} cannot be read: {strerror}.").format(file=file, strerror=error.strerror or error)
        ) from error
    if not lines:
        raise UsageError(tr("{file} has no rules.").format(file=file))
    return tuple(
        _rule(line, tr("{file}, line {number}").format(file=file, number=number))
        for number, line in enumerate(lines, start=1)
    )


def _rule(line: bytes, where: str) -> GrantDraft:
    try:
        json.loads(line, object_pairs_hook=_unique)
        return msgspec.json.decode(line, type=GrantDraft)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            tr("{where} is not a rule, so nothing was imported: {error}").format(where=where, error=error)
        ) from error


def _unique(pairs: list[tuple[str, object]]) -> None:
    """Refuse two fields of one name: readers differ in which of them they take."""
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError(tr("a field is given twice"))


async def _draft(
    connection: Connection, decision: Literal["allow", "deny"], rule: list[str], options: GrantsOptions
) -> GrantDraft:
    part = options.conversation
    conversation = (await find_conversation(connection, part)).id if part else ""
    folder = workspace_path(options.workspace)
    expires_at = _moment(options.expires) if options.expires is not None else None
    call, tool = _call(decision, rule, options, folder)
    draft = GrantDraft(decision=decision, call=call, scope="user", tool=tool, expires_at=expires_at)
    if conversation:
        return msgspec.structs.replace(draft, scope="conversation", scope_id=conversation)
    if options.scope == "workspace":
        return msgspec.structs.replace(draft, scope="workspace", scope_id=folder)
    return draft


def _call(
    decision: Literal["allow", "deny"], rule: list[str], options: GrantsOptions, folder: str
) -> tuple[GrantedCall, str]:
    """Return what the rule covers, and its tool."""
    allows = decision == "allow"
    subjects = [bool(rule), options.code, *(subject is not None for subject in _subjects(options))]
    if sum(subjects) != 1 or (options.tool is not None and allows) or (options.writes and (allows or not options.path)):
        raise wrong_arguments("grants", _ACTIONS, options.arguments)
    if options.tool is not None:
        return GrantedCall(), options.tool
    if options.host is not None:
        return GrantedCall(host=options.host), ""
    if options.service is not None:
        return GrantedCall(service=options.service), ""
    if options.code:
        return GrantedCall(operation="code"), "python" if allows else ""
    if options.path is not None:
        operation = "edit" if allows else "write" if options.writes else "read"
        path = str(Path(folder, Path(options.path).expanduser()))
        return GrantedCall(operation=operation, folder=path), "code" if allows else ""
    line = " ".join(rule)
    operation = "run" if allows else ""  # a rule that denies holds for whatever starts the command
    if options.exact:
        return GrantedCall(operation=operation, command=line, working_dir=folder if allows else None), _shell(allows)
    try:
        prefix = rule_words(line)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return GrantedCall(operation=operation, prefix=prefix), _shell(allows)


def _subjects(options: GrantsOptions) -> tuple[str | None, ...]:
    return options.path, options.tool, options.host, options.service


def _shell(allows: bool) -> str:
    return "shell" if allows else ""


def _moment(text: str) -> datetime:
    if (span := time_span(text)) is not None:
        try:
            return datetime.now(UTC) + span
        except OverflowError as error:
            raise UsageError(tr("{text} is too long.").format(text=text)) from error
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            tr("{text!r} is not a time. Use 30m, 8h, 7d or a date such as 2027-01-31.").format(text=text)
        ) from error


def _show(grants: Sequence[Grant], output: CommandOutput, *, empty: str = "") -> None:
    output.each(grants, lambda grant: _lines(grant, output.style), empty=empty)


def _lines(grant: Grant, style: Style) -> list[str]:
    first, *rest = escape_hidden(grant.exact).splitlines() or [""]
    denied = f"{style.amber('denied')}  " if grant.decision == "deny" else ""
    details = (*rest, style.dim(grant_text(grant)))
    return [f"{style.bold(short_id(grant.id))}  {denied}{first}", *(f"{'':<10}{line}" for line in details)]


def _matching(grants: tuple[Grant, ...], part: str) -> Grant:
    """Return the grant with this part in its id; raises `UsageError` for none and for several."""
    matching = [grant for grant in grants if part and part in grant.id]
    if not matching:
        raise UsageError(tr("No permission has the id {part!r}. List them: errand grants").format(part=part))
    return only_match(part, matching, "grants", lambda grant: grant.exact)

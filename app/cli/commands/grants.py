"""`errand grants`: list and revoke what is allowed without asking."""

from typing import Annotated

import msgspec

from app.cli.arguments import UsageError
from app.cli.command import Command
from app.cli.options import Argument, CommandOptions, Flag
from app.cli.terminal.terminal import Terminal
from app.cli.terminal.text import short_id
from app.client.connection import Connection
from app.client.display_text import grant_text
from app.client.launch import connect
from app.client.safe_text import escape_hidden
from app.paths import Paths
from app.protocol.asks import GRANT_LIST, GRANT_REVOKE, Grant, GrantListParams, GrantRevokeParams


class GrantsOptions(CommandOptions, frozen=True, kw_only=True):
    words: Annotated[
        tuple[str, ...], Argument("WHAT", "list (the default), or revoke ID; `all` revokes every one")
    ] = ()
    revoked: Annotated[bool, Flag("--revoked", "with list: also those that were taken back")] = False
    json: Annotated[bool, Flag("--json", "one JSON object a line")] = False


async def grants(options: GrantsOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand grants") as connection:
        match options.words or ("list",):
            case ["list"]:
                await _list(connection, options, terminal)
            case ["revoke", "all"]:
                for grant in await _grants(connection):
                    await _revoke(connection, grant, options, terminal)
            case ["revoke", part]:
                await _revoke(connection, _matching(await _grants(connection), part), options, terminal)
            case _:
                raise UsageError(
                    "Say what to do: errand grants list, errand grants revoke ID, or errand grants revoke all"
                )
    return 0


GRANTS = Command(GrantsOptions, grants)


async def _grants(connection: Connection, *, revoked: bool = False) -> tuple[Grant, ...]:
    return (await connection.call(GRANT_LIST, GrantListParams(revoked=revoked))).grants


async def _list(connection: Connection, options: GrantsOptions, terminal: Terminal) -> None:
    found = await _grants(connection, revoked=options.revoked)
    if not found and not options.json:
        terminal.note("Nothing is allowed without asking but what only looks.")
    for grant in found:
        _show(grant, options, terminal)


async def _revoke(connection: Connection, grant: Grant, options: GrantsOptions, terminal: Terminal) -> None:
    """It takes effect at the next check, also in tasks under way."""
    answer = await connection.call(GRANT_REVOKE, GrantRevokeParams(grant_id=grant.id))
    _show(answer.grant, options, terminal)


def _show(grant: Grant, options: GrantsOptions, terminal: Terminal) -> None:
    if options.json:
        terminal.line(msgspec.json.encode(grant).decode())
        return
    style = terminal.style
    first, *rest = escape_hidden(grant.exact).splitlines() or [""]
    terminal.line(f"{style.bold(short_id(grant.id))}  {first}")
    for line in (*rest, style.dim(grant_text(grant))):
        terminal.line(f"{'':<10}{line}")


def _matching(found: tuple[Grant, ...], part: str) -> Grant:
    """The grant whose id is, starts or ends with `part`."""
    matching = [grant for grant in found if part and (grant.id.startswith(part) or grant.id.endswith(part))]
    exact = [grant for grant in matching if grant.id == part]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    if not matching:
        raise UsageError(f"No grant has the id {part!r}. See them with: errand grants")
    names = ", ".join(short_id(grant.id) for grant in matching[:5])
    raise UsageError(f"{len(matching)} grants match {part!r} ({names}). Give more of the id.")

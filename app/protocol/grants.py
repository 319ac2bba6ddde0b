"""Grants: remembered permission decisions."""

from typing import Literal

from app.protocol.struct import Moment, Wire

GrantScope = Literal["conversation", "workspace"]


class Grant(Wire, frozen=True, kw_only=True):
    """`exact` is the exact command or path allowed; `scope_id` the conversation's id or the workspace's real path."""

    id: str
    tool: str
    exact: str
    scope: GrantScope
    scope_id: str
    created_at: Moment
    created_by: str
    ask_id: str
    revoked_at: Moment | None = None
    last_used_at: Moment | None = None
    owner: str = "local"


class GrantListParams(Wire, frozen=True, kw_only=True):
    revoked: bool = False


class GrantListResult(Wire, frozen=True, kw_only=True):
    grants: tuple[Grant, ...]


class GrantRevokeParams(Wire, frozen=True, kw_only=True):
    grant_id: str


class GrantRevokeResult(Wire, frozen=True, kw_only=True):
    grant: Grant

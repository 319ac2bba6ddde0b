"""Grants: remembered permission decisions."""

from datetime import datetime
from typing import Literal

from app.protocol.struct import Wire

GrantScope = Literal["conversation", "workspace"]


class Grant(Wire, frozen=True, kw_only=True):
    """`exact` is the exact command or path allowed; `scope_id` the conversation's id or the workspace's real path."""

    id: str
    tool: str
    exact: str
    scope: GrantScope
    scope_id: str
    created_at: datetime
    created_by: str
    ask_id: str
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


class GrantListParams(Wire, frozen=True, kw_only=True):
    revoked: bool = False


class GrantListResult(Wire, frozen=True, kw_only=True):
    grants: tuple[Grant, ...]


class GrantRevokeParams(Wire, frozen=True, kw_only=True):
    grant_id: str


class GrantRevokeResult(Wire, frozen=True, kw_only=True):
    grant: Grant

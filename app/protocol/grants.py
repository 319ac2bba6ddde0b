"""Grants: remembered permission decisions."""

from typing import Literal

from app.protocol.struct import Moment, Wire

GrantScope = Literal["conversation", "workspace"]


class GrantedCall(Wire, frozen=True, kw_only=True):
    """What a grant allows a tool: nothing but this operation, on this path, or this very command in this folder.

    Paths are absolute, with links resolved.
    """

    operation: str
    path: str | None = None
    command: str | None = None
    working_dir: str | None = None


class Grant(Wire, frozen=True, kw_only=True):
    """`call` is what is allowed, null for an old grant that holds no longer; `exact` says it in words.

    `scope_id` is the conversation's id or the workspace's path.
    """

    id: str
    tool: str
    exact: str
    call: GrantedCall | None = None
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

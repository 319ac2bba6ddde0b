"""The valid grants, in memory. The caller stores them."""

from collections.abc import Iterable

from app.protocol.asks import Grant, GrantedCall


class Grants:
    """Valid grants. A revocation takes effect at the next check."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._by_id: dict[str, Grant] = {}
        for grant in grants:
            self.add(grant)

    def add(self, grant: Grant) -> None:
        """Add or replace a grant; removes one with `revoked_at` set."""
        if grant.revoked_at is None:
            self._by_id[grant.id] = grant
        else:
            self._by_id.pop(grant.id, None)

    def forget_conversation(self, conversation_id: str) -> None:
        """Drop the grants of a deleted conversation."""
        of_it = ("conversation", conversation_id)
        self._by_id = {key: grant for key, grant in self._by_id.items() if (grant.scope, grant.scope_id) != of_it}

    def all(self) -> tuple[Grant, ...]:
        return tuple(self._by_id.values())

    def matching(self, tool: str, conversation_id: str, workspace: str) -> tuple[Grant, ...]:
        """The valid grants for a tool in this conversation or workspace."""
        scopes = {("conversation", conversation_id), ("workspace", workspace)}
        return tuple(
            grant for grant in self._by_id.values() if grant.tool == tool and (grant.scope, grant.scope_id) in scopes
        )

    def granted(self, tool: str, conversation_id: str, workspace: str) -> frozenset[GrantedCall]:
        """The granted calls, for `policy.decide`."""
        grants = self.matching(tool, conversation_id, workspace)
        return frozenset(grant.call for grant in grants if grant.call is not None)

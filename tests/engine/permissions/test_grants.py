from datetime import UTC, datetime

import msgspec

from app.engine.permissions.grants import Grants
from app.protocol.grants import Grant

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GRANT = Grant(
    id="g1",
    tool="shell",
    exact="make",
    scope="conversation",
    scope_id="c1",
    created_at=NOW,
    created_by="local",
    ask_id="a1",
)


def test_a_grant_holds_for_its_tool_and_scope_only() -> None:
    grants = Grants([GRANT, msgspec.structs.replace(GRANT, id="g2", exact="ls", scope="workspace", scope_id="/w")])
    assert grants.remembered("shell", "c1", "/w") == {"make", "ls"}
    assert grants.remembered("shell", "c2", "/w") == {"ls"}
    assert grants.remembered("shell", "c1", "/other") == {"make"}
    assert grants.remembered("code", "c1", "/w") == frozenset()
    assert grants.remembered("shell", "/w", "c1") == frozenset()


def test_a_revoked_grant_ceases_to_hold_at_once() -> None:
    grants = Grants([GRANT])
    grants.add(msgspec.structs.replace(GRANT, revoked_at=NOW))
    assert (grants.remembered("shell", "c1", "/w"), grants.all(), grants.get("g1")) == (frozenset(), (), None)

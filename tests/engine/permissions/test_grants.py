from datetime import UTC, datetime

import msgspec

from app.engine.permissions.grants import Grants
from app.protocol.asks import Grant, GrantedCall

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GRANT = Grant(
    id="g1",
    tool="shell",
    exact="in /w: make",
    call=GrantedCall(operation="run", command="make", working_dir="/w"),
    scope="conversation",
    scope_id="c1",
    created_at=NOW,
    created_by="local",
    ask_id="a1",
)


def test_a_grant_holds_for_its_tool_and_scope_only() -> None:
    make, ls = (GrantedCall(operation="run", command=line, working_dir="/w") for line in ("make", "ls"))
    grants = Grants([GRANT, msgspec.structs.replace(GRANT, id="g2", call=ls, scope="workspace", scope_id="/w")])
    assert grants.granted("shell", "c1", "/w") == {make, ls}
    assert grants.granted("shell", "c2", "/w") == {ls}
    assert grants.granted("shell", "c1", "/other") == {make}
    assert grants.granted("code", "c1", "/w") == frozenset()
    assert grants.granted("shell", "/w", "c1") == frozenset()


def test_a_grant_that_says_no_call_allows_nothing() -> None:
    assert Grants([msgspec.structs.replace(GRANT, call=None)]).granted("shell", "c1", "/w") == frozenset()


def test_a_revoked_grant_ceases_to_hold_at_once() -> None:
    grants = Grants([GRANT])
    grants.add(msgspec.structs.replace(GRANT, revoked_at=NOW))
    assert (grants.granted("shell", "c1", "/w"), grants.matching("shell", "c1", "/w"), grants.all()) == (
        frozenset(),
        (),
        (),
    )

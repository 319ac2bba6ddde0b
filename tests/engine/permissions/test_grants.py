from datetime import UTC, datetime, timedelta

import msgspec

from errand.engine.permissions.grants import Grants
from errand.protocol.asks import Grant, GrantedCall

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


def test_an_expired_grant_covers_nothing_at_the_next_check_and_stays_listed() -> None:
    times = [NOW]
    grants = Grants([msgspec.structs.replace(GRANT, expires_at=NOW + timedelta(hours=1))], lambda: times[-1])
    assert len(grants.granted("shell", "c1", "/w")) == 1
    times.append(NOW + timedelta(hours=1))
    assert grants.granted("shell", "c1", "/w") == frozenset() and len(grants.all()) == 1


def test_what_is_denied_holds_for_every_tool_and_in_the_folders_below_a_workspace() -> None:
    denial = msgspec.structs.replace(GRANT, decision="deny", tool="", scope="workspace", scope_id="/w")
    grants = Grants([denial])
    assert GRANT.call is not None
    for tool, workspace in (("shell", "/w"), ("code", "/w/sub")):
        assert grants.denied(tool, "c9", workspace) == {GRANT.call}
        assert grants.granted(tool, "c9", workspace) == frozenset()
    assert grants.denied("shell", "c9", "/w2") == frozenset()


def test_a_grant_for_every_tool_allows_none() -> None:
    grants = Grants([msgspec.structs.replace(GRANT, tool="", scope="user", scope_id="")])
    assert grants.granted("shell", "c1", "/w") == frozenset()


def test_listeners_learn_of_new_and_revoked_grants_but_not_of_their_use() -> None:
    grants, calls = Grants(), list[None]()
    unsubscribe = grants.subscribe(lambda: calls.append(None))
    grants.add(GRANT)
    grants.add(msgspec.structs.replace(GRANT, last_used_at=NOW))
    assert len(calls) == 1
    grants.add(msgspec.structs.replace(GRANT, revoked_at=NOW))
    assert len(calls) == 2
    unsubscribe()
    grants.add(GRANT)
    assert len(calls) == 2

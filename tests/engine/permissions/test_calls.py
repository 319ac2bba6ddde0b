"""The policy for calls that open an address, run code, or call a tool of another program."""

from dataclasses import replace
from pathlib import Path

from errand.engine.permissions.offers import offers_for
from errand.engine.permissions.policy import Decision, decide
from errand.engine.tools.base import Access
from errand.protocol.asks import TYPED, GrantedCall
from errand.protocol.tasks.groups import ApproveMode


def _decided(
    access: Access,
    folder: Path,
    *granted: GrantedCall,
    denied: tuple[GrantedCall, ...] = (),
    approve: ApproveMode = "ask",
) -> Decision:
    return decide(access, folder, approve, frozenset(granted), folder / "private", denied=frozenset(denied))


def _page(url: str) -> Access:
    return Access("read", f"Open {url}", address=url, operation="navigate")


_ECHO = Access("run", "Call echo", service="everything/echo", operation="call", content="a")
_CODE = Access("run", "Run code", code="print(1)", language="python", operation="code", content="a")


def test_this_machine_is_open_and_other_hosts_are_asked_about(tmp_path: Path) -> None:
    assert _decided(_page("http://localhost:3000/"), tmp_path).verdict == "allow"
    assert _decided(_page("https://example.org/"), tmp_path).verdict == "ask"
    assert _decided(_page("https://example.org/"), tmp_path, approve="never").verdict == "deny"
    assert _decided(_page("file:///etc/passwd"), tmp_path, approve="all").verdict == "deny"


def test_an_allowed_host_covers_neither_others_nor_those_that_look_like_it(tmp_path: Path) -> None:
    host = GrantedCall(host="example.org")
    assert _decided(_page("https://example.org/a"), tmp_path, host).used == (host,)
    assert _decided(_page("https://sub.example.org/"), tmp_path, host).verdict == "ask"
    assert _decided(_page("https://example.org.evil.test/"), tmp_path, host).verdict == "deny"
    assert _decided(_page("https://sub.example.org/"), tmp_path, GrantedCall(host="*.example.org")).verdict == "allow"


def test_a_denied_host_stays_closed_in_every_mode(tmp_path: Path) -> None:
    denied = (GrantedCall(host="example.org"),)
    decision = _decided(_page("https://sub.example.org/"), tmp_path, denied=denied, approve="all")
    assert (decision.verdict, decision.reason) == ("deny", "you denied sub.example.org")


def test_plan_mode_opens_pages_and_changes_none(tmp_path: Path) -> None:
    assert _decided(_page("http://localhost/"), tmp_path, approve="plan").verdict == "allow"
    click = Access("write", "Click", address="http://localhost/", operation="click")
    assert _decided(click, tmp_path, approve="plan").verdict == "deny"
    assert _decided(_ECHO, tmp_path, GrantedCall(service="everything/*"), approve="plan").verdict == "deny"


def test_a_tool_of_another_program_asks_until_it_or_its_server_is_allowed(tmp_path: Path) -> None:
    assert _decided(_ECHO, tmp_path).verdict == "ask"
    for call in (GrantedCall(service="everything/echo"), GrantedCall(service="everything/*")):
        assert _decided(_ECHO, tmp_path, call).verdict == "allow"
    for call in (GrantedCall(service="everything/add"), GrantedCall(service="every/*"), GrantedCall(operation="call")):
        assert _decided(_ECHO, tmp_path, call).verdict == "ask"
    same, other = (GrantedCall(service="everything/echo", content=content) for content in "ab")
    assert (_decided(_ECHO, tmp_path, same).verdict, _decided(_ECHO, tmp_path, other).verdict) == ("allow", "ask")


def test_code_asks_until_it_or_all_code_is_allowed(tmp_path: Path) -> None:
    assert _decided(_CODE, tmp_path).verdict == "ask"
    assert _decided(_CODE, tmp_path, GrantedCall(operation="code")).verdict == "allow"
    assert _decided(_CODE, tmp_path, GrantedCall(operation="code", content="a")).verdict == "allow"
    assert _decided(_CODE, tmp_path, GrantedCall(operation="code", content="b")).verdict == "ask"


def test_code_outside_a_sandbox_is_dangerous_and_never_allowed_by_a_rule(tmp_path: Path) -> None:
    bare = Access("run", "Run code", code="print(1)", language="python", content="a")
    decision = _decided(bare, tmp_path, GrantedCall(operation="code"))
    assert (decision.verdict, decision.risk) == ("ask", "high")


def test_each_offer_for_a_call_would_allow_it(tmp_path: Path) -> None:
    for access, kinds in (
        (_page("https://example.org/"), ["host"]),
        (_ECHO, ["exact", "tool", "server"]),
        (_CODE, ["exact", "code"]),
        (replace(_CODE, address="https://example.org/", operation="evaluate"), ["host"]),
    ):
        decision = _decided(access, tmp_path)
        offers = offers_for(access, decision, str(tmp_path), lambda judged, calls: _decided(judged, tmp_path, *calls))
        assert [offer.kind for offer in offers] == kinds


def test_what_is_typed_into_a_program_is_asked_about_as_a_possible_command(tmp_path: Path) -> None:
    typed = replace(_CODE, code="make<enter>", language=TYPED)
    assert _decided(typed, tmp_path).reason == "what is typed may run as a command in the sandbox"

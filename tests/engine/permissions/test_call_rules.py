"""Rules of a person about hosts, tools of other programs and code: which can be, and what they cover."""

from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from errand.engine.permissions.grants import Grants, describe, draft_problem
from errand.engine.permissions.policy import decide
from errand.engine.tools.base import Access
from errand.protocol.asks import Grant, GrantDecision, GrantDraft, GrantedCall
from errand.protocol.tasks.groups import ApproveMode
from tests.engine.permissions.test_grants import GRANT

NOWHERE = Path("/nonexistent/home/dana/project")


def problem(call: GrantedCall, decision: GrantDecision = "allow", tool: str = "") -> str | None:
    return draft_problem(GrantDraft(decision=decision, call=call, scope="user", tool=tool))


def verdict(url: str, *granted: GrantedCall, denied: tuple[GrantedCall, ...] = ()) -> str:
    access = Access("read", url, address=url, operation="open")
    decision = decide(access, NOWHERE, "ask", frozenset(granted), NOWHERE.parent / "data", denied=frozenset(denied))
    return decision.verdict


HOSTS = ("example.org", "*.example.org", "example.org:8443", "example.org:443", "192.0.2.1", "[2001:db8::1]:8080")


@pytest.mark.parametrize("host", [*HOSTS, "xn--mnchen-3ya.de", "nas", "a_b.example.org"])
def test_a_host_can_be_allowed_and_denied(host: str) -> None:
    assert (problem(GrantedCall(host=host)), problem(GrantedCall(host=host), "deny")) == (None, None)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("", "is no host"),
        ("*", "is no host: a star"),
        ("*.", "is no host"),
        ("**.example.org", "is no host"),
        ("a*.example.org", "is no host"),
        ("*.*.org", "is no host"),
        ("example.org/path", "without a path"),
        ("example.org?a", "without a path"),
        ("user@example.org", "without a path or a user"),
        ("https://example.org", "is no host"),
        ("example.org:", "Write the host as example.org"),
        ("example.org:70000", "its port is no port"),
        ("example .org", "blanks"),
        ("ex\u200bample.org", "printable text"),
        ("exam\u0440le.org", "mixes scripts"),
        ("münchen.de", "Write the host as xn--mnchen-3ya.de"),
        ("*.EXAMPLE.org", "Write the host as *.example.org"),
        ("example.org.", "Write the host as example.org"),
        ("0x7f.1", "Write the host as 127.0.0.1"),
        ("[::1", "brackets are broken"),
        ("a" * 9_000, "at most 8 KB"),
    ],
)
def test_what_is_no_host_is_refused_in_a_sentence(host: str, why: str) -> None:
    for decision in ("allow", "deny"):
        assert why in (problem(GrantedCall(host=host), decision) or "")


@pytest.mark.parametrize("host", ["*.org", "*.co.uk", "*.github.io", "*.localhost", "*.0.0.1", "*.[::1]"])
def test_names_that_belong_to_many_or_are_numbers_cannot_be_allowed_by_a_star(host: str) -> None:
    assert problem(GrantedCall(host=host)) is not None


def test_a_rule_about_a_host_a_service_or_code_says_nothing_else() -> None:
    for call in (
        GrantedCall(host="example.org", service="a/b"),
        GrantedCall(host="example.org", operation="open"),
        GrantedCall(host="example.org", prefix=("ls",)),
        GrantedCall(service="a/b", folder="/w"),
        GrantedCall(operation="code", folder="/w"),
    ):
        assert problem(call, "deny") is not None, call


def test_a_service_is_a_server_and_a_tool() -> None:
    for service in ("everything/echo", "everything/*", "my-server/files/read"):
        assert problem(GrantedCall(service=service)) is None
    for service in ("", "everything", "/echo", "everything/", "*/echo", "*/*", "every thing/echo", "a/ec ho", "a/e*"):
        assert "is no tool of another program" in (problem(GrantedCall(service=service)) or ""), service


def test_code_is_allowed_for_a_tool_and_denied_for_all() -> None:
    code = GrantedCall(operation="code")
    assert (problem(code), problem(code, tool="python")) == ("A rule that allows names its tool.", None)
    assert problem(code, "deny") is None
    assert describe(code) == "any code, in the sandbox"


def test_a_denial_of_code_covers_code_outside_the_sandbox_and_on_pages() -> None:
    denied = frozenset({GrantedCall(operation="code")})
    for access in (
        Access("run", "Run", code="1", language="python", operation="code"),
        Access("run", "Run", code="1", language="python"),
        Access("run", "Evaluate", code="1", language="javascript", operation="evaluate", address="http://localhost/"),
    ):
        decision = decide(access, NOWHERE, "all", frozenset(), NOWHERE.parent / "data", denied=denied)
        assert (decision.verdict, decision.reason) == ("deny", "you denied running code")


def test_address_of_a_page_decides_about_a_script_in_it_and_no_allowance_of_code() -> None:
    def script(url: str, mode: ApproveMode = "ask") -> str:
        access = Access("run", "Evaluate", code="1", language="javascript", operation="evaluate", address=url)
        granted = frozenset({GrantedCall(operation="code"), GrantedCall(host="example.org")})
        return decide(access, NOWHERE, mode, granted, NOWHERE.parent / "data").verdict

    assert script("http://localhost:8000/") == script("https://example.org/") == "allow"
    assert script("https://evil.test/") == "ask"
    assert script("http://localhost:8000/", "plan") == "deny"


def _grant(call: GrantedCall, tool: str = "") -> Grant:
    return Grant(
        id="g", tool=tool, exact="", call=call, scope="user", scope_id="", created_at=GRANT.created_at, created_by=""
    )


def test_a_host_and_a_service_that_were_allowed_hold_for_every_tool_and_code_for_its_own() -> None:
    for call in (GrantedCall(host="example.org"), GrantedCall(service="a/b")):
        assert Grants([_grant(call)]).granted("browser", "c", "/w") == {call}
    code = GrantedCall(operation="code")
    assert Grants([_grant(code)]).granted("python", "c", "/w") == frozenset()
    assert Grants([_grant(code, "python")]).granted("python", "c", "/w") == {code}


_LABEL = st.sampled_from(("a", "b", "example", "evil", "www", "xn--a", "org", "co", "uk", "com", "localhost", "1", "0"))
_NAME = st.lists(_LABEL, min_size=1, max_size=4).map(".".join)
_HOST = st.one_of(_NAME, st.ip_addresses(v=4).map(str), st.sampled_from(("example.org", "example.co.uk")))
_BEFORE = st.sampled_from(("", "www.", "example.org.", "not", "example.org@", "user:x@", "example.org%2f", "-"))
_AFTER = st.sampled_from(("", ".", ".evil.test", ".example.org", ":8080", "#@example.org", "?a@example.org", "%00"))


def _registrable(host: str) -> str:
    try:
        return str(IPv4Address(host))
    except ValueError:
        labels = host.split(".")
        is_shared = len(labels) > 1 and labels[-2] in ("co", "com", "org") and len(labels[-1]) == 2
        return ".".join(labels[-3 if is_shared else -2 :])


@settings(max_examples=400, deadline=None)
@given(_HOST, st.booleans(), _HOST, _BEFORE, _AFTER)
@example("example.org", True, "notexample.org", "", "")
@example("0.0.1", True, "127.0.0.1", "", "")
def test_no_grant_covers_another_registrable_host(
    granted: str, with_star: bool, opened: str, before: str, after: str
) -> None:
    call = GrantedCall(host=f"*.{granted}" if with_star else granted)
    if problem(call) is not None:
        return
    url = f"https://{before}{opened}{after}/"
    if verdict(url) != "allow" and verdict(url, call) == "allow":
        host = f"{before}{opened}".rpartition("@")[2] + after.partition(":")[0].rstrip(".")
        assert _registrable(host.partition("#")[0].partition("?")[0]) == _registrable(granted), url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org.evil.test/",
        "https://notexample.org/",
        "https://example.org@evil.test/",
        "https://evil.test#@example.org/",
        "https://ex\u0430mple.org/",
        "https://example.org\\@evil.test/",
        "https://example.org%2eevil.test/",
    ],
)
def test_hosts_that_deceive_are_denied(url: str) -> None:
    assert verdict(url, GrantedCall(host="example.org"), GrantedCall(host="*.example.org")) == "deny"


def test_a_denied_host_beats_an_allowed_one() -> None:
    denied = (GrantedCall(host="sub.example.org"),)
    assert verdict("https://sub.example.org/", GrantedCall(host="*.example.org"), denied=denied) == "deny"
    assert verdict("https://b.example.org/", GrantedCall(host="*.example.org"), denied=denied) == "allow"

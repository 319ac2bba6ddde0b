"""Web addresses: what is on the list, what only looks so, and what browsers read in different ways."""

import pytest

from errand.engine.permissions.addresses import AddressRules, Malformed, judge_address, parse_address
from errand.engine.permissions.network import leads_astray

RULES = AddressRules(
    allowed=("localhost", "127.0.0.1", "docs.example.org", "*.example.com", "a.example:3000"),
    denied=("ads.example.com",),
    own_port=8765,
)


@pytest.mark.parametrize(
    ("verdict", "urls"),
    [
        (
            "allow",
            "http://localhost:3000 HTTPS://DOCS.example.org:443/a@b http://x.y.example.com/ http://a.example:3000/",
        ),
        ("ask", "http://127.1/ http://0x7f000001/ http://017700000001/ http://[::1]:3000/ http://localhost./"),
        (
            "ask",
            "http://%6cocalhost/ https://docs.example.org:/ http://a.example/ http://example.com/ http://10.0.0.5/",
        ),
        ("ask", "http://münchen.example/ http://localhost:0080/ http://xn--mnchen-3ya.example/ http://127.0.0.2/"),
        ("deny", "http://localhost#@evil/ http://localhost\\@evil/ http://u@localhost/ http://localhost:80:80/"),
        (
            "deny",
            "localhost:3000 //localhost/ http:localhost http:///localhost data:text/html,x blob:http://localhost/",
        ),
        ("deny", "http://127.1:8765/ http://0.0.0.0:8765/ http://localhost:08765/ http://[::ffff:7f00:1]:8765/"),
        ("deny", "http://x.ads.example.com/ http://169.254.1.1/ http://256.1.1.1/ http://1.2.3.4.5/ http://a..b/"),
        (
            "deny",
            "http://localhost。evil.example/ http://localhost%00.evil/ http://раypal.example/ http://[fe80::1%25e]/",
        ),
    ],
)
def test_an_address_is_judged_by_what_a_browser_would_open(verdict: str, urls: str) -> None:
    verdicts = {url: judge_address(url, RULES).verdict for url in urls.split()}
    assert verdicts == dict.fromkeys(verdicts, verdict)


def test_the_address_that_was_judged_is_the_one_to_open() -> None:
    assert parse_address("HTTP://LocalHost:8080/a?b#c").url == "http://localhost:8080/a?b#c"
    assert parse_address("http://0x7f.1/").url == "http://127.0.0.1/"
    assert parse_address("https://[::1]:443/").url == "https://[::1]/"
    for text in ("", "http://local\nhost/", " http://localhost/", "http://" + "1" * 500):
        with pytest.raises(Malformed):
            parse_address(text)


def test_redirects_forms_and_what_a_name_resolves_to_are_judged_too() -> None:
    listed = "https://docs.example.org/"
    assert judge_address(listed, RULES, redirects=["https://x.example.com/"]).verdict == "allow"
    assert judge_address(listed, RULES, redirects=["https://evil.example/"]).verdict == "deny"
    assert judge_address(listed, RULES, via="form action=https://evil.example/ method=post").verdict == "deny"
    assert judge_address(listed, RULES, resolved=["10.0.0.5"]).verdict == "deny"
    assert judge_address("http://localhost/", RULES, resolved=["203.0.113.1"]).verdict == "deny"
    assert judge_address("http://localhost/", RULES, resolved=["127.0.0.1", "::1"]).verdict == "allow"


def test_a_name_may_not_lead_inside_and_localhost_not_outside() -> None:
    assert leads_astray("intra.example", 80, ("10.1.2.3",), (), None) is not None
    assert leads_astray("intra.example", 80, ("93.184.216.34", "192.168.0.1"), (), None) is not None
    assert leads_astray("intra.example", 80, ("10.1.2.3",), ("intra.example",), None) is None
    assert leads_astray("www.example", 443, ("93.184.216.34",), (), None) is None
    assert leads_astray("localhost", 80, ("127.0.0.1", "::1"), (), None) is None
    assert leads_astray("localhost", 80, ("93.184.216.34",), (), None) is not None
    assert leads_astray("10.1.2.3", 80, ("10.1.2.3",), (), None) is None  # allowed by its number


def test_the_engines_own_port_is_closed_under_every_name() -> None:
    for host, resolved in (
        ("localhost", "127.0.0.1"),
        ("own.example", "127.0.0.1"),
        ("::1", "::1"),
        ("a.b", "0.0.0.0"),
    ):
        assert leads_astray(host, 8765, (resolved,), ("*.example", host), 8765) is not None

"""Where addresses that servers name may lead."""

import pytest

from errand.engine.permissions.network import judge_named

_PUBLIC, _LAN, _HERE = "8.8.8.8", "192.168.1.20", "127.0.0.1"


@pytest.mark.parametrize(
    ("url", "resolved", "server", "of_server", "expected_reason"),
    [
        ("https://auth.example/token", [_PUBLIC], "https://mcp.example/", [_PUBLIC], None),
        ("https://auth.example/token", [], "https://mcp.example/", [], None),  # behind a proxy
        ("https://auth.example/", [_LAN], "https://mcp.example/", [_PUBLIC], "the local network"),
        ("https://auth.example/", [_PUBLIC, _LAN], "https://mcp.example/", [_PUBLIC], "the local network"),
        ("https://auth.example/", [_LAN], "https://mcp.local/", [_LAN], None),
        ("https://auth.example/", [_HERE], "https://mcp.example/", [_PUBLIC], "this machine"),
        ("http://localhost:9/", [_HERE, "::1"], "http://localhost:8/", [_HERE], None),
        ("https://auth.example/", [_PUBLIC], "http://localhost:8/", [_HERE], None),
        ("http://localhost:9/", [_HERE], "https://mcp.example/", [_PUBLIC], "this machine"),
        ("http://auth.example/", [_PUBLIC], "https://mcp.example/", [_PUBLIC], "http://"),
        ("http://auth.local/", [_LAN], "https://mcp.local/", [_LAN], "http://"),
        ("http://auth.example/", [], "https://mcp.example/", [], "http://"),
        ("https://x.example/", ["169.254.169.254"], "https://mcp.local/", [_LAN], "link-local"),
        ("https://x.example/", ["::ffff:169.254.169.254"], "https://mcp.local/", [_LAN], "link-local"),
        ("https://169.254.169.254/", ["169.254.169.254"], "https://169.254.169.254/", ["169.254.169.254"], "secrets"),
        ("https://me@auth.example/", [_PUBLIC], "https://mcp.example/", [_PUBLIC], "before @"),
        ("ftp://auth.example/", [_PUBLIC], "https://mcp.example/", [_PUBLIC], "not a web address"),
        ("http://localhost:4711/", [_HERE], "http://localhost:8/", [_HERE], "own port"),
        ("https://x.example:4711/", [_HERE], "http://localhost:8/", [_HERE], "own port"),
    ],
)
def test_an_address_that_a_server_names_leads_only_where_the_server_is_or_to_everybody(
    url: str, resolved: list[str], server: str, of_server: list[str], expected_reason: str | None
) -> None:
    reason = judge_named(url, resolved, server, of_server, 4711)
    assert reason is None if expected_reason is None else reason is not None and expected_reason in reason

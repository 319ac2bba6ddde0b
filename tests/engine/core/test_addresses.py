"""Whether traffic to an address is encrypted."""

import pytest

from errand.engine.core.addresses import is_in_the_clear


@pytest.mark.parametrize(
    ("url", "is_clear"),
    [
        ("http://192.168.1.10:4777", True),
        ("http://box/v1", True),
        ("http://localhost.example.com", True),
        ("https://box/v1", False),
        ("http://127.0.0.1:11434/v1", False),
        ("http://localhost:11434", False),
        ("http://[::1]:1", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_only_http_to_another_machine_counts_as_unencrypted(url: str, is_clear: bool) -> None:
    assert is_in_the_clear(url) is is_clear

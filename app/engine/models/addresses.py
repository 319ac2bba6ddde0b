"""What an address says of the way to it."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_in_the_clear(url: str) -> bool:
    """Whether what is sent there, and the key, can be read on the way."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False  # no address: its use says so
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")

"""Checks on URLs: embedded secrets, loopback, plain HTTP."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from errand.engine.core.errors import InvalidParams

_NO_ADDRESS = "This is not a web address. Write one such as http://127.0.0.1:8000/v1."


def check_address(url: str) -> None:
    """Raises `InvalidParams` for no URL, and for one with a key or password: URLs are stored and shown.

    The text quotes none.
    """
    try:
        parts = urlsplit(url)
        has_place = parts.port != 0 and (parts.hostname is not None or parts.scheme not in ("http", "https"))
    except ValueError as error:
        raise InvalidParams(_NO_ADDRESS) from error
    if not has_place or not url.isprintable() or " " in url:  # urlsplit leaves out line feeds
        raise InvalidParams(_NO_ADDRESS)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidParams(
            "The address holds more than a place, such as a password or a key, and it is stored and shown. Leave out "
            "names before @ and what follows ? or #. Store a key in the settings, or give it with --api-key-env."
        )


def display_address(url: str) -> str:
    """Return the URL without user info, query and fragment."""
    scheme, mark, rest = url.partition("://")
    authority, slash, path = (rest if mark else scheme).partition("/")
    plain = authority.rpartition("@")[2] + slash + path
    return f"{scheme if mark else ''}{mark}{plain}".partition("?")[0].partition("#")[0]


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_local_address(url: str) -> bool:
    """Return True if the URL names this machine or an address of a private network."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost"


def is_in_the_clear(url: str) -> bool:
    """Return True if the traffic to this URL, including the key, is not encrypted."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False  # not a URL: using it reports the error
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")

"""How requests leave this machine: the proxies of the environment, and whose certificates are accepted.

All HTTP of the engine goes by these two functions. The environment is that of the program that started the engine.
"""

import ipaddress
import ssl
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from errand.system.regular_file import read_regular

# After the reason why a certificate was not accepted.
CERTIFICATE_HELP = "If an authority of your own has signed the certificate, name its PEM file in the setting ca_file."

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MAX_CA_FILE_BYTES = 5_000_000


class UnusableRoute(OSError):
    """The proxy or the certificates that a person named cannot be used; the text says which and what to do."""


def proxy_of(url: str) -> str | None:
    """Return the address of the proxy for a web address, None if it is asked directly, as this machine always is.

    It comes from HTTPS_PROXY or HTTP_PROXY, else ALL_PROXY, in either case of letters; NO_PROXY lists names, their
    ends, addresses and networks without one. Where the system itself has such settings (macOS, Windows), they hold if
    there are no variables. Raises `UnusableRoute` for a proxy that does not speak HTTP.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK or host.endswith(".localhost"):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]) or _is_in_network(host, proxies.get("no", "")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        kind = proxy.partition("://")[0]
        raise UnusableRoute(
            f"The environment names a {kind} proxy for {host}, and Errand speaks to HTTP proxies only. Set "
            f"{parts.scheme.upper()}_PROXY to an http:// address, or list {host} in NO_PROXY, and start Errand again."
        )
    return proxy


def tls_context(ca_file: str) -> ssl.SSLContext | Literal[True]:
    """Return what aiohttp takes as `ssl`: the system's authorities and those of `ca_file`, a PEM file; empty for none.

    SSL_CERT_FILE and SSL_CERT_DIR replace the system's. Where Python finds none at all, those of certifi are used.
    Raises `UnusableRoute` for a file that cannot be read or holds no certificate.
    """
    if not ca_file:
        return _context("", 0) if _is_without_authorities() else True
    try:
        return _context(ca_file, Path(ca_file).expanduser().stat().st_mtime_ns)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        is_no_pem = isinstance(error, ssl.SSLError | ValueError)
        reason = "it holds no certificates in PEM form" if is_no_pem else error.strerror
        raise UnusableRoute(
            f"The setting ca_file names {ca_file}, which cannot be used: {reason}. "
            "Name a PEM file, or empty the setting."
        ) from error


@lru_cache(maxsize=4)
def _context(ca_file: str, changed: int) -> ssl.SSLContext:
    """`changed` is the file's time of change, so that a new one is read."""
    context = ssl.create_default_context()
    if _is_without_authorities():
        with suppress(ImportError):
            import certifi

            context.load_verify_locations(certifi.where())
    if ca_file:
        text = read_regular(Path(ca_file).expanduser(), _MAX_CA_FILE_BYTES).decode("ascii", "ignore")
        context.load_verify_locations(cadata=text)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _is_without_authorities() -> bool:
    verify_paths = ssl.get_default_verify_paths()
    return not verify_paths.cafile and not verify_paths.capath


def _is_in_network(host: str, unproxied: str) -> bool:
    """Return True if `host` is an IP address in one of the networks of NO_PROXY, such as 10.0.0.0/8."""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        for entry in filter(lambda one: "/" in one, unproxied.split(",")):
            with suppress(ValueError):
                if address in ipaddress.ip_network(entry.strip(), strict=False):
                    return True
    return False

"""Web addresses: one strict parser for the check and for what is opened, and the policy over it.

The parser accepts only what all browsers read the same way. A host in an unusual spelling is read as a browser would
read it, and marked, so that it is never allowed without asking.
"""

import re
import socket
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from errand.engine.permissions.verdict import Finding, ask, deny, strictest

_MAX_ADDRESS_LENGTH = 8_192
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):(.*)", re.DOTALL)
_HOST = re.compile(
    r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?"
)
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]*|\d+")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_INNER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s\"'<>]+|//[^\s\"'<>]+")
_PORTS = {"http": 80, "https": 443}
DEFAULT_ALLOWED = ("localhost", "127.0.0.1")
_NAT64, _COMPATIBLE = IPv6Network("64:ff9b::/96"), IPv6Network("::/96")
_METADATA = frozenset(("metadata.google.internal", "metadata", "instance-data"))


class Malformed(Exception):
    """Not an address that every browser reads the same way; the text says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address; `url` is what to open. `host` is in canonical spelling, `is_odd` if it was not spelled so."""

    scheme: str
    host: str
    port: int
    rest: str
    is_odd: bool = False
    has_user: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.rest}"


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Entries are a host, `*.name`, or either with `:port`. `own_port` is that of the engine's server."""

    allowed: tuple[str, ...] = DEFAULT_ALLOWED
    denied: tuple[str, ...] = ()
    own_host: str = "127.0.0.1"
    own_port: int | None = None


def parse_address(text: str) -> Address:
    """Parse an http or https address; raises `Malformed`."""
    if not text or len(text) > _MAX_ADDRESS_LENGTH:
        raise Malformed("it is empty or too long")
    if any(
        letter <= " " or letter == "\x7f" or unicodedata.category(letter) in ("Cc", "Zs", "Zl", "Zp") for letter in text
    ):
        raise Malformed("it has blanks or control characters, which browsers drop")
    match = _SCHEME.fullmatch(text)
    if match is None:
        raise Malformed("it has no scheme")
    scheme, rest = match[1].lower(), match[2]
    if scheme not in _PORTS:
        raise Malformed(f"{scheme}: is not a web address")
    if "\\" in text or not rest.startswith("//") or rest.startswith("///"):
        raise Malformed("its slashes are not those of a web address")
    authority, path = _split(rest[2:])
    _, at, host_port = authority.rpartition("@")
    host, port, has_odd_port = _host_and_port(host_port, _PORTS[scheme])
    name, is_odd = _canonical(host)
    # Old parsers took `host#@other` for a user name.
    has_user = bool(at) or (path[:1] in ("?", "#") and "@" in path)
    return Address(scheme, name, port, path, is_odd or has_odd_port, has_user)


def host_of(text: str) -> str:
    """Return the host of an address as a list names it, with the port unless it is the scheme's; raises `Malformed`."""
    address = parse_address(text)
    host = f"[{address.host}]" if ":" in address.host else address.host
    return host if address.port == _PORTS[address.scheme] else f"{host}:{address.port}"


def is_by_number(text: str) -> bool:
    """Return True if an address names its host by an IP address; raises `Malformed`."""
    return _ip(parse_address(text).host) is not None


def judge_address(
    text: str, rules: AddressRules, redirects: Sequence[str] = (), via: str = "", resolved: Sequence[str] = ()
) -> Finding:
    """Judge an address, everything it redirects or posts to (`via`), and what its name resolves to."""
    findings = [_judge(text, rules)]
    inner = [*redirects, *_INNER.findall(via)]
    for other in inner:
        finding = _judge(other, rules)
        if finding.verdict != "allow":
            findings.append(deny("address", f"it leads on to an address that is not allowed: {finding.reason}"))
    if via and not _INNER.search(via):
        findings.append(ask("address", f"it is opened by {via[:100]}"))
    findings += _of_resolved(text, resolved)
    decisive = strictest(findings)
    assert decisive is not None
    return decisive


def _judge(text: str, rules: AddressRules) -> Finding:
    try:
        address = parse_address(text)
    except Malformed as problem:
        return deny("address", f"not opened: {problem}")
    host = address.host
    if _is_own(address, rules):
        return deny("address", "the engine's own port is closed")
    if any(_covers(entry, address, with_below=True) for entry in rules.denied):
        return deny("address", f"you denied {host}")
    if address.has_user:
        return deny("address", "a name before @ hides the real host")
    if _is_metadata(host):
        return deny("address", f"{host} is an address inside the network that gives out secrets")
    if any(_covers(entry, address, with_below=False) for entry in rules.allowed):
        if address.is_odd:
            return ask("address", f"an unusual spelling of {host}")
        return Finding("allow", "address", f"{host} is on the list")
    if _looks_like_listed(host, rules.allowed):
        return deny("address", f"{host} only looks like a host on the list")
    return ask("address", f"no rule opens {host}")


def is_public(address: str) -> bool:
    """Return True for an IP address that everybody can reach; those that stand for another are judged as that one."""
    ip = _inner(_ip(address))
    return ip is not None and ip.is_global and not ip.is_multicast and not _is_bound_here(ip)


def is_this_machine(address: str) -> bool:
    ip = _inner(_ip(address))
    return ip is not None and (ip.is_loopback or ip.is_unspecified or _is_bound_here(ip))


def is_link_local(address: str) -> bool:
    ip = _inner(_ip(address))
    return ip is not None and ip.is_link_local


def _is_bound_here(ip: IPv4Address | IPv6Address) -> bool:
    """Return True for an address of this machine: its services may be meant for itself, though the address is
    global.
    """
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(ip), 0))
    except OSError:
        return False
    return True


def _split(rest: str) -> tuple[str, str]:
    end = next((index for index, letter in enumerate(rest) if letter in "/?#"), len(rest))
    return rest[:end], rest[end:]


def _host_and_port(place: str, usual: int) -> tuple[str, int, bool]:
    if place.startswith("["):
        host, bracket, after = place.partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise Malformed("its brackets are broken")
        host, port = host + "]", after[1:]
        has_port = bool(after)
    else:
        host, colon, port = place.partition(":")
        has_port = bool(colon)
    if has_port and not port:
        return host, usual, True
    if not port:
        return host, usual, False
    if not (port.isascii() and port.isdecimal()) or len(port) > 8 or not 0 < int(port) < 65_536:
        raise Malformed("its port is no port")
    return host, int(port), port.startswith("0")


def _canonical(host: str) -> tuple[str, bool]:
    """Return the host as a browser reads it, and whether it was spelled otherwise; raises `Malformed`."""
    if host.startswith("["):
        try:
            address = IPv6Address(host[1:-1])
        except ValueError as error:
            raise Malformed("its IPv6 address is broken") from error
        if address.scope_id is not None:
            raise Malformed("its IPv6 address names an interface")
        mapped = address.ipv4_mapped
        return (str(mapped), True) if mapped else (str(address), str(address) != host[1:-1].lower())
    name = _PERCENT.sub(lambda found: chr(int(found[1], 16)), host)
    if not name.isascii():
        name = _from_unicode(name)
    if not _HOST.fullmatch(name) or len(name) > 254:
        raise Malformed("its host has characters that no host has")
    plain = name.lower().removesuffix(".")
    last = plain.rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        plain = _ipv4(plain)
    elif last.startswith("xn--") or ".xn--" in f".{plain}":
        _check_punycode(plain)
    return plain, plain != host.lower()


def _from_unicode(name: str) -> str:
    """Return the ASCII form of an international name; mixed scripts in one label are taken for a deception."""
    normalized = unicodedata.normalize("NFKC", name)
    normalized = "".join(letter for letter in normalized if unicodedata.category(letter) not in ("Cf", "Mn"))
    for label in re.split(r"[.\u3002\uff0e\uff61]", normalized):
        scripts = {unicodedata.name(letter, "?").partition(" ")[0] for letter in label if letter.isalpha()}
        if len(scripts) > 1 and not scripts <= {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "LATIN"}:
            raise Malformed("its host mixes scripts that look alike")
    if normalized.isascii():
        return normalized
    try:
        return normalized.encode("idna").decode()
    except UnicodeError as error:
        raise Malformed("its host is no valid international name") from error


def _check_punycode(name: str) -> None:
    try:
        decoded = name.encode().decode("idna")
    except UnicodeError as error:
        raise Malformed("its host is no valid international name") from error
    if not decoded.isascii():
        _from_unicode(decoded)


def _ipv4(name: str) -> str:
    """Reads a number or numbers as browsers do: decimal, octal, hexadecimal, up to four parts."""
    parts = name.split(".")
    numbers: list[int] = []
    for part in parts:
        if not _NUMBER.fullmatch(part) or len(part) > 40:
            raise Malformed("its IP address is broken")
        try:
            numbers.append(int(part, 16) if part[:2] == "0x" and part != "0x" else _decimal_or_octal(part))
        except ValueError as error:
            raise Malformed("its IP address is broken") from error
    rest_bits = 8 * (5 - len(numbers))
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 1 << rest_bits:
        raise Malformed("its IP address is broken")
    value = numbers[-1] + sum(number << 8 * (3 - index) for index, number in enumerate(numbers[:-1]))
    return str(IPv4Address(value))


def _decimal_or_octal(part: str) -> int:
    if part == "0x":
        return 0
    return int(part, 8) if len(part) > 1 and part.startswith("0") else int(part)


def _is_own(address: Address, rules: AddressRules) -> bool:
    if address.port != rules.own_port:
        return False
    host = address.host
    if host == rules.own_host or host == "localhost" or host.endswith(".localhost"):
        return True
    ip = _ip(host)
    return ip is not None and (ip.is_loopback or ip.is_unspecified)


def _covers(entry: str, address: Address, *, with_below: bool) -> bool:
    """Return True if an entry of a list covers the host; `with_below` includes all names below it."""
    text = entry.strip().lower()
    if text.startswith("["):
        name, _, after = text[1:].partition("]")
        colon, port = after[:1], after[1:]
    else:
        name, colon, port = text.partition(":")
    name = name.removesuffix(".")
    if not name or name == "*" or (colon and port != str(address.port)):
        return False
    if name.startswith("*."):
        base = name[2:]
        is_name = "*" not in base and _ip(address.host) is None
        return is_name and ("." in base or with_below) and address.host.endswith(f".{base}")
    return "*" not in name and (address.host == name or (with_below and address.host.endswith(f".{name}")))


def _looks_like_listed(host: str, entries: Iterable[str]) -> bool:
    """Return True for `localhost.evil.example`, and for `notexample.org` where `*.example.org` is listed."""
    for entry in entries:
        name = entry.strip().lower().partition(":")[0]
        base = name.removeprefix("*.").removesuffix(".")
        if base and base != "*" and (host.startswith(f"{base}.") or (name.startswith("*.") and host.endswith(base))):
            return host != base and not host.endswith(f".{base}")
    return False


def _is_metadata(host: str) -> bool:
    ip = _ip(host)
    if ip is None:
        return host in _METADATA
    return ip.is_link_local or str(ip) == "fd00:ec2::254"


def _of_resolved(text: str, resolved: Sequence[str]) -> list[Finding]:
    """Judge a resolved name: a public one must not lead into the local network, and `localhost` not out of this
    machine.
    """
    try:
        host = parse_address(text).host
    except Malformed:
        return []
    is_local = host == "localhost" or host.endswith(".localhost")
    findings: list[Finding] = []
    for ip_text in resolved:
        ip = _inner(_ip(ip_text))
        if ip is None or (is_local and not ip.is_loopback):
            findings.append(deny("address", f"{host} leads to {ip_text}, which is not this machine"))
        elif not is_local and _ip(host) is None and not ip.is_global:
            findings.append(deny("address", f"{host} leads to {ip_text}, inside the local network"))
    return findings


def _inner(ip: IPv4Address | IPv6Address | None) -> IPv4Address | IPv6Address | None:
    """Return the IPv4 address in one of IPv6 that stands for it: mapped, compatible, NAT64, 6to4, Teredo."""
    if not isinstance(ip, IPv6Address):
        return ip
    if ip in _NAT64 or (ip in _COMPATIBLE and int(ip) > 1):
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    teredo = ip.teredo[1] if ip.teredo else None
    return ip.ipv4_mapped or ip.sixtofour or teredo or (IPv6Address("fe80::") if ip.is_site_local else ip)


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None

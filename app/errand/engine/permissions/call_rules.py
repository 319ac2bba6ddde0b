"""Rules about calls that are neither command nor file: which can be, and which calls they cover."""

import re

import msgspec

from errand.engine.permissions.addresses import Malformed, host_of, parse_address
from errand.engine.tools.base import Access
from errand.protocol.asks import GrantedCall

CODE = "code"
ANY_TOOL = "*"

_SERVER = re.compile(r"[^\s*/]{1,200}")
_TOOL = re.compile(r"[^\s*]{1,200}")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
# Below these names, in countries with names of two letters, everybody may register one.
_SECOND_LEVEL = frozenset(
    ("ac", "co", "com", "edu", "go", "gob", "gov", "gv", "ltd", "me", "mil", "ne", "net", "nhs", "nom", "or", "org")
)
# Below these names people publish pages of their own.
_SHARED = frozenset(
    {"github.io", "gitlab.io", "githubusercontent.com", "pages.dev", "workers.dev", "web.app", "firebaseapp.com"}
    | {"vercel.app", "netlify.app", "herokuapp.com", "onrender.com", "fly.dev", "deno.dev", "glitch.me", "repl.co"}
    | {"blogspot.com", "wordpress.com", "azurewebsites.net", "cloudfront.net", "amazonaws.com", "s3.amazonaws.com"}
    | {"appspot.com", "run.app", "ngrok.io", "ngrok.app", "ngrok-free.app", "trycloudflare.com", "readthedocs.io"}
    | {"surge.sh", "neocities.org", "r2.dev", "hf.space", "streamlit.app", "replit.app", "replit.dev"}
)


def is_about_calls(call: GrantedCall) -> bool:
    """Return True for a rule about a host, a tool of another program, or code."""
    return call.host is not None or call.service is not None or call.operation == CODE


def holds_for_every_tool(call: GrantedCall) -> bool:
    """Return True if an allowance needs no tool: a host and a service mean the same whichever tool opens or calls
    them.
    """
    return call.host is not None or call.service is not None


def call_problem(call: GrantedCall, *, allows: bool) -> str | None:
    """Why a rule about a call cannot be, as a sentence; None if it can."""
    if call.host is not None:
        return _host_problem(call, allows=allows)
    if call.service is not None:
        return _service_problem(call.service)
    others = GrantedCall(operation=CODE, content=call.content)
    return None if call == others else "A rule about code says nothing else about its calls."


def allows_call(call: GrantedCall, access: Access) -> bool:
    """Return True if a rule that allows covers a call of code or of another program's tool; hosts are read with
    addresses.
    """
    if access.service and call.service is not None:
        server = access.service.partition("/")[0]
        is_named = call.service in (access.service, f"{server}/{ANY_TOOL}")
        return is_named and call.content in (None, access.content) and _is_as_then(call, access)
    is_code = bool(access.code) and access.operation == call.operation == CODE
    return is_code and call in (GrantedCall(operation=CODE), GrantedCall(operation=CODE, content=access.content))


def _is_as_then(call: GrantedCall, access: Access) -> bool:
    """Return True if the program describes the tool as when it was allowed. Recorded calls have no basis."""
    return not call.fingerprints or not access.basis or access.basis in call.fingerprints


def bound_call(call: GrantedCall, access: Access) -> GrantedCall:
    """Return the allowance with what the program says now about the tools that it covers, if it has none of that
    yet.
    """
    if call.service is None or call.fingerprints:
        return call
    is_any = call.service.endswith(f"/{ANY_TOOL}")
    present = access.service_tools if is_any else (access.basis,) if access.basis else ()
    return msgspec.structs.replace(call, fingerprints=present)


def rebound_call(call: GrantedCall, service: str, basis: str) -> GrantedCall:
    """Return the allowance with one more tool, whose change a person has accepted; as it is if it does not name that
    tool.
    """
    server, _, tool = service.partition("/")
    if not call.fingerprints or call.service not in (service, f"{server}/{ANY_TOOL}") or basis in call.fingerprints:
        return call
    is_among = any(fingerprint.rpartition(":")[0] == tool for fingerprint in call.fingerprints)
    return msgspec.structs.replace(call, fingerprints=(*call.fingerprints, basis)) if is_among else call


def denies_call(call: GrantedCall, access: Access) -> bool:
    """Like `allows_call`; a denial of code also covers code outside the sandbox and on a page."""
    call = msgspec.structs.replace(call, fingerprints=())
    if access.code and call.operation == CODE and call.service is None:
        return call.content in (None, access.content)
    return allows_call(call, access)


def _host_problem(call: GrantedCall, *, allows: bool) -> str | None:
    host = call.host or ""
    if call != GrantedCall(host=host):
        return "A rule about a host says nothing else about its calls."
    name = host.removeprefix("*.")
    if "*" in name:
        return f"“{host}” is no host: a star stands for names below one, as in *.example.org, and for nothing else."
    try:
        address, plain = parse_address(f"https://{name}/"), host_of(f"https://{name}/")
    except Malformed as problem:
        return f"“{host}” is no host: {problem}."
    if address.rest != "/" or address.has_user or not name:
        return f"“{host}” is no host: give the name alone, as in example.org, without a path or a user."
    if name not in (plain, f"{plain}:443"):
        return f"Write the host as {host.removesuffix(name)}{plain}: that is how it is compared."
    return _star_problem(host, address.host) if allows and host.startswith("*.") else None


def _star_problem(given: str, base: str) -> str | None:
    labels = base.split(".")
    if ":" in base or _NUMBER.fullmatch(labels[-1]):
        return f"“{given}” is no host: there are no names below an IP address."
    is_shared = base in _SHARED or (len(labels) == 2 and labels[0] in _SECOND_LEVEL and len(labels[1]) == 2)
    if len(labels) == 1 or is_shared:
        return f"Names below {base} belong to many people. Allow them one by one."
    return None


def _service_problem(service: str) -> str | None:
    server, slash, tool = service.partition("/")
    if not slash or not _SERVER.fullmatch(server) or not (tool == ANY_TOOL or _TOOL.fullmatch(tool)):
        return f"“{service}” is no tool of another program: give server/tool, or server/* for each tool of the server."
    return None

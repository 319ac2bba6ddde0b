"""The network of commands: which commands need it, and where their connections may lead."""

import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from errand.engine.permissions.addresses import (
    AddressRules,
    Malformed,
    is_link_local,
    is_public,
    is_this_machine,
    judge_address,
    parse_address,
)
from errand.engine.permissions.shell.scanner import program_name, scan
from errand.protocol.asks import GrantedCall
from errand.protocol.engine import Endpoint
from errand.system.paths import Paths

# They work through an HTTP proxy.
_PROGRAMS = frozenset(
    {
        "curl",
        "wget",
        "pip",
        "pip3",
        "pipx",
        "uv",
        "uvx",
        "poetry",
        "pdm",
        "conda",
        "mamba",
        "npm",
        "npx",
        "pnpm",
        "pnpx",
    }
    | {"yarn", "bun", "bunx", "deno", "corepack", "cargo", "rustup", "go", "gem", "bundle", "composer", "mvn", "gradle"}
    | {"dotnet", "nuget", "apt", "apt-get", "brew", "gh", "glab", "helm", "terraform", "aws", "gcloud", "az", "http"}
    | {"https", "xh", "aria2c", "yt-dlp", "huggingface-cli", "hf"}
)
# Commands of git, some of them only with one of these words.
_OF_GIT: dict[str, frozenset[str]] = {
    **dict.fromkeys(("clone", "fetch", "pull", "push", "ls-remote"), frozenset[str]()),
    "submodule": frozenset(("add", "update")),
    "remote": frozenset(("update", "show", "prune")),
    "lfs": frozenset(("clone", "fetch", "pull", "push")),
}
# They fetch the addresses that they name.
_FETCHERS = frozenset(("curl", "wget", "http", "https", "xh"))
_OWN_ADDRESS = re.compile(r"(?i)(?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?:[:/?].*)?")
# What they do with what is there: of no use without the network only if something is missing.
_LOCAL: dict[str, frozenset[str]] = {
    "npm": frozenset(("test", "t", "run", "run-script", "start", "ls", "list", "version", "pkg", "init")),
    "pnpm": frozenset(("test", "t", "run", "start", "ls", "list", "build", "lint")),
    "yarn": frozenset(("test", "run", "start", "build", "lint", "list")),
    "bun": frozenset(("test", "run")),
    "deno": frozenset(("test", "run", "task", "fmt", "lint", "check", "bench", "doc")),
    "cargo": frozenset(
        ("test", "t", "build", "b", "check", "c", "clippy", "fmt", "run", "r", "bench", "doc", "tree", "clean")
    ),
    "go": frozenset(
        ("test", "build", "vet", "fmt", "run", "list", "doc", "env", "tool", "generate", "clean", "version")
    ),
    "uv": frozenset(("run", "tree", "version")),
    "mvn": frozenset(("test", "compile", "package", "verify", "clean", "exec:java")),
    "gradle": frozenset(("test", "build", "check", "assemble", "clean", "run", "tasks")),
    "poetry": frozenset(("run", "show", "version", "check")),
    "pdm": frozenset(("run", "list")),
    "pip": frozenset(("list", "show", "freeze", "check")),
    "pip3": frozenset(("list", "show", "freeze", "check")),
    "bundle": frozenset(("exec", "list", "show")),
    "composer": frozenset(("run-script", "run", "test", "show")),
    "dotnet": frozenset(("test", "build", "run", "format")),
    "gem": frozenset(("list", "build")),
}
_RUNS_INSTALLED, _INSTALLED = frozenset(("npx", "pnpx", "bunx")), "node_modules/.bin"
_WRAPPERS = frozenset(["sudo", "env", "time", "timeout", "nice", "nohup", "command", "exec", "stdbuf"])
_CODE_FLAG, _MODULE_FLAG = re.compile(r"-[a-z]*c"), re.compile(r"-[A-Za-z]*m")
_SHELLS, _MAX_DEPTH = frozenset(("bash", "sh", "dash", "zsh")), 3
_PYTHON = re.compile(r"python[\d.]*")


def needs_network(line: str, *, fetches: bool = False, folder: str = "", depth: int = 0) -> bool:
    """Return True if the line runs a program that is of little use without the network.

    `fetches`: only if it fetches or sends something for certain; `npm test` and `cargo build` work with what is there,
    `npx` with the programs of `folder`.
    """
    return depth < _MAX_DEPTH and any(
        _needs_network(command.argv, fetches, folder, depth) for command in scan(line, {})
    )


def own_port(paths: Paths) -> int | None:
    """Return the port of the running engine, as it announced it."""
    try:
        return msgspec.json.decode(paths.endpoint.read_bytes(), type=Endpoint).port
    except (OSError, msgspec.DecodeError):
        return None


def judge_connection(
    host: str,
    port: int,
    resolved: Sequence[str],
    listed: Sequence[str],
    own_port: int | None,
    denied: Iterable[GrantedCall] = (),
) -> str | None:
    """Return the reason why a command may not connect to a host at these addresses, None if it may.

    Every public host is open that no rule in `denied` names. The local network and this machine are closed, except for
    the hosts in `listed`.
    """
    literal = f"[{host}]" if ":" in host else host
    url = f"https://{literal}:{port}/"
    refused = tuple(call.host for call in denied if call.host is not None)
    finding = judge_address(url, AddressRules((*listed, literal), refused, own_port=own_port))
    if finding.verdict != "allow":
        return finding.reason
    if port == own_port and any(is_this_machine(ip) for ip in resolved):
        return "the engine's own port is closed to commands"
    if listed and judge_address(url, AddressRules(tuple(listed))).verdict == "allow":
        return None
    inside = next((ip for ip in resolved if not is_public(ip)), None)
    return f"it leads to {inside}, inside the local network or this machine" if inside is not None else None


def leads_astray(
    host: str, port: int, resolved: Sequence[str], listed: Sequence[str], own_port: int | None
) -> str | None:
    """Return the reason why a tool may not connect to an allowed host at these addresses, None if it may.

    A name must not lead into the local network unless it is in `listed`, and `localhost` not out of this machine.
    """
    if port == own_port and any(is_this_machine(ip) for ip in resolved):
        return "the engine's own port is closed to tools"
    literal = f"[{host}]" if ":" in host else host
    rules = AddressRules((literal,), own_port=own_port)
    if listed and judge_address(f"https://{literal}:{port}/", AddressRules(tuple(listed))).verdict == "allow":
        return None
    finding = judge_address(f"https://{literal}:{port}/", rules, resolved=resolved)
    if finding.verdict == "deny":
        return finding.reason
    if host in resolved or host == "localhost" or host.endswith(".localhost"):
        return None
    inside = next((ip for ip in resolved if not is_public(ip)), None)
    return f"it leads to {inside}, inside the local network or this machine" if inside is not None else None


def judge_named(
    url: str, resolved: Sequence[str], server: str, of_server: Sequence[str], own_port: int | None
) -> str | None:
    """Return the reason why an address that a server names (with its IP addresses) may not be opened, None if it may.

    Only https is open, and http on this machine. It may lead into the local network or to this machine only if the
    server itself is there.
    """
    try:
        address, home = parse_address(url), parse_address(server)
    except Malformed as problem:
        return str(problem)
    literal = f"[{address.host}]" if ":" in address.host else address.host
    finding = judge_address(url, AddressRules((literal,), own_port=own_port))
    if finding.verdict != "allow":
        return finding.reason
    networks = {_place_of(ip) for ip in resolved}
    if address.port == own_port and "this machine" in networks:
        return "the engine's own port is closed"
    if address.scheme == "http" and networks != {"this machine"}:
        return "it begins with http://, so what is sent there could be read on the way"
    if "link-local" in networks and address.host != home.host:
        return "it leads to a link-local address"
    inside = next(iter(networks - {"public"} - {_place_of(ip) for ip in of_server}), None)
    return f"it leads to {inside}, where the server itself is not" if inside is not None else None


def _place_of(address: str) -> str:
    if is_this_machine(address):
        return "this machine"
    if is_link_local(address):
        return "link-local"
    return "public" if is_public(address) else "the local network"


def _needs_network(words: Sequence[str], fetches: bool, folder: str, depth: int) -> bool:
    rest = list(words)
    # Options, durations and variables come before the command.
    while rest and (program_name(rest[0]) in _WRAPPERS or rest[0][:1] in "-0123456789" or "=" in rest[0]):
        rest.pop(0)
    if not rest:
        return False
    program = program_name(rest[0])
    if program == "git":
        needing = _OF_GIT.get(_command_of(rest[1:]))
        return needing is not None and (not needing or not needing.isdisjoint(rest))
    if program == "eval":
        return needs_network(" ".join(rest[1:]), fetches=fetches, folder=folder, depth=depth + 1)
    if program in _SHELLS:
        code = next((text for flag, text in pairwise(rest) if _CODE_FLAG.fullmatch(flag)), "")
        return needs_network(code, fetches=fetches, folder=folder, depth=depth + 1)
    if program in _FETCHERS and _names_only_this_machine(rest[1:]):
        return False
    if program == "xargs":
        return any(
            _needs_network(rest[at:], fetches, folder, depth) for at in range(1, len(rest)) if rest[at] in _PROGRAMS
        )
    if _PYTHON.fullmatch(program):
        at = next((at for at, word in enumerate(rest) if _MODULE_FLAG.fullmatch(word)), len(rest))
        if rest[at + 1 : at + 2] != ["pip"]:
            return False
        program, rest = "pip", rest[at + 1 :]
    name = _command_of(rest[1:])
    is_installed = program in _RUNS_INSTALLED and name and os.path.exists(os.path.join(folder, _INSTALLED, name))
    is_local = fetches and (name in _LOCAL.get(program, ()) or is_installed)
    return program in _PROGRAMS and not is_local


def _names_only_this_machine(words: list[str]) -> bool:
    addresses = [word for word in words if "://" in word or _OWN_ADDRESS.fullmatch(word)]
    return bool(addresses) and all(map(_OWN_ADDRESS.fullmatch, addresses))


def _command_of(words: list[str]) -> str:
    """Return the first word that is no flag, like `fetch` in `git -C folder fetch`."""
    rest = iter(words)
    for word in rest:
        if word in ("-C", "-c"):
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""

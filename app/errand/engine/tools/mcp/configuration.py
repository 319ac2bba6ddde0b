"""What servers there are: from the settings, and from the files of a workspace, in the form that other programs use."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.core.setting_values import McpServer
from errand.protocol.base import JsonObject, JsonValue
from errand.system.environment import is_secret
from errand.system.regular_file import read_regular
from errand.text.visible_text import argument_text, command_text, escape_hidden

# In the order in which they are read; the first that names a server wins.
WORKSPACE_FILES = (".errand/mcp.json", ".mcp.json")
_MAX_FILE_BYTES = 1_000_000
_MAX_SERVERS = 50
_MAX_WORDS = 200
_MAX_WORD_LENGTH = 8_192
_MAX_TIMEOUT_S = 3_600.0
DEFAULT_TIMEOUT_S = 60.0
# Names go into the names of tools, where `__` separates server and tool.
_NAME = re.compile(r"[A-Za-z0-9](?:_?[A-Za-z0-9-]){0,31}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,200})(?::-([^}]{0,2000}))?\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")

Pairs: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server: a `command` that is started, or a `url`. `workspace` is empty for a server of the settings.

    The words of `command`, `url`, and values of `environment` and `headers` may refer to variables as `${NAME}` or
    `${NAME:-default}`. `problem` says why it cannot be used.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    environment: Pairs = ()
    headers: Pairs = ()
    sandbox: bool = False
    enabled: bool = True
    timeout_s: float = DEFAULT_TIMEOUT_S
    workspace: str = ""
    file: str = ""
    problem: str = ""
    client_id: str = ""
    client_secret: str = ""
    callback_port: int = 0
    client_issuer: str = ""

    @property
    def fingerprint(self) -> str:
        """Covers what is started or opened; what a person trusted is bound to it."""
        login = (self.client_id, self.client_secret, self.callback_port) if self.client_id else ()
        identity = (self.name, self.command, self.url, self.environment, self.headers, self.sandbox, self.workspace)
        hashed = (*identity, *login)
        return hashlib.blake2b(msgspec.json.encode(hashed), digest_size=16).hexdigest()

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that it needs a value of."""
        texts = (
            *self.command,
            self.url,
            self.client_secret,
            *(value for _, value in (*self.environment, *self.headers)),
        )
        return tuple(dict.fromkeys(name for text in texts for name in variables_in(text)))

    @property
    def id(self) -> str:
        """The name of the server in grants: what is allowed for a server of one workspace holds for no other."""
        return f"{self.name}.{self.fingerprint[:8]}" if self.workspace else self.name


def check_name(name: str) -> None:
    """Raises `InvalidParams` for a name that cannot be part of a tool's name."""
    if not _NAME.fullmatch(name) or name.endswith("_"):
        raise InvalidParams(
            f"name: {argument_text(name[:80])}; a server's name has 1 to 32 letters, digits, - and single _, "
            "and begins with a letter or digit."
        )


def check_server(server: McpServer) -> None:
    """Raises `InvalidParams` for a server that cannot be started or opened, or that holds a key in the clear."""
    check_name(server.name)
    if bool(server.command) == bool(server.url):
        raise InvalidParams("A server has either a command or a url.")
    texts = (*server.command, server.url, *server.env, *server.env.values(), *server.headers, *server.headers.values())
    if len(texts) > _MAX_WORDS or any(len(text) > _MAX_WORD_LENGTH or "\0" in text for text in texts):
        raise InvalidParams(f"A server has at most {_MAX_WORDS} words of {_MAX_WORD_LENGTH:,} characters, without NUL.")
    if server.url and not re.fullmatch(r"https?://[^\s/@?#]+[^\s@#]*", server.url):
        raise InvalidParams("url: begin it with http:// or https://, and leave out names before @ and what follows #.")
    if server.url and server.env:
        raise InvalidParams("env: a server that is opened by its url has headers, not variables.")
    if server.command and server.headers:
        raise InvalidParams("headers: a server that is started has variables (env), not headers.")
    if wrong := next((name for name in server.env if not _VARIABLE_NAME.fullmatch(name)), None):
        raise InvalidParams(f"env: {argument_text(wrong[:80])} is not the name of a variable.")
    if wrong := next((name for name in server.headers if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", name)), None):
        raise InvalidParams(f"headers: {argument_text(wrong[:80])} is not the name of a header.")
    _check_client(server)
    if not 0 < server.timeout_s <= _MAX_TIMEOUT_S:
        raise InvalidParams(f"timeout_s: {server.timeout_s:g}; a number of seconds up to {_MAX_TIMEOUT_S:g}.")
    for name, value in (*server.env.items(), *server.headers.items()):
        if is_plain_secret(name, value):
            raise InvalidParams(
                f"{name}: this value looks like a key, and settings are a file that anyone reads. Write ${{{name}}} "
                "and store the key."
            )


def _check_client(server: McpServer) -> None:
    """Raises `InvalidParams` for a registered client that cannot be one, or whose secret stands in the clear."""
    client, secret = server.client_id, server.client_secret
    if not server.url and (client or secret or server.callback_port):
        raise InvalidParams("client_id: only a server that is opened by its url can need a sign-in.")
    if len(server.client_issuer) > _MAX_WORD_LENGTH or not server.client_issuer.isprintable():
        raise InvalidParams("client_issuer: the address of an authorization server.")
    if len(client) > _MAX_WORD_LENGTH or not client.isascii() or not client.isprintable() or " " in client:
        raise InvalidParams("client_id: it has blanks or characters that no client id has; copy it again.")
    if secret and not (client and _VARIABLE.fullmatch(secret)):
        raise InvalidParams("client_secret: write ${NAME}, store the key, and say the client_id it belongs to.")
    if not 0 <= server.callback_port < 65_536 or 0 < server.callback_port < 1_024:
        raise InvalidParams("callback_port: a port from 1024 to 65535, or 0 for any.")


def is_plain_secret(name: str, value: str) -> bool:
    """Return True for a key that stands in the clear: it is no reference to a variable."""
    rest = _VARIABLE.sub("", value).removeprefix("Bearer").removeprefix("Basic").strip()
    return bool(rest) and is_secret(name, value)


def of_settings(server: McpServer) -> ServerSpec:
    return ServerSpec(
        server.name,
        server.command,
        server.url,
        tuple(sorted(server.env.items())),
        tuple(sorted(server.headers.items())),
        server.sandbox,
        server.enabled,
        server.timeout_s,
        client_id=server.client_id,
        client_secret=server.client_secret,
        callback_port=server.callback_port,
        client_issuer=server.client_issuer,
    )


def read_workspace(workspace: Path, taken: frozenset[str]) -> tuple[ServerSpec, ...]:
    """Return the servers that the files of a workspace name, except those whose names are `taken`. Reads the disk."""
    specs: dict[str, ServerSpec] = {}
    for name in WORKSPACE_FILES:
        path = workspace / name
        try:
            data = read_regular(path, _MAX_FILE_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            specs.setdefault(name, _unusable(name, workspace, name, f"{path} cannot be read: {error.strerror}."))
            continue
        for spec in _parse(data, workspace, name):
            if spec.name not in taken:
                specs.setdefault(spec.name, spec)
    return tuple(specs.values())


def _parse(data: bytes, workspace: Path, file: str) -> list[ServerSpec]:
    try:
        content = msgspec.json.decode(data, type=JsonObject)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return [_unusable(file, workspace, file, f"{workspace / file} is no JSON object: {error}.")]
    servers = content.get("mcpServers", content.get("servers"))
    if not isinstance(servers, dict):
        return [_unusable(file, workspace, file, f"{workspace / file} has no object mcpServers.")]
    return [_spec(name, value, workspace, file) for name, value in list(servers.items())[:_MAX_SERVERS]]


def _spec(name: str, value: JsonValue, workspace: Path, file: str) -> ServerSpec:
    try:
        server = parse_server(name, value)
        check_server(server)
    except (InvalidParams, msgspec.ValidationError) as error:
        return _unusable(name, workspace, file, f"{workspace / file}: {error}")
    entry = cast(JsonObject, value)
    return ServerSpec(
        server.name,
        server.command,
        server.url,
        tuple(sorted(server.env.items())),
        tuple(sorted(server.headers.items())),
        sandbox=entry.get("sandbox") is not False and bool(server.command),
        enabled=server.enabled,
        timeout_s=server.timeout_s,
        workspace=str(workspace),
        file=file,
        client_id=server.client_id,
        callback_port=server.callback_port,
    )


def parse_server(name: str, value: JsonValue) -> McpServer:
    """Return a server in the usual form: `command` (a program), `args`, `env`, or `url` and `headers`.

    Unknown fields are passed over, since each program adds its own. Raises `InvalidParams`.
    """
    if not isinstance(value, dict):
        raise InvalidParams(f"{name[:80]}: it is no object.")
    command, arguments = value.get("command"), value.get("args", [])
    command_words = [command] if isinstance(command, str) and command else command if isinstance(command, list) else []
    login = value.get("oauth")
    oauth = login if isinstance(login, dict) else {}
    raw: JsonObject = {
        "name": name,
        "command": [*command_words, *(arguments if isinstance(arguments, list) else [])],
        "url": value.get("url", value.get("serverUrl", "")),
        "env": value.get("env") or {},
        "headers": value.get("headers") or {},
        "enabled": value.get("enabled", value.get("disabled") is not True),
        "timeout_s": value.get("timeout_s", DEFAULT_TIMEOUT_S),
        "client_id": oauth.get("clientId") or "",
        "callback_port": oauth.get("callbackPort") or 0,
    }
    try:
        return msgspec.convert(raw, McpServer)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"{name[:80]}: {error}.") from error


def _unusable(name: str, workspace: Path, file: str, problem: str) -> ServerSpec:
    return ServerSpec(name[:80], workspace=str(workspace), file=file, problem=problem[:1_000])


def variables_in(text: str) -> tuple[str, ...]:
    """Return the names of the variables that a text refers to and that have no default."""
    return tuple(variable[1] for variable in _VARIABLE.finditer(text) if variable[2] is None)


def started_text(spec: ServerSpec) -> str:
    """Return what the server starts or opens, in full, for the person who decides about it: one line for each part."""
    lines = [f"Command: {command_text(spec.command)}"] if spec.command else []
    lines += [f"Address: {escape_hidden(spec.url)}"] if spec.url else []
    lines += [f"Variable: {escape_hidden(name)}={argument_text(value)}" for name, value in spec.environment]
    lines += [f"Header: {escape_hidden(name)}: {argument_text(value)}" for name, value in spec.headers]
    lines += [f"Signs in as the program: {argument_text(spec.client_id)}"] if spec.client_id else []
    lines += [f"Folder: {argument_text(spec.workspace)}"] if spec.workspace else []
    lines += [f"Runs {bounds_text(spec)}"] if spec.command else []
    return "\n".join(lines)


def bounds_text(spec: ServerSpec) -> str:
    return "in the sandbox, with the network" if spec.sandbox else "outside the sandbox: it can do all that you can"


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its references replaced; all variables without a default must be among the values."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[2] or ""), text)

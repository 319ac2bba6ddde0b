"""A database on a PostgreSQL server, which has its own tools for backup and repair: says so, and whether it answers."""

import socket
from contextlib import closing
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

import msgspec

from errand.cli.arguments import UsageError
from errand.system.paths import Paths
from errand.system.regular_file import read_regular
from errand.text.printable import reason
from errand.text.translation import tr
from errand.text.url_secrets import MASK, without_url_secrets

_MAX_SETTINGS_BYTES = 1024 * 1024
_PORT = 5432
_WAIT_S = 3.0


class _Settings(msgspec.Struct):
    database_url: str = ""


def server_url(paths: Paths) -> str:
    """Return the server of the setting `database_url`, for PostgreSQL's own programs and without passwords.

    "" if the database is a file, or if the settings cannot be read, which the engine reports.
    """
    try:
        url = msgspec.json.decode(read_regular(paths.settings, _MAX_SETTINGS_BYTES), type=_Settings).database_url
        parts = urlsplit(without_url_secrets(url))
    except (OSError, msgspec.DecodeError, ValueError):
        return ""
    if not parts.scheme.startswith("postgresql"):
        return ""
    name, at, host = parts.netloc.rpartition("@")
    query = "&".join(part for part in parts.query.split("&") if part.partition("=")[2] != MASK)
    return urlunsplit(parts._replace(scheme="postgresql", netloc=f"{name.partition(':')[0]}{at}{host}", query=query))


def refuse_server(paths: Paths, instead: str) -> None:
    """Raises `UsageError` if the database is on a server; `instead` names the program that does it there."""
    if url := server_url(paths):
        raise UsageError(
            f"The conversations are on a PostgreSQL server, so this is done by its own programs: {instead} {url}. "
            f"Pictures, settings and long output are files in {paths.home}."
        )


def check_server(url: str) -> tuple[Literal["good", "bad"], str, str, str]:
    """Return the state, the subject `database`, the finding, and the advice."""
    host, port = _address(url)
    try:
        if host.startswith("/"):
            with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
                connection.settimeout(_WAIT_S)
                connection.connect(f"{host}/.s.PGSQL.{port}")
        else:
            socket.create_connection((host, port), _WAIT_S).close()
    except (OSError, OverflowError) as error:
        advice = tr("Start the server, or check the network and the setting database_url.")
        return "bad", "database", tr("{url} does not respond: {error}").format(url=url, error=reason(error)), advice
    return "good", "database", tr("{url} responds").format(url=url), ""


def _address(url: str) -> tuple[str, int]:
    """Return the host, or the folder of a socket, and the port."""
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    host = (options.get("host") or [unquote(parts.hostname or "localhost")])[0]
    try:
        port = int((options.get("port") or [str(parts.port or _PORT)])[0])
    except ValueError:
        port = _PORT
    return host, port

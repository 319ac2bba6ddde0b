"""What started this process, its folder, and its variables: secrets, and those for the engine and for commands."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from errand.protocol.engine import is_offered
from errand.text.redaction import KEY_FORMAT

# Where programs are looked for that run without asking: folders that only an administrator changes.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Limits in characters for a single variable, and for all of them. Linux itself accepts 128 KB for one.
_MAX_VARIABLE_LENGTH = 32_768
_MAX_TOTAL_LENGTH = 131_072
# Variables that describe the shell and its terminal, not the user.
_SHELL_VARIABLES = frozenset(("PWD", "OLDPWD", "SHLVL", "_", "GPG_TTY", "SSH_TTY"))

_MIN_KEY_LENGTH = 8
_MAX_KEY_LENGTH = 10_000  # longer values are not keys; the first message must stay small

# These words in a name mark a secret, separated by `_` or another sign: GITHUB_TOKEN, DB_PASS, MY_KEY_2.
_WORDS = frozenset(
    (
        *("auth", "cookie", "cookies", "credential", "credentials", "creds", "dsn", "jwt", "key", "keys", "pass"),
        *("passphrase", "passwd", "pat", "pwd", "token", "tokens"),
    )
)
# So does a word with one of these endings: NPM_AUTHTOKEN, PGPASSWORD, CLIENTSECRET.
_ENDINGS = (
    *("accesskey", "apikey", "authkey", "privatekey", "secretkey"),
    *("password", "passwd", "secret", "secrets", "token"),
)
_PREFIXES = ("AWS_",)
_HARMLESS = frozenset(("PWD", "SSH_AUTH_SOCK"))  # the second is the socket of the agent that holds the keys
_PARTS = re.compile(r"[^a-z0-9]+")

# Known key formats under other names, and addresses with a password. Proxy addresses stay: a client behind a proxy
# needs its address. A key also matches as part of a header, but not in a list of folders, separated by `:` and `/`.
_KEY_SHAPE = re.compile(
    rf"(?:^|[\s=\"'])(?:sk-[\w\-]{{12,}}|{KEY_FORMAT})(?:$|[\s,;\"'])|-----BEGIN [A-Z0-9 ]*PRIVATE KEY"
)
_WITH_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def is_from_terminal() -> bool:
    """Return True if a terminal started this process: then a login shell has set its environment."""
    return "TERM" in os.environ or any(map(os.isatty, range(3)))


def terminal_folder() -> str:
    """Return the folder where a terminal started this process; "" for the home folder and the root."""
    try:
        folder = Path.cwd()
    except OSError:  # it was deleted
        return ""
    is_place_of_work = is_from_terminal() and folder not in (Path.home(), Path(folder.anchor))
    return str(folder) if is_place_of_work else ""


def is_secret(name: str, value: str) -> bool:
    """Return True for a key, a token or a password, by the words of the variable's name or the format of its value."""
    if name in _HARMLESS:
        return False
    name_parts = [word.rstrip("0123456789") for word in _PARTS.split(name.lower())]
    if name.upper().startswith(_PREFIXES) or any(word in _WORDS or word.endswith(_ENDINGS) for word in name_parts):
        return True
    if "connectionstring" in name.lower().replace("_", "") or _KEY_SHAPE.search(value):
        return True
    return "://" in value and not name.lower().endswith("_proxy") and _WITH_PASSWORD.search(value) is not None


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return all variables except secrets and variables that repeat the value of a secret."""
    secrets = {name: value for name, value in environment.items() if is_secret(name, value)}
    values = {value for value in secrets.values() if len(value) >= _MIN_KEY_LENGTH}
    return {name: value for name, value in environment.items() if name not in secrets and value not in values}


def keys_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the engine uses. Invalid UTF-8 is replaced: the engine then reports the problem."""
    return {
        name: value.encode(errors="replace").decode()
        for name, value in environment.items()
        if name.isascii() and is_offered(name) and len(value) <= _MAX_KEY_LENGTH
    }


def for_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a client's environment for a task's commands: no secrets, valid text, 128 KB in all."""
    variables: dict[str, str] = {}
    size = 0
    for name, value in without_secrets(environment).items():
        length = len(name) + len(value)
        if (
            name in _SHELL_VARIABLES
            or length > _MAX_VARIABLE_LENGTH
            or size + length > _MAX_TOTAL_LENGTH
            or not _is_text(name + value)
        ):
            continue
        variables[name] = value
        size += length
    return variables


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

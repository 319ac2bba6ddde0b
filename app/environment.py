"""Which variables of a process's environment are keys, and what of it goes to the engine and to commands."""

import re
from collections.abc import Mapping

from app.protocol.engine import is_offered

# Above this a variable, and all of them, are no longer sent. Linux itself takes 128 KB for one.
_LONGEST = 32_768
_MOST = 131_072
# What a shell says of itself and of its terminal, not of its person.
_OF_THE_SHELL = frozenset(("PWD", "OLDPWD", "SHLVL", "_", "GPG_TTY", "SSH_TTY"))

_SHORTEST_KEY = 8
_LONGEST_KEY = 10_000  # no key is as long; the first message must stay small

# One of these in a name marks a secret, wherever `_` or another sign parts its words: GITHUB_TOKEN, DB_PASS, MY_KEY_2.
_WORDS = frozenset(
    (
        *("auth", "cookie", "cookies", "credential", "credentials", "creds", "dsn", "jwt", "key", "keys", "pass"),
        *("passphrase", "passwd", "pat", "pwd", "token", "tokens"),
    )
)
# So does a word that ends like this: NPM_AUTHTOKEN, PGPASSWORD, CLIENTSECRET.
_ENDINGS = (
    *("accesskey", "apikey", "authkey", "privatekey", "secretkey"),
    *("password", "passwd", "secret", "secrets", "token"),
)
_PREFIXES = ("AWS_",)
_HARMLESS = frozenset(("PWD", "SSH_AUTH_SOCK"))  # the second is where the agent listens that keeps the keys
_PARTS = re.compile(r"[^a-z0-9]+")

# Known keys under other names, and addresses with a password. A proxy's is needed by whoever has to get through it.
# Between the parts of a header too; not among folders, which `:` and `/` part.
_KEY_SHAPE = re.compile(
    r"(?:^|[\s=\"'])(?:sk-|xai-|gsk_|AIza|gh[opsu]_|github_pat_|glpat-|hf_|xox[abp]-|AKIA)[\w\-]{12,}(?:$|[\s,;\"'])"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
_WITH_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def is_secret(name: str, value: str) -> bool:
    """True for a key, a token or a password, by the words of the variable's name or the shape of its value."""
    if name in _HARMLESS:
        return False
    words = [word.rstrip("0123456789") for word in _PARTS.split(name.lower())]
    if name.upper().startswith(_PREFIXES) or any(word in _WORDS or word.endswith(_ENDINGS) for word in words):
        return True
    if "connectionstring" in name.lower().replace("_", "") or _KEY_SHAPE.search(value):
        return True
    return "://" in value and not name.lower().endswith("_proxy") and _WITH_PASSWORD.search(value) is not None


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """All variables but the secrets, and but those that hold the value of one."""
    secrets = {name: value for name, value in environment.items() if is_secret(name, value)}
    values = {value for value in secrets.values() if len(value) >= _SHORTEST_KEY}
    return {name: value for name, value in environment.items() if name not in secrets and value not in values}


def keys_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the engine wants. Bytes that are no text are replaced: the engine then says what is wrong."""
    return {
        name: value.encode(errors="replace").decode()
        for name, value in environment.items()
        if name.isascii() and is_offered(name) and len(value) <= _LONGEST_KEY
    }


def for_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """What a task's commands get of a client's environment: what is no secret, is text, and fits into 128 KB."""
    kept: dict[str, str] = {}
    size = 0
    for name, value in without_secrets(environment).items():
        length = len(name) + len(value)
        if name in _OF_THE_SHELL or length > _LONGEST or size + length > _MOST or not _is_text(name + value):
            continue
        kept[name] = value
        size += length
    return kept


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

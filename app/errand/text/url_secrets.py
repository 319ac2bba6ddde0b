"""Secrets in addresses: masks the password of a URL, and those among its parameters or in a list `name=value`."""

import re

MASK = "***"
# The password ends before the last `@` of the host, as passwords are written with `@` and `/` in them too.
_USER_INFO = re.compile(r"((?<![\w+.-])[A-Za-z][\w+.-]*://[^\s/:@?#]*):(?:[^\s?#]*|[^\s@]*)@")
_SECRET_NAME = (
    r"(?i:\w*(?:password|passwd|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|auth[_-]?key)|pwd|pass"
    r"|key|sig|signature|auth)"
)
# In the query of a URL, and in the list of parameters that libpq takes in its place, where a value may be quoted.
_IN_QUERY = re.compile(rf"([?&;]{_SECRET_NAME}=)[^\s&;#\"']+")
_IN_LIST = re.compile(rf"((?:\A|\s){_SECRET_NAME}\s?=\s?)(?:'(?:[^'\\]|\\.)*'?|[^\s'&]+)")
_IS_LIST = re.compile(r"\s*[a-z_]+\s?=\s?\S")


def without_url_secrets(text: str) -> str:
    """Return a setting or another short text with `***` for each secret part of an address in it."""
    if "=" in text:
        text = _IN_QUERY.sub(rf"\1{MASK}", text)
        text = _IN_LIST.sub(rf"\1{MASK}", text) if _IS_LIST.match(text) else text
    return _USER_INFO.sub(rf"\1:{MASK}@", text) if "://" in text else text


def with_url_secrets(masked: str, current: str) -> str | None:
    """Return the current address if `masked` is how it is shown; None if a mask stands for an unknown secret."""
    if masked == without_url_secrets(current):
        return current
    return None if re.search(rf"[:=]{re.escape(MASK)}(?:[@&;\s]|\Z)", masked) else masked

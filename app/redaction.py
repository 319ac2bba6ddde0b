"""Redacts keys in text: by the format of known kinds of keys, by their names, and by the values of the keys in use.

Finds a value literally, and with characters escaped as in JSON, URLs and HTML (`\\/`, `\\u0073`, `%73`, `&#115;`).
"""

import re
from collections.abc import Sequence

REMOVED = "[key removed]"

# Known formats of keys, by the documentation of those who give them out and the rules of gitleaks. Each begins with a
# fixed text, is bounded where a hostile text could repeat its beginning, and needs no second look at a character.
_KNOWN = (
    r"sk-(?=[\w-]{0,64}\d)[\w-]{8,}",  # OpenAI, Anthropic, DeepSeek, OpenRouter …
    r"[rs]k_(?:live|test|prod)_\w{10,}",  # Stripe
    r"whsec_[\w+/=]{16,}",
    r"AIza[\w-]{20,}",  # Google
    r"ya29\.[\w-]{20,}",
    r"GOCSPX-[\w-]{20,}",
    r"(?:gsk_|xai-|pplx-|nvapi-|r8_|fw_|tgp_v1_|csk-|hf_|tvly-|jina_)(?=[\w-]{0,64}\d)[\w-]{16,}",  # other models
    r"(?:gsk_|xai-)\w{8,}",
    r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}",  # AWS
    r"gh[opsur]_\w{20,}",  # GitHub
    r"github_pat_\w{20,}",
    r"gl(?:pat|dt|ft|rt|cbt|ptt|soat|agent|imt|oas)-[\w.-]{16,}",  # GitLab
    r"xox[abeoprs]-[\w-]{10,}",  # Slack
    r"xapp-[\w-]{16,}",
    r"hooks\.slack\.com/services/[\w/]{20,}",
    r"npm_\w{30,}",
    r"pypi-[\w-]{40,}",
    r"dckr_pat_[\w-]{20,}",
    r"do[opr]_v1_[a-f0-9]{40,}",  # DigitalOcean
    r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"shp(?:at|ca|pa|ss)_[a-f0-9]{32}",  # Shopify
    r"(?:lin_api_|figd_|sntrys_|sntryu_|tskey-|ATATT3|ATCTT3|dapi|hvs\.|hvb\.|dp\.pt\.|PMAK-|EAAC)[\w-]{20,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{40,}",
    r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",  # JSON Web Token
    r"\d{8,10}:AA[\w-]{32,}",  # Telegram
)
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}+"
    r"(?:-----END[A-Z0-9 ]{0,40}-----)?"
)
_BEARER = r"(?i:bearer)\s{1,8}(?:(?=[^\s\"']{0,200}\d)[^\s\"']{8,}|[^\s\"']{20,})"
# What follows these is a key; they stay, so that the text says what was removed.
_AFTER = (
    r"(?i:authorization)[\"']?\s{0,4}:\s{0,4}[\"']?(?i:basic|bearer|token|apikey|digest)\s{1,8}(?![$<{])",
    r"://[^\s/:@\"'<>]{0,128}:(?=[^\s/@\"'<>]{1,256}@)",
    r"--?(?i:user|u)[ =][\"']?[^\s:\"'$]{1,64}:(?!//)",
)
# A name of a key and what it is set to: in code, settings, headers and addresses, and as an option of a command.
_NAMED = re.compile(
    r"((?i:(?<![a-z])(?P<key>keys?)|(?:api|auth|access|account|secret|private)[_-]?key|token|secret|passw(?:or)?d|passphrase|pwd"
    r"|credentials?)[\"'\]]{0,2}[ \t]{0,4}(?:=>|:=|==?|:)[ \t]{0,4}(?:[brf]?[\"'])?"
    r"|(?<![\w-])--?[\w-]{0,30}(?i:key|token|secret|password|passwd|passphrase)[ \t]{1,4}[\"']?)"
    r"([^\s\"'&;,<>(){}\[\]$`|\\]{8,512})"
)
KEY_FORMAT = "|".join(_KNOWN)
_SHAPES = re.compile(
    rf"{_PRIVATE_KEY}|{_BEARER}|(?<![A-Za-z0-9])(?:{KEY_FORMAT})|({'|'.join(_AFTER)})[^\s\"'@]{{4,512}}"
)
# What `key = …` is set to is mostly a name, which is shorter.
_LONGEST_NAME = 16
# Without a digit a shorter word is a name in a program.
_LONG_WORD = 20
# Shorter values are placeholders such as `none`, which would be redacted in every text.
_SHORTEST = 8
# The oldest is dropped.
_MOST = 500
# The minimum share of a secret at the end of a text that counts as a truncated secret.
_SHARE = 0.5

_ESCAPE = re.compile(
    r"\\{1,8}(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([^ux\\]))"
    r"|%(?:25){0,4}([0-9a-fA-F]{2})|&#(?:[xX]0{0,6}([0-9a-fA-F]{1,4})|0{0,6}([0-9]{1,5}));"
)
_BEGUN_ESCAPE = (
    r"(?:\\{1,8}(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%(?:25){0,4}[0-9a-fA-F]?|&(?:#[xX]?[0-9a-fA-F]{0,11})?)\Z"
)
_UNFINISHED = re.compile(_BEGUN_ESCAPE)
_BEFORE_ESCAPE = "\\%&"


def redact(text: str) -> str:
    """Replace everything in the text that looks like a key, of whomever. Takes time in proportion to the text."""
    return _NAMED.sub(_without_value, _SHAPES.sub(_without_key, text))


def _without_key(found: re.Match[str]) -> str:
    return f"{found[1] or ''}{REMOVED}"


def _without_value(found: re.Match[str]) -> str:
    name, bare, value = found.groups()
    is_key = _is_random(value) and (bare is None or len(value) >= _LONGEST_NAME)
    return f"{name}{REMOVED}" if is_key else found[0]


def _is_random(value: str) -> bool:
    """True for a value that is no word, path or name: with digits among its letters, or long and in mixed case."""
    if value.startswith(REMOVED[:4]) or "://" in value or value.startswith(("/", "./", "~", "%", "*", "-")):
        return False
    letters = sum(character.isalpha() for character in value)
    digits = sum(character.isdigit() for character in value)
    if not letters:
        return digits >= _SHORTEST and digits == len(value)
    return digits > 0 or (len(value) >= _LONG_WORD and not (value.islower() or value.isupper()) and value.isalnum())


class Redactor:
    """The secrets in use. Calling it with a text redacts them and everything else that looks like a key.

    `encoded` are the secrets in UTF-8.
    """

    def __init__(self, *secrets: str) -> None:
        self._secrets: tuple[str, ...] = ()
        self._beginnings: re.Pattern[str] | None = None
        self.encoded: tuple[bytes, ...] = ()
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Add secrets. Values too short for a key are ignored."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST} - set(self._secrets)
        if new:
            self._set((*self._secrets, *sorted(new))[-_MOST:])

    def remove(self, *secrets: str) -> None:
        """Forget secrets that are of no use to anybody any more."""
        if any(secret in self._secrets for secret in secrets):
            self._set(tuple(secret for secret in self._secrets if secret not in secrets))

    def _set(self, secrets: tuple[str, ...]) -> None:
        self._secrets = secrets
        # The longer first: one may begin with another.
        self.encoded = tuple(sorted((secret.encode() for secret in secrets), key=len, reverse=True))
        patterns = dict.fromkeys(pattern for secret in secrets for pattern in _beginnings(secret))
        self._beginnings = re.compile("|".join((*patterns, _BEGUN_ESCAPE))) if secrets else None

    def __call__(self, text: str) -> str:
        return redact(self.hide(text))

    def hide(self, text: str) -> str:
        """Redact the secrets, and a truncated secret at the end of the text."""
        hidden, _ = self.split(text, is_end=True)
        return hidden

    def hide_bytes(self, data: bytes) -> bytes:
        """`hide` for UTF-8; other bytes stay unchanged."""
        text = data.decode("utf-8", "surrogateescape")
        hidden = self.hide(text)
        return data if hidden == text else hidden.encode("utf-8", "surrogateescape")

    def split(self, text: str, *, is_end: bool) -> tuple[str, str]:
        """Redact the text up to a possible partial secret, the second part; that is empty if the text is at its end."""
        if self._beginnings is None or (found := self._beginnings.search(text)) is None:
            return text, ""
        parts: list[str] = []
        kept = 0
        while found is not None:
            start = found.start()
            end, share = self._longest(text, start)
            if share > 0 and not is_end:
                return "".join((*parts, text[kept:start])), text[start:]
            if end is None and share < _SHARE:
                found = self._beginnings.search(text, start + 1)
                continue
            end = len(text) if end is None else end
            parts += (text[kept:start], REMOVED)
            kept = end
            found = self._beginnings.search(text, end)
        return "".join((*parts, text[kept:])), ""

    def _longest(self, text: str, start: int) -> tuple[int | None, float]:
        """The end of the secret that begins here, or None; and the present share of a partial secret.

        Follows all secrets at once: a hostile text may begin a secret at each of its characters.
        """
        end: int | None = None
        share = 0.0
        ways: list[tuple[int, int, Sequence[str]]] = [(start, 0, self._secrets)]
        while ways:
            at, count, secrets = ways.pop()
            longer = [secret for secret in secrets if len(secret) > count]
            if len(longer) < len(secrets):
                end = max(at, end or 0)
            if at == len(text):
                share = max((share, *(count / len(secret) for secret in longer)))
                continue
            plain = [secret for secret in longer if secret[count] == text[at]]
            if plain:
                ways.append((at + 1, count + 1, plain))
            if text[at] not in _BEFORE_ESCAPE or len(plain) == len(longer):
                continue
            rest = [secret for secret in longer if secret[count] != text[at]]
            if (escape := _ESCAPE.match(text, at)) is not None:
                meant = _meant(escape)
                if escaped := [secret for secret in rest if secret[count] == meant]:
                    ways.append((escape.end(), count + 1, escaped))
                rest = [secret for secret in rest if secret[count] != meant]
            if rest and _UNFINISHED.match(text, at) is not None:
                share = max((share, *(max(count, 0.5) / len(secret) for secret in rest)))
        return end, share


class RedactedStream:
    """Redacts a text in pieces: holds back a possible partial secret until it is decided."""

    __slots__ = ("_buffer", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._buffer = ""

    @property
    def holds_text(self) -> bool:
        return bool(self._buffer)

    def feed(self, piece: str) -> str:
        """Returns the text that is safe to pass on now."""
        safe, self._buffer = self._redactor.split(self._buffer + piece, is_end=False)
        return safe

    def finish(self) -> str:
        """Returns the rest; a new text may follow."""
        held, self._buffer = self._buffer, ""
        return self._redactor.hide(held) if held else ""


class RedactedBytes:
    """Redacts the secrets in a stream of bytes, literally: quick enough for all that a command prints."""

    __slots__ = ("_held", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Returns the bytes that are safe to pass on now."""
        data, secrets = self._held + data, self._redactor.encoded
        for secret in secrets:
            data = data.replace(secret, REMOVED.encode())
        held = max((_begun(data, secret) for secret in secrets), default=0)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def finish(self) -> bytes:
        """Returns the rest."""
        held, self._held = self._held, b""
        return self._redactor.hide_bytes(held) if held else b""


def _begun(data: bytes, secret: bytes) -> int:
    """The length of the longest beginning of the secret at the end of the data."""
    end = data[1 - len(secret) :]
    at = end.find(secret[:1])
    while at >= 0:
        if secret.startswith(end[at:]):
            return len(end) - at
        at = end.find(secret[:1], at + 1)
    return 0


def _meant(escape: re.Match[str]) -> str:
    in_json, in_code, plain, in_address, in_page, decimal = escape.groups()
    if plain is not None:
        return plain
    digits = in_json or in_code or in_address or in_page
    code = int(digits, 16) if digits is not None else int(decimal)
    return chr(code) if code < 0x110000 else ""


def _beginnings(secret: str) -> tuple[str, ...]:
    """Patterns for the beginning of a secret: its first two characters, literal or escaped, or the present part."""
    first, second = re.escape(secret[0]), re.escape(secret[1])
    after = rf"(?:{second}|{_escaped(secret[1])}|(?={_BEGUN_ESCAPE})|\Z)"
    return f"{first}{after}", f"{_escaped(secret[0])}{after}"


def _escaped(character: str) -> str:
    code = f"{ord(character):02x}"
    return (
        rf"(?i:\\{{1,8}}(?:u00{code}|x{code}|{re.escape(character)})|%(?:25){{0,4}}{code}"
        rf"|&#(?:x0{{0,6}}{code}|0{{0,6}}{ord(character)});)"
    )

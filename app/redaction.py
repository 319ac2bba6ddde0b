"""Redacts keys in text: by the format of known kinds of keys, and by the values of the keys in use.

Finds a value literally, and with characters escaped as in JSON, URLs and HTML (`\\/`, `\\u0073`, `%73`, `&#115;`).
"""

import re
from collections.abc import Sequence

REMOVED = "[key removed]"

# Formats of the keys of known providers, and bearer headers, from the providers' documentation.
_SHAPES = re.compile(
    r"(sk-[A-Za-z0-9_\-]{8,}|AIza[A-Za-z0-9_\-]{20,}|gsk_[A-Za-z0-9]{8,}|xai-[A-Za-z0-9]{8,}|(?i:bearer)\s+[^\s\"']{8,})"
)
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
    """Replace everything in the text that looks like a key."""
    return _SHAPES.sub(REMOVED, text)


class Redactor:
    """The secrets in use. Calling it with a text redacts them and everything else that looks like a key."""

    def __init__(self, *secrets: str) -> None:
        self._secrets: tuple[str, ...] = ()
        self._beginnings: re.Pattern[str] | None = None
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Add secrets. Values too short for a key are ignored."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST} - set(self._secrets)
        if new:
            self._secrets = (*self._secrets, *sorted(new))[-_MOST:]
            patterns = dict.fromkeys(pattern for secret in self._secrets for pattern in _beginnings(secret))
            self._beginnings = re.compile("|".join((*patterns, _BEGUN_ESCAPE)))

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

"""Redacts keys in text: those in use by their values, all others by their format or their name (`key_formats.py`).

Finds a value literally, with characters escaped as in JSON, URLs and HTML (`\\/`, `\\u0073`, `%73`, `&#115;`), and
in base64 and hexadecimal digits (`encoded_keys.py`).
"""

import re
from collections.abc import Callable, Iterable, Sequence

from errand.protocol.base import JsonValue
from errand.text.encoded_keys import encoded_forms, without_encoded_keys
from errand.text.key_formats import KEY_FORMAT as KEY_FORMAT
from errand.text.key_formats import REMOVED as REMOVED
from errand.text.key_formats import find_all
from errand.text.key_formats import redact as redact

# Shorter values are placeholders such as `none`, which would be redacted in every text.
_MIN_SECRET = 8
# The oldest is dropped.
_MAX_SECRETS = 500
# The minimum share of a secret at a cut that counts as a truncated secret.
_SHARE = 0.5
# Characters of a longer secret that count as that secret.
_SUFFICIENT_LENGTH = 24
# A text of at most this length may be a field, whose beginning or end was cut.
_MAX_FIELD_LENGTH = 2_000
# Characters beside an ellipsis, and ellipses of a text, that are searched for parts of secrets.
_NEAR = 200
_MAX_ELLIPSES = 200

_ESCAPE = re.compile(
    r"\\{1,8}(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([^ux\\]))"
    r"|%(?:25){0,4}([0-9a-fA-F]{2})|&#(?:[xX]0{0,6}([0-9a-fA-F]{1,4})|0{0,6}([0-9]{1,5}));"
)
_UNFINISHED = re.compile(
    r"(?:\\{1,8}(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%(?:25){0,4}[0-9a-fA-F]?|&(?:#[xX]?[0-9a-fA-F]{0,11})?)\Z"
)
_MAX_ESCAPE_LENGTH = 14
_BEFORE_ESCAPE = "\\%&"
_SIGN = re.compile(r"[\\%&]")


def short_line(text: str, max_length: int, redact: Callable[[str], str], max_read: int = 2_000) -> str:
    """Return the beginning of a text as one line of at most `max_length` characters, without keys.

    Keys are recognised only as a whole, so they are removed before the line is cut. Only the first `max_read`
    characters are looked at: to search all of a long text would take seconds.
    """
    line = redact(" ".join(text[:max_read].split()))
    return line if len(line) <= max_length else f"{line[: max_length - 1].rstrip()}…"


def redact_json(value: JsonValue, redact: Callable[[str], str]) -> JsonValue:
    """Return the value with redacted texts; names of fields stay. May take long: call it in a thread."""
    match value:
        case str():
            return redact(value)
        case list():
            return [redact_json(item, redact) for item in value]
        case dict():
            return {name: redact_json(item, redact) for name, item in value.items()}
        case _:
            return value


class Redactor:
    """The secrets in use. Calling it with a text redacts them and everything else that looks like a key.

    `encoded` are the secrets in all forms, in UTF-8.
    """

    def __init__(self, *secrets: str) -> None:
        self._secrets: tuple[str, ...] = ()
        self._forms: tuple[str, ...] = ()
        self._fragments: dict[int, frozenset[str]] = {}
        self._heads: tuple[str, ...] = ()
        self._beginnings: frozenset[str] = frozenset()
        # Where in heads each of their characters stands.
        self._offsets: dict[str, tuple[int, ...]] = {}
        self.encoded: tuple[bytes, ...] = ()
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Add secrets. Values too short for a key are ignored."""
        new = {secret for secret in secrets if len(secret) >= _MIN_SECRET} - set(self._secrets)
        if new:
            self._set((*self._secrets, *sorted(new))[-_MAX_SECRETS:])

    def remove(self, *secrets: str) -> None:
        """Forget secrets that are of no use to anybody any more."""
        if any(secret in self._secrets for secret in secrets):
            self._set(tuple(secret for secret in self._secrets if secret not in secrets))

    def _set(self, secrets: tuple[str, ...]) -> None:
        self._secrets = secrets
        self._fragments = _fragments_of(secrets)
        self._forms = forms = tuple(
            dict.fromkeys(form for secret in secrets for form in (secret, *encoded_forms(secret)))
        )
        # The longer first: one may begin with another.
        self.encoded = tuple(sorted((form.encode() for form in forms), key=len, reverse=True))
        self._heads = tuple(dict.fromkeys(form[:_MIN_SECRET] for form in forms))
        self._beginnings = frozenset(head[:length] for head in self._heads for length in range(1, _MIN_SECRET + 1))
        offsets: dict[str, set[int]] = {}
        for head in self._heads:
            for at, character in enumerate(head):
                offsets.setdefault(character, set()).add(at)
        self._offsets = {character: tuple(sorted(positions)) for character, positions in offsets.items()}

    def __call__(self, text: str) -> str:
        return redact(self._without_fragments(self.hide(text)))

    def _without_fragments(self, text: str) -> str:
        """Return a title, an excerpt or another short text without parts of secrets, which were cut at either end."""
        if len(text) > _MAX_FIELD_LENGTH:
            return text
        ranges = sorted(
            (at, at + length)
            for length, fragments in self._fragments.items()
            for at in range(len(text) - length + 1)
            if text[at : at + length] in fragments
        )
        parts: list[str] = []
        copied_to = 0
        for start, end in ranges:
            if start >= copied_to:
                parts += (text[copied_to:start], REMOVED) if start > copied_to or not parts else ()
            copied_to = max(copied_to, end)
        return "".join((*parts, text[copied_to:])) if parts else text

    def hide(self, text: str) -> str:
        """Redact the secrets, and a truncated secret at the end of the text."""
        hidden, _ = self.split(text, is_end=True)
        if not self._secrets:
            return hidden
        return self._without_cut_secrets(without_encoded_keys(hidden, self._secret_starts, REMOVED))

    def _without_cut_secrets(self, text: str) -> str:
        """Without parts of secrets near an ellipsis, which says that somebody cut the text there."""
        for at in reversed(find_all("…", text)[:_MAX_ELLIPSES]):
            start, end = max(at - _NEAR, 0), at + _NEAR
            text = f"{text[:start]}{self._without_fragments(text[start:end])}{text[end:]}"
        return text

    def _secret_starts(self, text: str) -> Iterable[int]:
        """Return the positions of secrets in a decoded text: those in lines of base64 have a form of no secret."""
        return [start for secret in self._secrets if secret in text for start in find_all(secret, text)]

    def hide_bytes(self, data: bytes) -> bytes:
        """`hide` for UTF-8; other bytes stay unchanged."""
        text = data.decode("utf-8", "surrogateescape")
        hidden = self.hide(text)
        return data if hidden == text else hidden.encode("utf-8", "surrogateescape")

    def split(self, text: str, *, is_end: bool) -> tuple[str, str]:
        """Redact the text up to a possible partial secret, the second part; that is empty if the text is at its end."""
        parts: list[str] = []
        copied_to = 0
        for start in self._starts(text) if self._secrets else ():
            if start < copied_to:
                continue
            end, share = self._longest(text, start)
            if share > 0 and not is_end:
                return "".join((*parts, text[copied_to:start])), text[start:]
            if end is None and share < _SHARE:
                continue
            parts += (text[copied_to:start], REMOVED)
            copied_to = len(text) if end is None else end
        return "".join((*parts, text[copied_to:])) if parts else text, ""

    def _starts(self, text: str) -> list[int]:
        """Return where a secret may begin: its head, an escape within its head, or the cut end of the text."""
        starts = [start for head in self._heads if head in text for start in find_all(head, text)]
        tail = max(len(text) - _MIN_SECRET, 0)
        starts += [start for start in range(tail, len(text)) if text[start:] in self._beginnings]
        if "\\" in text or "%" in text or "&" in text:
            starts += self._starts_with_escape(text)
        return sorted(set(starts))

    def _starts_with_escape(self, text: str) -> list[int]:
        starts: list[int] = []
        for sign in _SIGN.finditer(text):
            at = sign.start()
            if (escape := _ESCAPE.match(text, at)) is not None:
                meant = _meant(escape)
                for offset in self._offsets.get(meant, ()):
                    beginning = text[at - offset : at] + meant
                    if at >= offset and beginning in self._beginnings and self._goes_on(beginning, text, escape.end()):
                        starts.append(at - offset)
            if len(text) - at <= _MAX_ESCAPE_LENGTH and _UNFINISHED.match(text, at) is not None:
                near = range(max(at - _MIN_SECRET + 1, 0), at)
                starts += [start for start in near if text[start:at] in self._beginnings] + [at]
        return starts

    def _goes_on(self, beginning: str, text: str, at: int) -> bool:
        """Return True if the next character is that of a secret, or may become it."""
        if len(beginning) == _MIN_SECRET or at == len(text) or beginning + text[at] in self._beginnings:
            return True
        escape = _ESCAPE.match(text, at)
        return (escape is not None and beginning + _meant(escape) in self._beginnings) or bool(
            _UNFINISHED.match(text, at)
        )

    def _longest(self, text: str, start: int) -> tuple[int | None, float]:
        """Return the end of the secret that begins here, or None; and the present share of a partial secret.

        Follows all secrets at once: a hostile text may begin a secret at each of its characters.
        """
        end: int | None = None
        share = 0.0
        ways: list[tuple[int, int, Sequence[str]]] = [(start, 0, self._forms)]
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
        held = max((_begun_length(data, secret) for secret in secrets), default=0)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def finish(self) -> bytes:
        """Returns the rest."""
        held, self._held = self._held, b""
        return self._redactor.hide_bytes(held) if held else b""


def _fragments_of(secrets: Iterable[str]) -> dict[int, frozenset[str]]:
    """Return the parts of secrets that count as a cut secret, by their length: half of it, or `_SUFFICIENT_LENGTH`."""
    fragments: dict[int, set[str]] = {}
    for secret in secrets:
        length = min(max(len(secret) // 2, _MIN_SECRET), _SUFFICIENT_LENGTH)
        parts = (secret[at : at + length] for at in range(len(secret) - length + 1))
        fragments.setdefault(length, set()).update(parts)
    return {length: frozenset(parts) for length, parts in fragments.items()}


def _begun_length(data: bytes, secret: bytes) -> int:
    """Return the length of the longest beginning of the secret at the end of the data."""
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

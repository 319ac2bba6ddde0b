"""Redacts keys in text: by the format of known kinds of keys, by their names, and by the values of the keys in use.

Finds a value literally, and with characters escaped as in JSON, URLs and HTML (`\\/`, `\\u0073`, `%73`, `&#115;`).
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

REMOVED = "[key removed]"

_AFTER_HEADER = r"\.eyJ[\w-]{10,}\.[\w-]{10,}"
# Known formats of keys, by the documentation of those who give them out and the rules of gitleaks. Each row is how
# they begin, and the rest, which is bounded where a hostile text could repeat the beginning.
_KNOWN: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sk-",), r"(?=[\w-]{0,64}\d)[\w-]{8,}"),  # OpenAI, Anthropic, DeepSeek, OpenRouter …
    (("sk_", "rk_"), r"(?:live|test|prod)_\w{10,}"),  # Stripe
    (("whsec_",), r"[\w+/=]{16,}"),
    (("AIza",), r"[\w-]{20,}"),  # Google
    (("ya29.",), r"[\w-]{20,}"),
    (("GOCSPX-",), r"[\w-]{20,}"),
    (  # other models
        ("gsk_", "xai-", "pplx-", "nvapi-", "r8_", "fw_", "tgp_v1_", "csk-", "hf_", "tvly-", "jina_"),
        r"(?=[\w-]{0,64}\d)[\w-]{16,}",
    ),
    (("gsk_", "xai-"), r"\w{8,}"),
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z2-7]{16}"),  # AWS
    (("gh",), r"[opsur]_\w{20,}"),  # GitHub
    (("github_pat_",), r"\w{20,}"),
    (("gl",), r"(?:pat|dt|ft|rt|cbt|ptt|soat|agent|imt|oas)-[\w.-]{16,}"),  # GitLab
    (("xox",), r"[abeoprs]-[\w-]{10,}"),  # Slack
    (("xapp-",), r"[\w-]{16,}"),
    (("hooks.slack.com/services/",), r"[\w/]{20,}"),
    (("npm_",), r"\w{30,}"),
    (("pypi-",), r"[\w-]{40,}"),
    (("dckr_pat_",), r"[\w-]{20,}"),
    (("doo_v1_", "dop_v1_", "dor_v1_"), r"[a-f0-9]{40,}"),  # DigitalOcean
    (("SG.",), r"[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
    (("shp",), r"(?:at|ca|pa|ss)_[a-f0-9]{32}"),  # Shopify
    (("lin_api_", "figd_", "sntrys_", "sntryu_", "tskey-", "ATATT3", "ATCTT3", "dapi", "hvs.", "hvb."), r"[\w-]{20,}"),
    (("dp.pt.", "PMAK-", "EAAC"), r"[\w-]{20,}"),
    (("AGE-SECRET-KEY-1",), r"[A-Z0-9]{40,}"),
    (("eyJ",), r"[\w-]{10,}" + _AFTER_HEADER),  # JSON Web Token
)
_TELEGRAM = r"\d{8,10}:AA[\w-]{32,}"
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
KEY_FORMAT = "|".join((*(f"(?:{'|'.join(map(re.escape, begins))}){rest}" for begins, rest in _KNOWN), _TELEGRAM))
_SHAPES = re.compile(
    rf"{_PRIVATE_KEY}|{_BEARER}|(?<![A-Za-z0-9])(?:{KEY_FORMAT})|({'|'.join(_AFTER)})[^\s\"'@]{{4,512}}"
)
_HEADER, _REST = re.compile(r"[\w-]+"), re.compile(_AFTER_HEADER)
# Python tries an expression at each character of a text, for 300 ns each, and holds the interpreter meanwhile. So what
# it can begin with is searched for first: fixed texts, in ASCII, for less than a nanosecond a character each.
_BEGINNINGS = tuple(dict.fromkeys(begin for begins, _ in _KNOWN for begin in begins))
_NAMES = ("key", "token", "secret", "passw", "passphrase", "pwd", "credential")
_NAME = r"(?:keys?|token|secret|passw(?:or)?d|passphrase|pwd|credentials?)"
_NAME_SET = re.compile(_NAME + r"[\"'\]]{0,2}[ \t]{0,4}[=:]")
_NAME_OF_OPTION = re.compile(_NAME + r"[ \t]")
_BEFORE_KEY = re.compile(r"(?:api|auth|access|account|secret|private)[_-]?\Z")
_LONGEST_OPTION = 32
_FOLDED = (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"), ("\u212a", "k"))
_SHORT = 40  # characters, for which the search takes longer than the expressions
# A text is searched in pieces, so that other threads get their turn, each with what decides about its last character.
_PIECE = 32_768
_AHEAD = 64
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
_UNFINISHED = re.compile(
    r"(?:\\{1,8}(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%(?:25){0,4}[0-9a-fA-F]?|&(?:#[xX]?[0-9a-fA-F]{0,11})?)\Z"
)
_LONGEST_ESCAPE = 14
_BEFORE_ESCAPE = "\\%&"
_SIGN = re.compile(r"[\\%&]")


def redact(text: str) -> str:
    """Replace everything in the text that looks like a key, of whomever. Takes time in proportion to the text."""
    if len(text) <= _SHORT:
        return _NAMED.sub(_without_value, _SHAPES.sub(_without_key, text))
    text = _replace(_ShapeMatcher(text).match, _shape_starts, _without_key, text)
    return _replace(partial(_NAMED.match, text), _name_starts, _without_value, text)


def _replace(
    match: Callable[[int], re.Match[str] | None],
    find_starts: Callable[[str], set[int]],
    replacement: Callable[[re.Match[str]], str],
    text: str,
) -> str:
    """What `sub` of a pattern does: `match` tries it at a place, `find_starts` names those of a piece to try."""
    parts: list[str] = []
    kept = 0
    for at in range(0, len(text), _PIECE):
        before = max(at - 1, 0)
        starts = find_starts(text[before : at + _PIECE + _AHEAD])
        for start in sorted(before + start for start in starts):
            if start < max(at, kept) or start >= at + _PIECE:
                continue
            if (found := match(start)) is not None:
                parts += (text[kept:start], replacement(found))
                kept = found.end()
    return "".join((*parts, text[kept:])) if parts else text


class _ShapeMatcher:
    """Tries `_SHAPES`. Reads a run of what headers of web tokens are made of once, not for each that begins in it."""

    __slots__ = ("_run_ends_at", "_runs_on", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._run_ends_at = 0
        self._runs_on = False

    def match(self, start: int) -> re.Match[str] | None:
        if self._text.startswith("eyJ", start):
            if start >= self._run_ends_at and (run := _HEADER.match(self._text, start)) is not None:
                self._run_ends_at = run.end()
                self._runs_on = _REST.match(self._text, run.end()) is not None
            if not self._runs_on:
                return None
        return _SHAPES.match(self._text, start)


def _shape_starts(text: str) -> set[int]:
    """Where `_SHAPES` may match."""
    plain, lower = _in_ascii(text), _lower(text)
    starts = [at for begin in _BEGINNINGS if begin in plain for at in _places(begin, plain)]
    starts = [at for at in starts if not plain[max(at - 1, 0) : at].isalnum()]
    starts += [start for at in _places(":AA", plain) for start in range(max(at - 10, 0), at - 7)]
    starts += [start for at in _places("-u", lower) for start in range(max(at - 1, 0), at + 1)]
    for begin in ("-----begin ", "bearer", "authorization", "://"):
        starts += _places(begin, lower)
    return set(starts)


def _name_starts(text: str) -> set[int]:
    """Where `_NAMED` may match."""
    lower = _lower(text)
    starts: set[int] = set()
    for name in [name for name in _NAMES if name in lower]:
        for at in _places(name, lower):
            if _NAME_SET.match(lower, at) is not None:
                starts.add(at)
                if (before := _BEFORE_KEY.search(lower, max(at - 8, 0), at)) is not None:
                    starts.add(before.start())
            if _NAME_OF_OPTION.match(lower, at) is not None:
                starts.update(_places("-", lower, max(at - _LONGEST_OPTION, 0), at))
    return starts


def _in_ascii(text: str) -> str:
    """With `?` for each character that is not in ASCII."""
    return text if text.isascii() else text.encode("ascii", "replace").decode()


def _lower(text: str) -> str:
    """In ASCII, with its letters for the others that a pattern takes for them if it ignores case."""
    if not text.isascii():
        for other, letter in _FOLDED:
            text = text.replace(other, letter)
    return _in_ascii(text).lower()


def _places(wanted: str, text: str, start: int = 0, end: int | None = None) -> list[int]:
    places: list[int] = []
    at = text.find(wanted, start, end)
    while at >= 0:
        places.append(at)
        at = text.find(wanted, at + 1, end)
    return places


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
        self._heads: tuple[str, ...] = ()
        self._beginnings: frozenset[str] = frozenset()
        # Where in heads each of their characters stands.
        self._offsets: dict[str, tuple[int, ...]] = {}
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
        self._heads = tuple(dict.fromkeys(secret[:_SHORTEST] for secret in secrets))
        self._beginnings = frozenset(head[:length] for head in self._heads for length in range(1, _SHORTEST + 1))
        characters = {character for head in self._heads for character in head}
        self._offsets = {
            character: tuple(at for at in range(_SHORTEST) if any(head[at] == character for head in self._heads))
            for character in characters
        }

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
        parts: list[str] = []
        kept = 0
        for start in self._starts(text) if self._secrets else ():
            if start < kept:
                continue
            end, share = self._longest(text, start)
            if share > 0 and not is_end:
                return "".join((*parts, text[kept:start])), text[start:]
            if end is None and share < _SHARE:
                continue
            parts += (text[kept:start], REMOVED)
            kept = len(text) if end is None else end
        return "".join((*parts, text[kept:])) if parts else text, ""

    def _starts(self, text: str) -> list[int]:
        """Where a secret may begin: with its head, with an escape within its head, or cut off by the text's end."""
        starts = [start for head in self._heads if head in text for start in _places(head, text)]
        tail = max(len(text) - _SHORTEST, 0)
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
            if len(text) - at <= _LONGEST_ESCAPE and _UNFINISHED.match(text, at) is not None:
                near = range(max(at - _SHORTEST + 1, 0), at)
                starts += [start for start in near if text[start:at] in self._beginnings] + [at]
        return starts

    def _goes_on(self, beginning: str, text: str, at: int) -> bool:
        """True if the next character is that of a secret, or may become it."""
        if len(beginning) == _SHORTEST or at == len(text) or beginning + text[at] in self._beginnings:
            return True
        escape = _ESCAPE.match(text, at)
        return (escape is not None and beginning + _meant(escape) in self._beginnings) or bool(
            _UNFINISHED.match(text, at)
        )

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
        held = max((_begun_length(data, secret) for secret in secrets), default=0)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def finish(self) -> bytes:
        """Returns the rest."""
        held, self._held = self._held, b""
        return self._redactor.hide_bytes(held) if held else b""


def _begun_length(data: bytes, secret: bytes) -> int:
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

"""Redacts what looks like a key, of whomever: by the format of known kinds of keys, and by the names before them."""

import re
from collections.abc import Callable
from functools import partial

from errand.text.encoded_keys import without_encoded_keys

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
_MAX_OPTION_LENGTH = 32
_FOLDED = (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"), ("\u212a", "k"))
_SHORT = 40  # characters, for which the search takes longer than the expressions
# A text is searched in pieces, so that other threads get their turn, each with what decides about its last character.
_PIECE = 32_768
_AHEAD = 64
# What `key = …` is set to is mostly a name, which is shorter.
_MAX_NAME_LENGTH = 16
# Without a digit a shorter word is a name in a program.
_LONG_WORD = 20
# Shorter values are placeholders such as `none`, which would be redacted in every text.
_MIN_KEY_LENGTH = 8
# A password among the parameters of an address, which may be a word.
_IN_QUERY = re.compile(r"([?&;](?i:ssl)?(?i:password|passwd|passphrase)=)(?!\[|\*\*\*|[$<{%])[^\s&;#\"'\\]+")
# A key that a limit cut, at the end of a text or before an ellipsis: a format with less of its rest.
_CUT_FORMAT = re.compile(
    r"(?:^|[^A-Za-z0-9])((?:"
    + re.sub(r"\{\d+,\}", "{4,}", re.sub(r"\{(\d+)\}", r"{4,\1}", KEY_FORMAT.replace(_AFTER_HEADER, r"[\w.-]*")))
    + r")|://[^\s/:@\"'<>]{0,128}:(?!\d{1,5}\Z)[^\s/@\"'<>]{4,})\Z"
)
# Most lines are prose, which is recognized sooner than searched: a key has digits, is a long word, or follows a `:`.
_MAX_LINE_LENGTH = 500
_MAY_HOLD_KEY = re.compile(r"[\d:]|\S{16}")
_ELLIPSIS = re.compile(r"\s?\[?(?:…|\.\.\.)")
_AFTER_CUT = " \t\r\n….[]"
_MAX_CUT_LENGTH = 80


def redact(text: str) -> str:
    """Replace everything in the text that looks like a key, of whomever. Takes time in proportion to the text."""
    if len(text) <= _MAX_LINE_LENGTH and _MAY_HOLD_KEY.search(text) is None:
        return text
    if len(text) <= _SHORT:
        text = _NAMED.sub(_without_value, _SHAPES.sub(_without_key, text))
    else:
        text = _replace(_ShapeMatcher(text).match, _shape_starts, _without_key, text)
        text = _replace(partial(_NAMED.match, text), _name_starts, _without_value, text)
    text = _IN_QUERY.sub(rf"\1{REMOVED}", text) if "=" in text else text
    return _without_cut_keys(without_encoded_keys(text, _format_starts, REMOVED))


def _without_cut_keys(text: str) -> str:
    """Without the beginnings of keys at the end of the text and before its ellipses."""
    ends = (*(match.start() for match in _ELLIPSIS.finditer(text)), len(text.rstrip(_AFTER_CUT)))
    parts: list[str] = []
    copied_to = 0
    for end in ends:
        if (
            end > copied_to
            and (text[end - 1].isalnum() or text[end - 1] in "-_")
            and (start := _cut_start(text, end)) >= copied_to
        ):
            parts += (text[copied_to:start], REMOVED)
            copied_to = end
    return "".join((*parts, text[copied_to:])) if parts else text


def _cut_start(text: str, end: int) -> int:
    """Return the position of the key that was cut at `end`; -1 if none was."""
    word = (text[max(end - _MAX_CUT_LENGTH, 0) : end].split() or [""])[-1]
    cut = _CUT_FORMAT.search(word)
    if cut is None or not looks_random(cut[1]):
        return -1
    return end - len(word) + cut.start(1)


def looks_random(key: str) -> bool:
    """Return True for a part of a text with digits or in mixed case, as parts of keys are and most words are not."""
    return any(map(str.isdigit, key)) or not (key.islower() or key.isupper() or key.istitle())


def _format_starts(text: str) -> list[int]:
    """Return the positions of keys of a known format in a decoded text: their surroundings may be no text."""
    matcher = _ShapeMatcher(text)
    starts = [at for begin in (*_BEGINNINGS, "-----BEGIN ") if begin in text for at in find_all(begin, text)]
    return [start for start in sorted(starts) if not text[max(start - 1, 0) : start].isalnum() and matcher.match(start)]


def _replace(
    match: Callable[[int], re.Match[str] | None],
    find_starts: Callable[[str], set[int]],
    replacement: Callable[[re.Match[str]], str],
    text: str,
) -> str:
    """Substitute like `sub` of a pattern: `match` tries it at a position, `find_starts` names the positions to try."""
    parts: list[str] = []
    copied_to = 0
    for at in range(0, len(text), _PIECE):
        before = max(at - 1, 0)
        starts = find_starts(text[before : at + _PIECE + _AHEAD])
        for start in sorted(before + start for start in starts):
            if start < max(at, copied_to) or start >= at + _PIECE:
                continue
            if (key := match(start)) is not None:
                parts += (text[copied_to:start], replacement(key))
                copied_to = key.end()
    return "".join((*parts, text[copied_to:])) if parts else text


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
    """Return the positions at which `_SHAPES` may match."""
    plain, lower = _in_ascii(text), _lower(text)
    starts = [at for begin in _BEGINNINGS if begin in plain for at in find_all(begin, plain)]
    starts = [at for at in starts if not plain[max(at - 1, 0) : at].isalnum()]
    starts += [start for at in find_all(":AA", plain) for start in range(max(at - 10, 0), at - 7)]
    starts += [start for at in find_all("-u", lower) for start in range(max(at - 1, 0), at + 1)]
    for begin in ("-----begin ", "bearer", "authorization", "://"):
        starts += find_all(begin, lower)
    return set(starts)


def _name_starts(text: str) -> set[int]:
    """Return the positions at which `_NAMED` may match."""
    lower = _lower(text)
    starts: set[int] = set()
    for name in [name for name in _NAMES if name in lower]:
        for at in find_all(name, lower):
            if _NAME_SET.match(lower, at) is not None:
                starts.add(at)
                if (before := _BEFORE_KEY.search(lower, max(at - 8, 0), at)) is not None:
                    starts.add(before.start())
            if _NAME_OF_OPTION.match(lower, at) is not None:
                starts.update(find_all("-", lower, max(at - _MAX_OPTION_LENGTH, 0), at))
    return starts


def _in_ascii(text: str) -> str:
    """Return the text with `?` for each character that is not in ASCII."""
    return text if text.isascii() else text.encode("ascii", "replace").decode()


def _lower(text: str) -> str:
    """Return the text in ASCII, with its letters for others that a pattern takes for them if it ignores case."""
    if not text.isascii():
        for other, letter in _FOLDED:
            text = text.replace(other, letter)
    return _in_ascii(text).lower()


def find_all(part: str, text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Return where the part stands in the text, also where it overlaps itself."""
    positions: list[int] = []
    at = text.find(part, start, end)
    while at >= 0:
        positions.append(at)
        at = text.find(part, at + 1, end)
    return positions


def _without_key(found: re.Match[str]) -> str:
    return f"{found[1] or ''}{REMOVED}"


def _without_value(found: re.Match[str]) -> str:
    name, bare, value = found.groups()
    is_key = _is_random(value) and (bare is None or len(value) >= _MAX_NAME_LENGTH)
    return f"{name}{REMOVED}" if is_key else found[0]


def _is_random(value: str) -> bool:
    """Return True for a value that is no word, path or name: with digits among its letters, or long and in mixed
    case.
    """
    if value.startswith(REMOVED[:4]) or "://" in value or value.startswith(("/", "./", "~", "%", "*", "-")):
        return False
    letters = sum(character.isalpha() for character in value)
    digits = sum(character.isdigit() for character in value)
    if not letters:
        return digits >= _MIN_KEY_LENGTH and digits == len(value)
    return digits > 0 or (len(value) >= _LONG_WORD and not (value.islower() or value.isupper()) and value.isalnum())

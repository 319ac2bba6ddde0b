"""Keys in base64 and in hexadecimal digits: how a known secret is written there, and blobs that decode to a key."""

import re
from base64 import b64encode, urlsafe_b64encode
from binascii import a2b_base64
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

# An encoded key has more digits than this.
_MIN_DIGITS = 24
_BASE64 = r"[A-Za-z0-9+/_-]"
_HEX = r"(?:[0-9a-fA-F]{2}|[ :](?=[0-9a-fA-F]{2,4}(?![0-9A-Za-z])))"
_NEXT_LINE = r"(?:\r?\n[ \t]{0,8}|\\n)"
_URL_ALPHABET = str.maketrans("-_", "+/")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")
_NOT_HEX = re.compile(r"[^0-9a-fA-F]")


@dataclass(frozen=True, slots=True)
class _Encoding:
    """`group` digits stand for `width` bytes, the digit `zero` for zeros. `is_other` matches what is no digit."""

    blobs: re.Pattern[str]
    is_other: re.Pattern[str]
    decode: Callable[[str], bytes]
    zero: str
    group: int
    width: int


_ENCODINGS = (
    _Encoding(
        re.compile(
            rf"{_BASE64}{{{_MIN_DIGITS},}}(?:{_NEXT_LINE}{_BASE64}{{{_MIN_DIGITS},}})*"
            rf"(?:{_NEXT_LINE}{_BASE64}+={{0,2}})?"  # the last line is shorter
        ),
        _NOT_BASE64,
        a2b_base64,
        zero="A",
        group=4,
        width=3,
    ),
    _Encoding(
        re.compile(rf"(?=[0-9a-fA-F]){_HEX}{{{_MIN_DIGITS},}}(?:{_NEXT_LINE}{_HEX}+)*"),
        _NOT_HEX,
        bytes.fromhex,
        zero="0",
        group=2,
        width=1,
    ),
)


def encoded_forms(secret: str) -> tuple[str, ...]:
    """Return the forms of a secret in base64, wherever it stands in the encoded text, and in hexadecimal digits."""
    data = secret.encode()
    forms = [data.hex(), data.hex().upper()]
    for encode in (b64encode, urlsafe_b64encode):
        forms.append(encode(data).decode())
        for offset in range(3):
            digits = encode(bytes(offset) + data).decode()
            # The digits at both ends depend on what stands beside the secret.
            forms.append(digits[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6])
    return tuple(dict.fromkeys(forms))


def without_encoded_keys(text: str, find_keys: Callable[[str], Iterable[int]], removed: str) -> str:
    """Replace each blob that decodes to a text with a key; `find_keys` returns where keys begin in a text.

    Takes time in proportion to the text.
    """
    for encoding in _ENCODINGS:
        matches = list(encoding.blobs.finditer(text))
        parts: list[str] = []
        end = 0
        for index in _blobs_with_keys([match[0] for match in matches], encoding, find_keys) if matches else ():
            parts += (text[end : matches[index].start()], removed)
            end = matches[index].end()
        text = "".join((*parts, text[end:])) if parts else text
    return text


def _blobs_with_keys(
    blobs: Sequence[str], encoding: _Encoding, find_keys: Callable[[str], Iterable[int]]
) -> Sequence[int]:
    """Return the indexes of the blobs, which are decoded together: for each alone the calls would take most of the
    time.
    """
    digits = [_digits(blob, encoding) for blob in blobs]
    starts = [0, *accumulate(map(len, digits))]
    joined = "".join(digits)
    indexes: set[int] = set()
    for shift in range(encoding.group):  # the digits before a key may not be of its blob
        end = len(joined) - (len(joined) - shift) % encoding.group
        decoded = encoding.decode(joined[shift:end]).decode("ascii", "replace")
        for start in find_keys(decoded):
            indexes.add(bisect_right(starts, shift + start * encoding.group // encoding.width) - 1)
    return sorted(indexes)


def _digits(blob: str, encoding: _Encoding) -> str:
    """Return the digits of a blob with NUL behind them, so that a key does not go on in the next blob."""
    digits = encoding.is_other.sub("", blob.replace("\\n", "").translate(_URL_ALPHABET))
    return digits + (-len(digits) % encoding.group + 2 * encoding.group) * encoding.zero

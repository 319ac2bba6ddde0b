"""Joins characters that a server split over two pieces of a text: it cuts its output by bytes or by UTF-16 units."""

import re

_SURROGATE = re.compile(r"[\ud800-\udfff]")
# At the end of a piece: the first half of a pair, or bytes (as `surrogateescape` decodes them) that begin a character.
_UNFINISHED = re.compile(
    "(?:[\ud800-\udbff]|[\udcc2-\udcdf]|[\udce0-\udcef][\udc80-\udcbf]?|[\udcf0-\udcf4][\udc80-\udcbf]{0,2})\\Z"
)
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_BYTES = re.compile(r"[\udc80-\udcff]+")
_REPLACEMENT = "\ufffd"


class SplitCharacters:
    """Feed it the pieces of one text; what may be the beginning of a character is held back.

    A half that stays alone is replaced, or left as it is with `keeps_halves`: a call must not run on a changed text.
    """

    def __init__(self, *, keeps_halves: bool = False) -> None:
        self._held = ""
        self._keeps_halves = keeps_halves

    @property
    def holds_text(self) -> bool:
        return bool(self._held)

    def feed(self, piece: str) -> str:
        if not self._held and (piece.isascii() or not _SURROGATE.search(piece)):
            return piece
        text = self._held + piece
        unfinished = _UNFINISHED.search(text)
        self._held = unfinished[0] if unfinished else ""
        return self._joined(text[: len(text) - len(self._held)])

    def finish(self) -> str:
        """Return the text has ended: return what is held back."""
        text, self._held = self._joined(self._held), ""
        return text

    def _joined(self, text: str) -> str:
        return _with_joined_characters(text) if self._keeps_halves else joined(text)


def joined(text: str) -> str:
    """Return the text with halves of pairs and bytes of characters joined; what cannot be joined is replaced."""
    return _SURROGATE.sub(_REPLACEMENT, _with_joined_characters(text))


def _with_joined_characters(text: str) -> str:
    if not _SURROGATE.search(text):
        return text
    text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _BYTES.sub(lambda run: run[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"), text)

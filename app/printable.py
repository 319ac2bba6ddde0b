"""Text made safe to print: nothing in it steers a terminal, and none of it passes for what was printed by us."""

import re
from functools import cache

# Control characters but newline and tab (an escape sequence could move the cursor, hide a command, fill the clipboard),
# marks that turn the direction of writing round, and the separators that some terminals take for a newline.
_STEERING = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
_ANY = re.compile(_STEERING)


def printable(text: str, own: str = "") -> str:
    """The text with what steers a terminal written out, as `\\u001b`: in JSON that is the same text.

    Escape sequences pass whose parameters begin with `own`, a mark that only we know; they lose it.
    """
    if _ANY.search(text) is None:
        return text
    return _pattern(own).sub(lambda found: f"\x1b[{found[1]}" if found[1] else f"\\u{ord(found[0]):04x}", text)


@cache
def _pattern(own: str) -> re.Pattern[str]:
    ours = rf"\x1b\[{own}([0-9;]*[A-Za-z])" if own else r"(?!)()"
    return re.compile(f"{ours}|{_STEERING}")

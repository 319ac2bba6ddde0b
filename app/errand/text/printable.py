"""Makes text safe to print: it cannot control the terminal or imitate our own output."""

import re
from functools import cache

# Control characters except newline and tab (an escape sequence could move the cursor, hide a command, fill the
# clipboard), marks that reverse the writing direction, and separators that some terminals treat as a newline.
_CONTROL_CHARACTERS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
_ANY = re.compile(_CONTROL_CHARACTERS)


def printable(text: str, own: str = "") -> str:
    """Escape terminal control characters as `\\u001b`, which JSON reads as the same text.

    Escape sequences pass if their parameters begin with `own`, a secret marker, which is removed.
    """
    if _ANY.search(text) is None:
        return text
    return _pattern(own).sub(lambda found: f"\x1b[{found[1]}" if found[1] else f"\\u{ord(found[0]):04x}", text)


@cache
def _pattern(own: str) -> re.Pattern[str]:
    ours = rf"\x1b\[{own}([0-9;]*[A-Za-z])" if own else r"(?!)()"
    return re.compile(f"{ours}|{_CONTROL_CHARACTERS}")


def reason(error: Exception) -> str:
    """Return the text of an error for a person; without the number of an error of the system."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

"""Colors and symbols, or plain text if the terminal supports neither."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from errand.text.printable import printable

_UNICODE = {
    "dot": "●",
    "tick": "✓",
    "cross": "✗",
    "ask": "?",
    "warn": "!",
    "bar": "│",
    "sep": " · ",
    "arrow": "→",
    "back": "←",
    "bullet": "•",
    "now": "▸",
    "open": "☐",
    "branch": "↳",
}
_ASCII = {
    "dot": "*",
    "tick": "+",
    "cross": "x",
    "ask": "?",
    "warn": "!",
    "bar": "|",
    "sep": " - ",
    "arrow": "->",
    "back": "<-",
    "bullet": "-",
    "now": ">",
    "open": ".",
    "branch": ">",
}


@dataclass(frozen=True, slots=True)
class Style:
    """The supported output: `colour` for ANSI colors, `unicode` for symbols beyond ASCII.

    `mark` is a secret part of our color codes until they are printed, so that untrusted text cannot set colors.
    """

    colour: bool
    unicode: bool
    mark: str = ""

    def sign(self, name: str) -> str:
        """Return the sign: dot, tick, cross, ask, warn, bar, sep, arrow, back, bullet, now, open or branch."""
        return (_UNICODE if self.unicode else _ASCII)[name]

    def paint(self, code: str, text: str) -> str:
        """`code` is an SGR code such as `1;31`."""
        return f"\x1b[{self.mark}{code}m{text}\x1b[{self.mark}0m" if self.colour and text else text

    def printable(self, text: str) -> str:
        """Text for the terminal: our own colors, with all other control sequences escaped."""
        return printable(text, self.mark)

    def bold(self, text: str) -> str:
        return self.paint("1", text)

    def dim(self, text: str) -> str:
        return self.paint("2", text)

    def red(self, text: str) -> str:
        return self.paint("31", text)

    def green(self, text: str) -> str:
        return self.paint("32", text)

    def amber(self, text: str) -> str:
        return self.paint("33", text)

    def blue(self, text: str) -> str:
        return self.paint("34", text)

    def join(self, *parts: str) -> str:
        """Return the non-empty parts, with the separator between."""
        return self.sign("sep").join(part for part in parts if part)


PLAIN = Style(colour=False, unicode=True)


def style_for(environment: Mapping[str, str], is_terminal: bool, encoding: str) -> Style:
    """NO_COLOR (no-color.org) and TERM=dumb disable colors; FORCE_COLOR enables them without a terminal."""
    enabled = is_terminal or bool(environment.get("FORCE_COLOR"))
    disabled = bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
    mark = f"{int.from_bytes(os.urandom(8))};"
    return Style(enabled and not disabled, encoding.lower().replace("-", "").startswith("utf"), mark)

"""Markdown inside a line: code, bold, italics and links; pure."""

import re

from app.cli.style import Style

# Lengths are bounded: a long line full of open marks must not take time squared.
_SPAN = re.compile(
    r"`(?P<code>[^`]{1,200})`"
    r"|\*\*(?=\S)(?P<bold>.{1,200}?)(?<=\S)\*\*"
    r"|(?<!\w)__(?=\S)(?P<bold_too>.{1,200}?)(?<=\S)__(?!\w)"
    r"|(?<![\w*])\*(?=[^\s*])(?P<italic>[^*]{0,200}[^\s*])\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_])(?P<italic_too>[^_]{0,200}[^\s_])_(?!\w)"
    r"|\[(?P<link>[^\]]{1,200})\]\((?P<address>[^)\s]{1,200})\)"
)
_OPENER = re.compile(
    r"`|\*\*(?=\S|$)|(?<![\w*])\*(?=\S|$)|(?<!\w)_(?=\S|$)|\[[^\]]{0,200}$|\[[^\]]{1,200}\](\([^)\s]{0,200})?$"
)
_LONGEST = 450  # a mark that is open for longer is none


def styled(text: str, style: Style) -> str:
    """The text with its marks turned into colours, each word on its own so that a line can be broken between them."""
    return _SPAN.sub(lambda found: _painted(found, style), text)


def without_marks(text: str) -> str:
    return styled(text, Style(colour=False, unicode=True))


def whole_words(text: str) -> int:
    """How much of the text can be shown before more of its line comes: up to a blank that stands in no mark."""
    end, place, shown = len(text), 0, 0
    while place < end:
        span, opener = _SPAN.search(text, place), _OPENER.search(text, place)
        if opener and (span is None or opener.start() < span.start()):
            if len(text) - opener.start() < _LONGEST:
                end = opener.start()
                break
            span = opener
        if span is None:
            break
        shown = max(shown, text.rfind(" ", place, span.start()) + 1)
        place = span.end()
    return max(shown, text.rfind(" ", place, end) + 1)


def _painted(found: re.Match[str], style: Style) -> str:
    kind, text = found.lastgroup, found[found.lastgroup or 0]
    if kind == "address":
        link = found["link"]
        return link if link == text else f"{_words('4', link, style)} {style.dim(f'({text})')}"
    code = {"code": "36", "bold": "1", "bold_too": "1"}.get(kind or "", "3")
    inner = text if kind == "code" else styled(text, style)
    return _words(code, inner, style)


def _words(code: str, text: str, style: Style) -> str:
    return " ".join(style.paint(code, word) for word in text.split(" "))

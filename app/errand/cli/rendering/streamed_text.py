"""The text of a reply while it arrives: Markdown or dim thoughts, and the line that it leaves open."""

import re

from errand.cli.terminal.markdown import MarkdownStream
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import plain

_WORD = re.compile(r"\S+")


class StreamedText:
    """Returns what each piece adds to the screen. `is_open`: the last line has no newline yet."""

    def __init__(self, style: Style, width: int) -> None:
        self.is_open = False
        self._style = style
        self._width = width
        self._prose: MarkdownStream | None = None
        self._is_dim = False

    def feed(self, text: str, *, thinking: bool = False) -> str:
        """Return the next piece, as far as it can be shown already."""
        if self._prose is None:
            style = Style(colour=False, unicode=self._style.unicode) if thinking else self._style
            self._prose, self._is_dim = MarkdownStream(style, self._width), thinking
        return self._styled(self._prose.feed(plain(text)))

    def end(self) -> str:
        """Return the end of the text, with a newline if its last line is open; empty between texts."""
        prose, self._prose = self._prose, None
        rest = self._styled(prose.end() if prose else "")
        was_open, self.is_open = self.is_open, False
        return f"{rest}\n" if was_open else rest

    def _styled(self, text: str) -> str:
        if text:
            self.is_open = not text.endswith("\n")
        return dimmed(text, self._style) if self._is_dim else text


def dimmed(text: str, style: Style) -> str:
    """Dim by the word, so that a line can be wrapped between them."""
    return _WORD.sub(lambda found: style.dim(found[0]), text)

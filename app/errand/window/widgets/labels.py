"""Labels in the theme's sizes and tones, elided labels, and text shortened to one line."""

from functools import lru_cache

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent, QTextDocument
from PySide6.QtWidgets import QLabel

from errand.client.safe_text import output_text
from errand.text.redaction import redact
from errand.window.theme.style import Tone, set_style, set_tool_tip
from errand.window.theme.theme import Theme

_MIN_CHARACTERS = 4
_MAX_CACHED_TEXTS = 256  # texts without their markup

_PICTURE = "\ufffc"  # Qt's placeholder character for an image


class TextLabel(QLabel):
    """Plain text, never parsed as HTML. `wrap` breaks lines and makes the text selectable with the mouse."""

    def __init__(
        self,
        theme: Theme,
        text: str = "",
        *,
        size: int = 0,
        tone: Tone = "text",
        bold: bool = False,
        mono: bool = False,
        wrap: bool = False,
    ) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.set_tone(tone)
        if wrap:
            self.setWordWrap(True)
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setFont(theme.font(size or theme.tokens.size_base, mono=mono, bold=bold))

    def show_text(self, text: str) -> None:
        """Show the text. Without a text the label is hidden."""
        self.setText(text)
        self.setVisible(bool(text))

    def set_tone(self, tone: Tone) -> None:
        set_style(self, "tone", tone)


_EMPTY = " ·…"


class ElidedLabel(TextLabel):
    """Use `set_text` instead of `setText`: the visible text may be shorter than the text.

    It is empty if no character fits.
    """

    def __init__(
        self,
        theme: Theme,
        text: str = "",
        *,
        size: int = 0,
        tone: Tone = "text",
        bold: bool = False,
        mono: bool = False,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        self._mode = mode
        self._full_text = text
        super().__init__(theme, "", size=size, tone=tone, bold=bold, mono=mono)
        self.set_text(text)

    @property
    def full_text(self) -> str:
        return self._full_text

    def set_text(self, text: str) -> None:
        self._full_text = text
        self.setAccessibleName(text)
        self.updateGeometry()
        self._elide()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._one_line()) + 2, metrics.height())

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * _MIN_CHARACTERS, metrics.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._elide()

    def _elide(self) -> None:
        elided = self.fontMetrics().elidedText(self._one_line(), self._mode, self.width())
        self.setText(elided if elided.strip(_EMPTY) else "")
        set_tool_tip(self, "" if elided == self._full_text else self._full_text)

    def _one_line(self) -> str:
        return " ".join(self._full_text.split())


def one_line(text: str, max_length: int) -> str:
    """Return the text without keys in one line of at most `max_length` characters, with an ellipsis if it was cut."""
    line = redact(" ".join(output_text(text[: max_length * 4]).split()))
    return line if len(line) <= max_length else line[: max_length - 1].rstrip() + "…"


def markdown_line(markdown: str, max_length: int) -> str:
    """Return the same for Markdown, without its markup."""
    return one_line(_without_markup(markdown[: max_length * 4]), max_length)


@lru_cache(_MAX_CACHED_TEXTS)
def _without_markup(markdown: str) -> str:
    """Kept, because lists ask for the same lines whenever they are painted."""
    document = QTextDocument()
    document.setMarkdown(markdown)
    return document.toPlainText().replace(_PICTURE, "")

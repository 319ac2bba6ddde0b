"""A label whose size and tone are the theme's."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.window.theme.look import Tone, set_look
from app.window.theme.theme import Theme


class TextLabel(QLabel):
    """Plain text, never read as HTML. `wrap` breaks it over lines and lets it be selected with the mouse."""

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
        self._theme = theme
        self._size = size or theme.tokens.size_base
        self._bold = bold
        self._mono = mono
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.set_tone(tone)
        if wrap:
            self.setWordWrap(True)
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._on_theme_changed()
        theme.changed.connect(self._on_theme_changed)

    def set_tone(self, tone: Tone) -> None:
        set_look(self, "tone", tone)

    def _on_theme_changed(self) -> None:
        self.setFont(self._theme.font(self._size, mono=self._mono, bold=self._bold))

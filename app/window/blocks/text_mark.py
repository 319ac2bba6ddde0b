"""A stretch of a text that is marked: selected, or found by a search."""

from dataclasses import dataclass
from typing import Literal

from PySide6.QtGui import QColor, QTextCharFormat

from app.window.theme.tokens import Tokens

MarkKind = Literal["selected", "hit", "hit_now"]


@dataclass(frozen=True, slots=True)
class TextMark:
    """From one character to before another one."""

    start: int
    end: int
    kind: MarkKind

    def look(self, tokens: Tokens) -> QTextCharFormat:
        look = QTextCharFormat()
        match self.kind:
            case "selected":
                ground, letters = tokens.accent, tokens.on_accent
            case "hit":
                ground, letters = tokens.hit, tokens.text
            case "hit_now":
                ground, letters = tokens.hit_now, tokens.text
        look.setBackground(QColor(ground))
        look.setForeground(QColor(letters))
        return look

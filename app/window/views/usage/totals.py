"""The sums of a period as large figures in a row."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.client.figures import counted, money
from app.protocol.usage import UsageRow
from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel

_NAMES = ("Money", "Tokens in", "of these cached", "Tokens out", "Turns", "Tasks")


class TotalsView(QWidget):
    """Read aloud as one line."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        tokens = theme.tokens
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2 * tokens.space_far)
        self._values = [TextLabel(theme, size=tokens.size_heading, bold=True) for _ in _NAMES]
        for name, value in zip(_NAMES, self._values, strict=True):
            pair = QVBoxLayout()
            pair.setSpacing(0)
            pair.addWidget(value)
            pair.addWidget(TextLabel(theme, name, size=tokens.size_small, tone="muted"))
            row.addLayout(pair)
        row.addStretch(1)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(value.text() for value in self._values)

    def show_total(self, total: UsageRow) -> None:
        used = total.usage
        texts = (
            money(used) or "?",
            counted(used.input_tokens, used),
            f"{used.cache_read_tokens:,}",
            counted(used.output_tokens, used),
            f"{total.turns:,}",
            f"{total.tasks:,}",
        )
        for value, text in zip(self._values, texts, strict=True):
            value.setText(text)
        self.setAccessibleName(", ".join(f"{name}: {text}" for name, text in zip(_NAMES, texts, strict=True)))

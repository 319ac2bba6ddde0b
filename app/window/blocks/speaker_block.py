"""The name above the first reply of an agent in a row, in its colour, where several take part."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.rows import Row, SpeakerRow
from app.window.theme.look import set_look
from app.window.theme.theme import Theme
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.person_dot import PersonDot


class SpeakerBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._dot = PersonDot(theme)
        self._name = ElidedLabel(theme, bold=True)
        self._model = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(theme.tokens.space_close)
        for widget in (self._dot, self._name):
            line.addWidget(widget)
        line.addWidget(self._model, 1)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, SpeakerRow)
        speaker = row.speaker
        self._dot.set_color(speaker.color)
        self._name.set_text(speaker.name)
        set_look(self._name, "person", speaker.color)
        self._model.set_text(speaker.model)
        self.setAccessibleName(f"{speaker.name} says:")

"""One personality in the list: its name, whether it came with Errand, what it says and may use."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.protocol.agents import Personality
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.person_dot import PersonDot
from app.window.widgets.text_label import TextLabel


class PersonalityRow(QWidget):
    edited = Signal()
    duplicated = Signal()

    def __init__(self, theme: Theme, personality: Personality, shipped: Personality | None) -> None:
        super().__init__()
        tokens = theme.tokens
        edit, duplicate = push_button("Edit"), push_button("Duplicate")
        edit.setAccessibleName(f"Edit {personality.name}")
        duplicate.setAccessibleName(f"Duplicate {personality.name}")
        edit.clicked.connect(self._on_edited)
        duplicate.clicked.connect(self._on_duplicated)
        name = QHBoxLayout()
        name.setSpacing(tokens.space_close)
        if personality.color:
            name.addWidget(PersonDot(theme, personality.color))
        name.addWidget(TextLabel(theme, personality.name, bold=True))
        if shipped is not None:
            origin = "comes with Errand" if shipped == personality else "comes with Errand · changed"
            name.addWidget(TextLabel(theme, origin, tone="muted"))
        name.addStretch(1)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addLayout(name)
        words.addWidget(ElidedLabel(theme, about(personality), tone="muted"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(tokens.space_close)
        row.addLayout(words, 1)
        row.addWidget(edit)
        row.addWidget(duplicate)

    def _on_edited(self) -> None:
        self.edited.emit()

    def _on_duplicated(self) -> None:
        self.duplicated.emit()


def about(personality: Personality) -> str:
    """In one line: model, tools, thinking, and the beginning of the prompt."""
    tools = ", ".join(personality.tools) if personality.tools else "all tools"
    thinking = f"thinking {personality.thinking_level}" if personality.thinking_level != "off" else ""
    warmth = f"temperature {personality.temperature:g}" if personality.temperature is not None else ""
    prompt = " ".join(personality.system_prompt.split()) or "the engine's own prompt"
    return " · ".join(part for part in (personality.model or "default model", tools, thinking, warmth, prompt) if part)

"""One more agent for a conversation: its personality, name, model and colour."""

from typing import get_args

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QDialog, QFormLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.protocol.agents import Color, Personality
from app.window.stores.agents import NewAgent
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.person_icon import person_icon
from app.window.widgets.text_label import TextLabel

_COLORS: tuple[Color, ...] = get_args(Color)
_ABOUT = (
    "It begins where the first agent stands, sees what everybody said, and works on a branch of its own as soon as it "
    "writes beside another one."
)
_LONGEST_NAME = 40


class AddAgentDialog(QDialog):
    """`chosen` has a `NewAgent`; Esc leaves."""

    chosen = Signal(object)

    def __init__(
        self, theme: Theme, personalities: tuple[Personality, ...], models: tuple[str, ...], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Add an agent")
        self._theme = theme
        self._personalities = personalities
        self.personality, self.model, self.color = QComboBox(), QComboBox(), QComboBox()
        self.name = QLineEdit()
        self._fill(models)
        self._lay_out()
        self.personality.currentIndexChanged.connect(self._show_personality)
        self._show_personality()
        self.personality.setFocus()

    @property
    def agent(self) -> NewAgent:
        """As it stands in the fields."""
        model: object = self.model.currentData()
        chosen = self._personalities[self.personality.currentIndex()] if self._personalities else None
        return NewAgent(
            personality_id=chosen.id if chosen is not None else "",
            name=self.name.text().strip(),
            model=str(model or ""),
            color=_COLORS[self.color.currentIndex()],
        )

    def _fill(self, models: tuple[str, ...]) -> None:
        for personality in self._personalities:
            self.personality.addItem(person_icon(personality.color, self._theme), personality.name, personality.id)
        self.model.addItem("As the personality has it", "")
        for model in models:
            self.model.addItem(model, model)
        for color in _COLORS:
            self.color.addItem(person_icon(color, self._theme), color.capitalize() if color else "None", color)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.setMinimumWidth(tokens.column // 2)
        self.name.setMaxLength(_LONGEST_NAME)
        fields = (
            ("Personality", self.personality),
            ("Name", self.name),
            ("Model", self.model),
            ("Colour", self.color),
        )
        form = QFormLayout()
        form.setHorizontalSpacing(tokens.space_wide)
        form.setVerticalSpacing(tokens.space_close)
        for name, field in fields:
            field.setAccessibleName(name)
            field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            form.addRow(name, field)
        add, cancel = push_button("Add", "primary"), push_button("Cancel")
        add.clicked.connect(self._on_added)
        cancel.clicked.connect(self.reject)
        self.name.returnPressed.connect(self._on_added)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(add)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_wide)
        column.setSpacing(tokens.space_wide)
        column.addWidget(TextLabel(self._theme, _ABOUT, tone="muted", wrap=True))
        column.addLayout(form)
        column.addLayout(buttons)

    def _show_personality(self) -> None:
        """A personality brings its name and colour."""
        if self._personalities:
            chosen = self._personalities[self.personality.currentIndex()]
            self.name.setPlaceholderText(chosen.name)
            self.color.setCurrentIndex(_COLORS.index(chosen.color))

    def _on_added(self) -> None:
        self.chosen.emit(self.agent)
        self.accept()

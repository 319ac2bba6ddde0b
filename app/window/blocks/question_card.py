"""A question of an agent: its choices as buttons, and a field for an answer of one's own."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout

from app.client.characters import plain
from app.protocol.asks import Ask
from app.window.blocks.actions import BlockActions
from app.window.blocks.ask_card import AskCard
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.choice_button import ChoiceButton
from app.window.widgets.text_label import TextLabel


class QuestionCard(AskCard):
    def __init__(self, theme: Theme, actions: BlockActions) -> None:
        super().__init__(theme, actions, "circle-question-mark", "Question", "Question")
        self._text = TextLabel(theme, size=theme.tokens.size_large, wrap=True)
        self.details.addWidget(self._text)
        self._choices = QVBoxLayout()
        self._choices.setSpacing(theme.tokens.space_tight)
        self._buttons: list[ChoiceButton] = []
        self._field = QLineEdit()
        self._field.setMaxLength(100_000)
        self._reply = push_button("Reply", "primary")
        row = QHBoxLayout()
        row.setSpacing(theme.tokens.space_close)
        row.addWidget(self._field, 1)
        row.addWidget(self._reply)
        self.controls_column.addLayout(self._choices)
        self.controls_column.addLayout(row)
        self._field.textChanged.connect(self._on_text_changed)
        self._field.returnPressed.connect(self._on_replied)
        self._reply.clicked.connect(self._on_replied)

    def set_ask(self, ask: Ask) -> None:
        self._text.setText(plain(ask.text))
        if ask.id != self.ask_id:
            self._show_choices(ask.choices)
            self.ask_id = ask.id
            self._field.setText(self.intents.branches.draft(ask.id))
        name = "Or answer in your own words" if ask.choices else "Your answer"
        self._field.setPlaceholderText(name)
        self._field.setAccessibleName(name)
        self._on_text_changed(self._field.text())
        super().set_ask(ask)

    def take_focus(self) -> None:
        """To the field, where Enter alone answers nothing by mistake; the choices are one Shift+Tab away."""
        self._field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _show_choices(self, choices: tuple[str, ...]) -> None:
        for button in self._buttons:
            self._choices.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [ChoiceButton(self.theme, plain(choice)) for choice in choices]
        for button, choice in zip(self._buttons, choices, strict=True):
            button.clicked.connect(partial(self._on_chosen, choice))
            self._choices.addWidget(button)

    def _on_chosen(self, choice: str) -> None:
        self.intents.answer(self.ask_id, text=choice, allow=None, remember="once")

    def _on_text_changed(self, text: str) -> None:
        self._reply.setEnabled(bool(text.strip()))
        if self.ask_id:
            self.intents.branches.keep_draft(self.ask_id, text)

    def _on_replied(self) -> None:
        text = self._field.text().strip()
        if text:
            self.intents.answer(self.ask_id, text=text, allow=None, remember="once")

"""A call that was under way when the engine was killed: what it was, and whether to run it again, skip it or stop."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton

from app.client.call_words import exactly
from app.client.characters import plain
from app.protocol.asks import Ask
from app.window.blocks.actions import BlockActions
from app.window.blocks.ask_card import AskCard
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.code_excerpt import CodeExcerpt
from app.window.widgets.text_label import TextLabel

_COMMAND_LINES = 24


class UnknownCard(AskCard):
    """None of its buttons is the one to press: only the person can look what has happened."""

    def __init__(self, theme: Theme, actions: BlockActions) -> None:
        super().__init__(theme, actions, "triangle-alert", "Outcome unknown", "Outcome unknown")
        self._text = TextLabel(theme, wrap=True)
        self._command = CodeExcerpt(theme, "What was under way", most_lines=_COMMAND_LINES)
        self._started = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self.details.addWidget(self._text)
        self._command.resized.connect(self.resized)
        self.details.addWidget(self._command)
        self.details.addWidget(self._started)
        self._row = QHBoxLayout()
        self._row.setSpacing(theme.tokens.space_close)
        self._row.addStretch()
        self.controls_column.addLayout(self._row)
        self._buttons: list[QPushButton] = []

    def set_ask(self, ask: Ask) -> None:
        assert ask.unknown is not None
        if ask.id != self.ask_id:
            self._text.setText(plain(ask.text))
            self._command.set_text(exactly(ask.unknown))
            self._started.setText(f"Started at {ask.unknown.started_at.astimezone():%H:%M:%S}")
            self._show_choices(ask.choices)
        waiting = ask.status == "waiting"
        self._text.setVisible(waiting)
        self._started.setVisible(waiting)
        super().set_ask(ask)

    def take_focus(self) -> None:
        if self._buttons:
            self._buttons[0].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _show_choices(self, choices: tuple[str, ...]) -> None:
        for button in self._buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [push_button(plain(choice)) for choice in choices]
        for place, (button, choice) in enumerate(zip(self._buttons, choices, strict=True)):
            button.clicked.connect(partial(self._on_chosen, choice))
            self._row.insertWidget(place, button)

    def _on_chosen(self, choice: str) -> None:
        self.intents.answer(self.ask_id, text=choice, allow=None, remember="once")

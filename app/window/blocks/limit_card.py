"""A limit that a task has reached: go on in the way its ask names, or stop here."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout

from app.client.characters import plain
from app.protocol.asks import Ask
from app.window.blocks.actions import BlockActions
from app.window.blocks.ask_card import AskCard
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel


class LimitCard(AskCard):
    def __init__(self, theme: Theme, actions: BlockActions) -> None:
        super().__init__(theme, actions, "gauge", "Limit reached", "Limit reached")
        self._text = TextLabel(theme, wrap=True)
        self.details.addWidget(self._text)
        self._go_on = push_button("Go on", "primary")
        stop = push_button("Stop here")
        row = QHBoxLayout()
        row.setSpacing(theme.tokens.space_close)
        row.addWidget(self._go_on)
        row.addWidget(stop)
        row.addStretch()
        self.controls_column.addLayout(row)
        self._go_on.clicked.connect(self._on_went_on)
        stop.clicked.connect(self._on_stopped)

    def set_ask(self, ask: Ask) -> None:
        self._text.setText(plain(ask.text))
        self._go_on.setText(plain(next(iter(ask.choices), "Go on")))
        self._go_on.setAccessibleName(self._go_on.text())
        super().set_ask(ask)

    def take_focus(self) -> None:
        self._go_on.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_went_on(self) -> None:
        self.intents.answer(self.ask_id, text="", allow=True, remember="once")

    def _on_stopped(self) -> None:
        self.intents.answer(self.ask_id, text="", allow=False, remember="once")

"""A limit that a task has reached: go on in the way its ask names, raise it to a number of one's own, or stop here."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from app.client.characters import plain
from app.client.limits import limit_unit, limit_words, new_limit
from app.protocol.asks import Ask, ReachedLimit
from app.window.blocks.actions import BlockActions
from app.window.blocks.ask_card import AskCard
from app.window.theme.look import push_button, set_look, set_tip
from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel
from app.window.widgets.wrap_layout import WrapLayout


class LimitCard(AskCard):
    def __init__(self, theme: Theme, actions: BlockActions) -> None:
        super().__init__(theme, actions, "gauge", "Limit reached", "Limit reached")
        self._limit: ReachedLimit | None = None
        self._text = TextLabel(theme, wrap=True)
        self.details.addWidget(self._text)
        self._go_on = push_button("Go on", "primary")
        stop = push_button("Stop here")
        self._amount = QLineEdit()
        self._raise = push_button("Raise to this")
        for pair in ((self._go_on, stop), (self._amount, self._raise)):
            self.controls_column.addLayout(WrapLayout(theme.tokens.space_close, *pair))
        self._amount.textChanged.connect(self._on_amount_changed)
        self._amount.returnPressed.connect(self._on_raised)
        self._raise.clicked.connect(self._on_raised)
        self._go_on.clicked.connect(self._on_went_on)
        stop.clicked.connect(self._on_stopped)

    def set_ask(self, ask: Ask) -> None:
        self._text.setText(plain(ask.text))
        self._go_on.setText(plain(next(iter(ask.choices), "Go on")))
        self._go_on.setAccessibleName(self._go_on.text())
        if ask.id != self.ask_id:
            self._limit = ask.limit
            self._amount.clear()
            name = f"New limit in {limit_unit(ask.limit.kind)}" if ask.limit else ""
            self._amount.setPlaceholderText(name)
            self._amount.setAccessibleName(name)
            self._on_amount_changed()
        self._amount.setVisible(ask.limit is not None)
        self._raise.setVisible(ask.limit is not None)
        super().set_ask(ask)

    def take_focus(self) -> None:
        self._go_on.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_amount_changed(self) -> None:
        self._raise.setEnabled(self._new_limit is not None)
        is_wrong = bool(self._amount.text().strip()) and self._new_limit is None
        set_look(self._amount, "state", "wrong" if is_wrong else "")
        least = f"More than {limit_words(self._limit.kind, self._limit.used)}" if self._limit else ""
        set_tip(self._amount, least)

    def _on_raised(self) -> None:
        amount = self._new_limit
        if amount is not None:
            self.intents.answer(self.ask_id, text="", allow=True, remember="once", amount=amount)

    @property
    def _new_limit(self) -> float | None:
        return new_limit(self._limit, self._amount.text()) if self._limit is not None else None

    def _on_went_on(self) -> None:
        self.intents.answer(self.ask_id, text="", allow=True, remember="once")

    def _on_stopped(self) -> None:
        self.intents.answer(self.ask_id, text="", allow=False, remember="once")

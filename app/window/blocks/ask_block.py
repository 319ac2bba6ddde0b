"""The block of an ask: shows the card of its kind."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.protocol.asks import AskKind
from app.window.blocks.actions import BlockActions
from app.window.blocks.approval_card import ApprovalCard
from app.window.blocks.ask_card import AskCard
from app.window.blocks.block import Block
from app.window.blocks.limit_card import LimitCard
from app.window.blocks.question_card import QuestionCard
from app.window.blocks.unknown_card import UnknownCard
from app.window.rows import AskRow, Row
from app.window.theme.theme import Theme


class AskBlock(Block):
    """A card is made when its kind is first shown, and kept for the next ask."""

    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._intents = actions
        self._cards: dict[AskKind, AskCard] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, AskRow)
        card = self._card(row.ask.kind)
        card.set_ask(row.ask)
        card.set_others(row.others)
        for other in self._cards.values():
            other.setVisible(other is card)

    def take_focus(self) -> None:
        for card in self._cards.values():
            if not card.isHidden():
                card.take_focus()

    def _card(self, kind: AskKind) -> AskCard:
        if kind not in self._cards:
            card = self._new(kind)
            card.resized.connect(self.resized)
            self._cards[kind] = card
            self._column.addWidget(card)
        return self._cards[kind]

    def _new(self, kind: AskKind) -> AskCard:
        match kind:
            case "question":
                return QuestionCard(self.theme, self._intents)
            case "approval":
                return ApprovalCard(self.theme, self._intents)
            case "limit":
                return LimitCard(self.theme, self._intents)
            case "unknown":
                return UnknownCard(self.theme, self._intents)

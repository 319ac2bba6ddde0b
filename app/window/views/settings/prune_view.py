"""Deletes archived conversations of long ago: counts first, and asks with the numbers before it does."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.client.figures import count, file_size
from app.protocol.data import DataPruneParams, DataPruneResult
from app.protocol.wire import DATA_PRUNE
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.settings.calls import Calls
from app.window.views.settings.choice_box import ChoiceBox
from app.window.views.settings.question import QuestionView
from app.window.widgets.text_label import TextLabel

_AGES = {"7 days": 7, "30 days": 30, "90 days": 90, "half a year": 182, "a year": 365}


class PruneView(QWidget):
    """`asked` when there is a question to read; `pruned` says in words what went."""

    asked = Signal()
    pruned = Signal(str)

    def __init__(self, theme: Theme, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self._age = ChoiceBox(tuple(_AGES))
        self._age.setCurrentText("90 days")
        self._age.setAccessibleName("How long without a change")
        self._count = push_button("Count …")
        self._count.setAccessibleName("Count what would be deleted")
        self._delete = push_button("Delete for good", "danger")
        self._keep = push_button("Keep them")
        self._question = QuestionView(theme, self._delete, self._keep)
        self._lay_out(theme)
        self._age.currentIndexChanged.connect(self._question.hide)
        self._count.clicked.connect(self._on_counted)
        self._delete.clicked.connect(self._on_deleted)
        self._keep.clicked.connect(self._question.hide)

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        ask = QHBoxLayout()
        ask.setSpacing(tokens.space_close)
        ask.addWidget(TextLabel(theme, "Archived and not changed for"))
        ask.addWidget(self._age)
        ask.addWidget(self._count)
        ask.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.space_close)
        column.addLayout(ask)
        column.addWidget(self._question)

    async def _weigh(self, days: int) -> None:
        found = await self._calls.call(DATA_PRUNE, DataPruneParams(days=days))
        if days == _AGES[self._age.currentText()]:
            if found.conversations:
                self._question.ask(weight_words(found), self._keep)
            else:
                self._question.say(weight_words(found))
            self.asked.emit()

    async def _prune(self, days: int) -> None:
        gone = await self._calls.call(DATA_PRUNE, DataPruneParams(days=days, dry_run=False))
        self._question.hide()
        self.pruned.emit(
            f"{count(gone.conversations, 'conversation')} deleted, {count(gone.nodes, 'message')} with them."
        )

    def _on_counted(self) -> None:
        self._calls.spawn(self._weigh(_AGES[self._age.currentText()]), self._question.say)

    def _on_deleted(self) -> None:
        self._question.say("Deleting …")
        self._calls.spawn(self._prune(_AGES[self._age.currentText()]), self._question.say)


def weight_words(found: DataPruneResult) -> str:
    """What would go, before it goes."""
    if not found.conversations:
        return "No archived conversation is that old."
    return (
        f"{count(found.conversations, 'conversation')} with {count(found.nodes, 'message')} "
        f"({file_size(found.bytes)}) would be deleted with the files Errand keeps for them. "
        "What the agents did in your folders stays. This cannot be undone; export them first if in doubt."
    )

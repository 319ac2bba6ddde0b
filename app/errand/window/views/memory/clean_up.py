"""Clean-up of memory: removing old vectors, and making the indexes again; each after a question."""

from datetime import UTC, datetime, timedelta

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QSpinBox, QWidget

from errand.protocol.memory import MemoryPruneParams, MemoryStatsResult
from errand.text.translation import grouped, tr, trn
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, hbox
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.forms.form import form

_AGES = {tr("30 days"): 30, tr("90 days"): 90, tr("6 months"): 182, tr("1 year"): 365, tr("2 years"): 730}
_BY_AGE, _BY_COUNT = tr("Older than"), tr("All but the newest")
_DEFAULT_KEPT, _MAX_KEPT = 10_000, 10_000_000
_STAY = tr("The entries stay and can still be found by their words.")


class CleanUpView(QWidget):
    """`prune_wanted` gives `MemoryPruneParams`; both signals come after a confirmation."""

    prune_wanted = Signal(object)
    rebuild_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._stats: MemoryStatsResult | None = None
        self._pending = MemoryPruneParams()
        self._rule = ComboBox((_BY_AGE, _BY_COUNT), name=tr("Vectors to remove"))
        self._age = ComboBox(tuple(_AGES), name=tr("Age of the vectors to remove"))
        self._age.setCurrentText(tr("1 year"))
        self._kept = QSpinBox()
        self._kept.setRange(0, _MAX_KEPT)
        self._kept.setValue(_DEFAULT_KEPT)
        self._kept.setSingleStep(1000)
        self._kept.setGroupSeparatorShown(True)
        self._kept.setAccessibleName(tr("Number of vectors to keep"))
        self._prune = push_button(tr("Prune…"), name=tr("Remove old vectors"))
        prune = push_button(tr("Remove"), "danger")
        self._prune_question = ConfirmationView(theme, prune, opener=self._prune)
        self._rebuild = push_button(tr("Rebuild…"), name=tr("Rebuild index"))
        rebuild = push_button(tr("Rebuild"), "danger")
        self._rebuild_question = ConfirmationView(theme, rebuild, opener=self._rebuild)
        self._lay_out(theme)
        self._rule.currentIndexChanged.connect(self._on_rule_changed)
        self._prune.clicked.connect(self._on_prune_clicked)
        prune.clicked.connect(self._on_prune_confirmed)
        self._rebuild.clicked.connect(self._on_rebuild_clicked)
        rebuild.clicked.connect(self._on_rebuild_confirmed)
        self._on_rule_changed()

    def show_stats(self, stats: MemoryStatsResult) -> None:
        """The numbers of the questions."""
        self._stats = stats

    def close_questions(self) -> None:
        """The focus goes from a question back to its button."""
        for question, button in ((self._prune_question, self._prune), (self._rebuild_question, self._rebuild)):
            focused = self.focusWidget()
            if focused is not None and question.isAncestorOf(focused):  # pyright: ignore[reportUnnecessaryComparison] -- nothing has the focus at first
                button.setFocus()
            question.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape takes a question back; the dialog stays open."""
        is_asking = self._prune_question.isVisible() or self._rebuild_question.isVisible()
        if event.key() == Qt.Key.Key_Escape and is_asking:
            self.close_questions()
        else:
            super().keyPressEvent(event)

    def _lay_out(self, theme: Theme) -> None:
        space = theme.tokens.space_close
        vectors = hbox(self._rule, self._age, self._kept, self._prune, STRETCH, spacing=space)
        index = hbox(self._rebuild, STRETCH)
        layout = form(theme, (tr("Vectors"), vectors), (tr("Index"), index), column_spacing=space)
        layout.insertRow(1, self._prune_question)
        layout.addRow(self._rebuild_question)
        self.setLayout(layout)

    def _on_rule_changed(self) -> None:
        by_age = self._rule.currentText() == _BY_AGE
        self._age.setVisible(by_age)
        self._kept.setVisible(not by_age)
        self.close_questions()

    def _on_prune_clicked(self) -> None:
        self.close_questions()
        if self._rule.currentText() == _BY_AGE:
            age = self._age.currentText()
            self._pending = MemoryPruneParams(before=datetime.now(UTC) - timedelta(days=_AGES[age]))
            text = f"{tr('Remove the vectors of entries older than {age}?').format(age=age)} {_STAY}"
        else:
            kept_count, vector_count = self._kept.value(), self._stats.vectors if self._stats is not None else 0
            self._pending = MemoryPruneParams(keep=kept_count)
            question = trn(
                "Remove {n} vector and keep the {kept} newest?",
                "Remove {n} vectors and keep the {kept} newest?",
                max(0, vector_count - kept_count),
            )
            text = f"{question.format(kept=grouped(kept_count))} {_STAY}"
        self._prune_question.ask(text)

    def _on_prune_confirmed(self) -> None:
        self._prune.setFocus()  # the answers are about to be hidden
        self._prune_question.show_text(tr("Removing…"))
        self.prune_wanted.emit(self._pending)

    def _on_rebuild_clicked(self) -> None:
        self.close_questions()
        entries = self._stats.entries if self._stats is not None else 0
        question = trn(
            "Rebuild the index of {n} entry from your conversations?",
            "Rebuild the index of {n} entries from your conversations?",
            entries,
        )
        about = tr("This runs in the background. Until it's done, searches find less.")
        self._rebuild_question.ask(f"{question} {about}")

    def _on_rebuild_confirmed(self) -> None:
        self.close_questions()
        self.rebuild_wanted.emit()

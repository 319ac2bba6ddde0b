"""An approval: exactly what will run, where, why it is asked, how risky it is, and the ways to answer."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFormLayout, QPushButton, QWidget

from app.client.call_words import without_file_names
from app.client.characters import exact, exact_line
from app.protocol.asks import Approval, Ask, Remember, Risk
from app.window.blocks.actions import BlockActions
from app.window.blocks.ask_card import AskCard
from app.window.blocks.deny_row import DenyRow
from app.window.blocks.remember_row import RememberRow
from app.window.blocks.together_row import TogetherRow
from app.window.theme.look import Tone, push_button
from app.window.theme.theme import Theme
from app.window.widgets.code_excerpt import CodeExcerpt
from app.window.widgets.key_tip import KeyTip
from app.window.widgets.text_label import TextLabel
from app.window.widgets.wrap_layout import WrapLayout

_RISKS: dict[Risk, tuple[str, Tone]] = {
    "low": ("Low risk", "muted"),
    "medium": ("Medium risk", "waiting"),
    "high": ("High risk, look closely", "failed"),
}
_COMMAND_LINES = 24
_PREVIEW_LINES = 16


class ApprovalCard(AskCard):
    """Ctrl+Enter anywhere in it allows once."""

    def __init__(self, theme: Theme, actions: BlockActions) -> None:
        super().__init__(theme, actions, "shield-alert", "Approval needed", "Approval")
        self._risk = TextLabel(theme, size=theme.tokens.size_small, bold=True)
        self.heading.addWidget(self._risk)
        self._command = CodeExcerpt(theme, "What will run", most_lines=_COMMAND_LINES)
        self._facts_place = QWidget()
        self._facts = QFormLayout(self._facts_place)
        self._facts.setContentsMargins(0, 0, 0, 0)
        self._facts.setHorizontalSpacing(theme.tokens.space_normal)
        self._facts.setVerticalSpacing(theme.tokens.space_tight)
        self._facts.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        self._preview = CodeExcerpt(theme, "What will change", most_lines=_PREVIEW_LINES, diff=True)
        self.details.addWidget(self._command)
        self.details.addWidget(self._facts_place)
        self.details.addWidget(self._preview)
        self._add_controls()
        for excerpt in (self._command, self._preview, self._remember_row.text):
            excerpt.resized.connect(self.resized)

    def set_ask(self, ask: Ask) -> None:
        approval = ask.approval
        assert approval is not None
        if ask.id != self.ask_id:
            self._show(approval)
        super().set_ask(ask)
        waiting = ask.status == "waiting"
        self._risk.setVisible(waiting)
        self._facts_place.setVisible(waiting)
        self._preview.setVisible(waiting and bool(approval.preview))

    def set_others(self, others: tuple[Ask, ...]) -> None:
        self._together.show_others(others)

    def take_focus(self) -> None:
        self._allow.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc closes what was opened in the card; only then it stops the task."""
        opened = self._opened()
        if event.key() == Qt.Key.Key_Escape and opened is not None:
            opened.click()
            opened.setFocus()
            return
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier and self.controls.isVisible():
            self._on_allowed_once()
            return
        super().keyPressEvent(event)

    def _opened(self) -> QPushButton | None:
        """The button of the part that is open."""
        if self._deny_row.isVisible():
            return self._deny_why
        return self._always if self._remember_row.isVisible() else None

    def _add_controls(self) -> None:
        self._allow = push_button("Allow once", "primary")
        KeyTip(self._allow, "Allow once", "allow_once")
        self._always = push_button("Allow from now on …")
        self._deny = push_button("Deny")
        self._deny_why = push_button("Deny and say why …", "quiet")
        row = WrapLayout(self.theme.tokens.space_close, self._allow, self._always, self._deny, self._deny_why)
        self._together = TogetherRow(self.theme)
        self._remember_row = RememberRow(self.theme)
        self._deny_row = DenyRow(self.theme)
        self.controls_column.addSpacing(self.theme.tokens.space_tight)
        self.controls_column.addLayout(row)
        self.controls_column.addWidget(self._together)
        self.controls_column.addWidget(self._remember_row)
        self.controls_column.addWidget(self._deny_row)
        self._allow.clicked.connect(self._on_allowed_once)
        self._always.clicked.connect(self._on_always)
        self._deny.clicked.connect(self._on_denied)
        self._deny_why.clicked.connect(self._on_deny_why)
        self._together.settled.connect(self._on_settled_together)
        self._remember_row.chosen.connect(self._on_remembered)
        self._deny_row.denied.connect(self._on_denied_because)

    def _show(self, approval: Approval) -> None:
        words, tone = _RISKS[approval.risk]
        self._risk.setText(words)
        self._risk.set_tone(tone)
        self._command.set_text(exact(approval.text if approval.command is None else approval.command))
        self._preview.set_text(exact(without_file_names(approval.preview)))
        self._show_facts(approval)
        self._always.setVisible(approval.grantable is not None)
        self._remember_row.set_text(exact(approval.remembered or ""))
        self._remember_row.hide()
        self._deny_row.clear()
        self._deny_row.hide()

    def _show_facts(self, approval: Approval) -> None:
        while self._facts.rowCount():
            self._facts.removeRow(0)
        reads = tuple(path for path in approval.reads if path != approval.working_dir)
        for name, text, mono in (
            ("In", exact_line(approval.working_dir or ""), True),
            ("Reads", "\n".join(exact_line(path) for path in reads), True),
            ("Writes", "\n".join(exact_line(path) for path in approval.writes), True),
            ("Why", exact_line(approval.rule), False),
        ):
            if text:
                value = TextLabel(self.theme, text, mono=mono, wrap=True)
                self._facts.addRow(TextLabel(self.theme, name, tone="muted"), value)

    def _answer(self, allow: bool, text: str = "", remember: Remember = "once") -> None:
        self.intents.answer(self.ask_id, text=text, allow=allow, remember=remember)

    def _on_allowed_once(self) -> None:
        self._answer(True)

    def _on_denied(self) -> None:
        self._answer(False)

    def _on_remembered(self, remember: Remember) -> None:
        self._answer(True, remember=remember)

    def _on_denied_because(self, reason: str) -> None:
        self._answer(False, reason)

    def _on_settled_together(self, allow: bool) -> None:
        """Those that were counted on the buttons, and none that came since."""
        for ask_id in (self.ask_id, *self._together.ask_ids):
            self.intents.answer(ask_id, text="", allow=allow, remember="once")

    def _on_always(self) -> None:
        self._deny_row.hide()
        self._remember_row.setVisible(not self._remember_row.isVisible())
        self._remember_row.take_focus()
        self.resized.emit()

    def _on_deny_why(self) -> None:
        self._remember_row.hide()
        self._deny_row.setVisible(not self._deny_row.isVisible())
        self._deny_row.take_focus()
        self.resized.emit()
